// Products of quantised tensors: QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger. The sum of (a - za) * (b - zb) is exact in
// int32 whatever the operands' signedness; nothing saturates before the end. Rescaling is one float32 multiplication, rounded half to
// even, then clamped.
#include <algorithm>
#include <cmath>

#include "ops/contraction.h"
#include "ops/conv.h"
#include "ops/convert.h"
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Fewer than so many bits are of no use: tiles of four by four hold sums times 64.
constexpr int64_t kLeastSumBits = 26;

bool isByte(DType t) { return t == DType::I8 || t == DType::U8; }
/// Within the compiler weights may have lost a zero point that leaves them no bytes, and data may be kept in 16 bits.
bool isByteOrWide(DType t) { return isByte(t) || t == DType::I16; }
bool isFloat8(DType t) { return isFloat(t) && dtypeBits(t) == 8; }
bool isByteOrFloat8(DType t) { return isByte(t) || isFloat8(t); }

/// A scale or zero point: one value, one for each `index` (1-D), or a tensor that is broadcast against `full`.
Expr parameter(ComputeContext& c, size_t i, const Expr& index, const std::vector<Expr>& full) {
  std::vector<int64_t> extents = c.inputExtents(i);
  if (Shape::of(extents).elements() == 1) {
    if (std::optional<double> value = constantScalar(c, i)) return loop::constant(c.input(i).dtype, *value);
    return c.at(i, std::vector<Expr>(extents.size(), loop::index(0)));
  }
  if (extents.size() == 1) return c.at(i, {index});
  return c.at(i, broadcastIndices(extents, full));
}

/// element - zero point, in the accumulator's type.
Expr centred(ComputeContext& c, DType type, const Expr& element, size_t zeroPoint, const Expr& index,
             const std::vector<Expr>& full) {
  Expr value = castTo(type, element);
  if (!c.hasInput(zeroPoint)) return value;
  return value - castTo(type, parameter(c, zeroPoint, index, full));
}

/// sum * multiplier in `type`, shifted by the zero point.
Expr requantised(DType type, const Expr& sum, const Expr& multiplier, const Expr& zeroPoint) {
  Expr scaled = castTo(DType::F32, sum) * multiplier;
  if (isFloat8(type)) return convert(type, zeroPoint ? scaled + castTo(DType::F32, zeroPoint) : scaled);
  Expr rounded = loop::call("round_even", {scaled});
  if (zeroPoint) rounded = rounded + castTo(DType::F32, zeroPoint);
  // Which saturates.
  return loop::cast(type, rounded);
}

/// `i` has one element or, in its only dim, as many as `channels`.
Status needScalarOrVector(const InferContext& c, size_t i, const Dim& channels, const std::string& what) {
  if (!c.hasInput(i) || !c.input(i).shape.isRanked()) return Status::ok();
  const Shape& s = c.input(i).shape;
  if (s.rank() == 0 || (s.rank() == 1 && s[0] == Dim(1))) return Status::ok();
  if (s.rank() != 1) return Status::error(what + " has the shape " + s.str() + ", expected a scalar or a vector");
  return needSameDim(s[0], channels, "elements of " + what + " and output channels");
}

Status needScalar(const InferContext& c, size_t i, const std::string& what) {
  if (!c.hasInput(i) || !c.input(i).shape.isRanked()) return Status::ok();
  const Shape& s = c.input(i).shape;
  if (s.rank() == 0 || (s.rank() == 1 && (s[0] == Dim(1) || !s[0].isKnown()))) return Status::ok();
  return Status::error(what + " has the shape " + s.str() + ", expected a scalar");
}

Dim outputChannels(const InferContext& c, size_t w) {
  const Shape& s = c.input(w).shape;
  return s.isRanked() && s.rank() > 0 ? s[0] : Dim::symbol("channels");
}

/// The bits of the largest sum that constant weights allow, with data of x's type and window moving by one, groups of one; 32 when
/// that isn't known, or of no use: only algorithms for windows of three ask.
int64_t bitsOfSums(const ComputeContext& c) {
  constexpr int64_t kUnknown = 32;
  const Tensor* w = c.constant(1);
  const DType x = c.input(0).dtype;
  const graph::Node& node = c.node();
  if (!w || !isByte(w->dtype()) || !isByte(x) || w->elements() == 0 || !movesWindowOfThree(node, w->dims()) ||
      c.hasInput(3) || (c.hasInput(2) && node.intAttr("centred", 1) != 0))
    return kUnknown;
  const std::vector<int64_t>& dims = w->dims();
  const int64_t low = x == DType::U8 ? 0 : -128, high = low + 255, each = w->elements() / dims[0];
  auto largestOf = [&](const auto* values) {
    int64_t largest = 0;
    for (int64_t o = 0; o < dims[0]; ++o) {
      int64_t positive = 0, negative = 0;
      for (int64_t i = o * each; i < (o + 1) * each; ++i) (values[i] < 0 ? negative : positive) += values[i];
      largest = std::max({largest, positive * high + negative * low, -(positive * low + negative * high)});
    }
    return largest;
  };
  const int64_t largest = w->dtype() == DType::U8 ? largestOf(w->data<uint8_t>()) : largestOf(w->data<int8_t>());
  int64_t bits = 1;
  while (bits < kUnknown && largest >= int64_t{1} << (bits - 1)) ++bits;
  return bits;
}

}  // namespace

Status inferConvInteger(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isByteOrWide, "int8 or uint8"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isByteOrWide, "int8 or uint8"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {1, 3}));
  LOCUTION_RETURN_IF_ERROR(needScalar(c, 2, "x_zero_point"));
  LOCUTION_RETURN_IF_ERROR(needScalarOrVector(c, 3, outputChannels(c, 1), "w_zero_point"));
  return inferConvolution(c, 0, 1, -1, DType::I32);
}

Status computeConvInteger(ComputeContext& c) {
  ConvOperands op;
  op.accumulator = DType::I32;
  op.padValue = c.hasInput(2) ? parameter(c, 2, nullptr, {}) : loop::constant(c.input(0).dtype, 0);
  // Within the compiler the sum may be left as it is: x's zero point is then only what padding holds.
  const bool isCentred = c.node().intAttr("centred", 1) != 0;
  op.mapX = [&, isCentred](const Expr& e) {
    return isCentred ? centred(c, DType::I32, e, 2, nullptr, {}) : castTo(DType::I32, e);
  };
  op.mapW = [&](const Expr& e, const Expr& oc) { return centred(c, DType::I32, e, 3, oc, {}); };
  // Nothing is lost: a sum that fits fewer bits says so, for algorithms that hold multiples of it.
  const int64_t unused = 32 - std::max(kLeastSumBits, bitsOfSums(c));
  op.finish = [unused](const Expr& acc, const Expr&) {
    if (unused <= 0) return acc;
    const Expr by = loop::intImm(DType::I32, unused);
    return loop::binary(loop::BinaryOp::Shr, loop::binary(loop::BinaryOp::Shl, acc, by), by);
  };
  return computeConvolution(c, op);
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B (int32, scaled by x_scale * w_scale).
Status inferQLinearConv(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 8));
  for (size_t i : {0, 3, 7}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isByte, "int8 or uint8"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {3, 5}));
  for (size_t i : {1, 4, 6}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needDtype(
      c, 8, [](DType t) { return t == DType::I32; }, "int32"));
  for (size_t i : {1, 2, 6, 7}) LOCUTION_RETURN_IF_ERROR(needScalar(c, i, "input " + std::to_string(i)));
  LOCUTION_RETURN_IF_ERROR(needScalarOrVector(c, 4, outputChannels(c, 3), "w_scale"));
  LOCUTION_RETURN_IF_ERROR(needScalarOrVector(c, 5, outputChannels(c, 3), "w_zero_point"));
  return inferConvolution(c, 0, 3, 8, c.input(7).dtype);
}

Status computeQLinearConv(ComputeContext& c) {
  ConvOperands op;
  op.w = 3;
  op.accumulator = DType::I32;
  op.padValue = parameter(c, 2, nullptr, {});
  op.mapX = [&](const Expr& e) { return centred(c, DType::I32, e, 2, nullptr, {}); };
  op.mapW = [&](const Expr& e, const Expr& oc) { return centred(c, DType::I32, e, 5, oc, {}); };
  op.finish = [&](Expr acc, const Expr& oc) {
    if (c.hasInput(8)) acc = acc + c.at(8, {oc});
    auto scale = [&](size_t i) { return castTo(DType::F32, parameter(c, i, oc, {})); };
    return requantised(c.output(0).dtype, acc, scale(1) * scale(4) / scale(6), parameter(c, 7, nullptr, {}));
  };
  return computeConvolution(c, op);
}

Status inferMatMulInteger(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isByteOrWide, "int8 or uint8"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isByteOrWide, "int8 or uint8"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {1, 3}));
  LOCUTION_ASSIGN_OR_RETURN(Shape shape, matMulShape(c.input(0).shape, c.input(1).shape));
  c.setOutput(0, DType::I32, shape);
  return Status::ok();
}

namespace {

/// The 1-D parameter's length fits the operand's rows or columns, and a wider one can be broadcast to it.
Status checkParameter(ComputeContext& c, size_t i, const std::vector<int64_t>& operand, bool rows) {
  if (!c.hasInput(i)) return Status::ok();
  std::vector<int64_t> extents = c.inputExtents(i);
  Status bad = Status::error("input " + std::to_string(i) + " of shape " + c.input(i).shape.str() +
                             " doesn't fit the operand of shape " + Shape::of(operand).str());
  if (Shape::of(extents).elements() == 1) return Status::ok();
  if (operand.size() < 2) return bad;
  size_t kept = operand.size() - (rows ? 2 : 1), summed = operand.size() - (rows ? 1 : 2);
  if (extents.size() == 1) return extents[0] == operand[kept] ? Status::ok() : bad;
  if (extents.size() != operand.size() || extents[summed] != 1) return bad;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] != 1 && extents[d] != operand[d]) return bad;
  }
  return Status::ok();
}

/// A sum of products of the operands a and b with their zero points.
Status computeIntegerMatMul(
    ComputeContext& c, size_t a, size_t b, size_t zeroA, size_t zeroB,
    const std::function<Expr(const Expr& sum, const MatMulIndices&, const std::vector<Expr>& out)>& finish) {
  std::vector<int64_t> aDims = c.inputExtents(a), bDims = c.inputExtents(b);
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, zeroA, aDims, true));
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, zeroB, bDims, false));
  DType type = isFloat(c.input(a).dtype) ? DType::F32 : DType::I32;
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  stage.reduce = {matMulReduction(aDims)};
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> out = varsOf(stage.axes);
  MatMulIndices at = matMulIndices(aDims, bDims, out, stage.reduce[0].var);
  stage.body =
      centred(c, type, c.at(a, at.a), zeroA, at.row, at.a) * centred(c, type, c.at(b, at.b), zeroB, at.column, at.b);
  if (finish) {
    stage.acc = loop::makeVar("acc", {type, 1});
    stage.epilogue = finish(stage.acc, at, out);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace

Status computeMatMulInteger(ComputeContext& c) { return computeIntegerMatMul(c, 0, 1, 2, 3, nullptr); }

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
Status inferQLinearMatMul(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 8));
  for (size_t i : {0, 3, 7}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isByteOrFloat8, "int8, uint8 or an 8-bit float"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {3, 5}));
  if (isFloat(c.input(0).dtype) != isFloat(c.input(3).dtype))
    return Status::error("one operand is an integer type, the other a float");
  for (size_t i : {1, 4, 6}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_ASSIGN_OR_RETURN(Shape shape, matMulShape(c.input(0).shape, c.input(3).shape));
  c.setOutput(0, c.input(7).dtype, shape);
  return Status::ok();
}

Status computeQLinearMatMul(ComputeContext& c) {
  std::vector<int64_t> out = c.outputExtents();
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, 1, c.inputExtents(0), true));
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, 4, c.inputExtents(3), false));
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, 6, out, true));
  LOCUTION_RETURN_IF_ERROR(checkParameter(c, 7, out, true));
  return computeIntegerMatMul(c, 0, 3, 2, 5,
                              [&](const Expr& sum, const MatMulIndices& at, const std::vector<Expr>& vars) {
                                // A wide parameter has extent 1 in the summed dim, so index 0 stands there.
                                auto full = [&](std::vector<Expr> indices, size_t summedFromEnd) {
                                  if (indices.size() >= summedFromEnd)
                                    indices[indices.size() - summedFromEnd] = loop::index(0);
                                  return indices;
                                };
                                Expr a = castTo(DType::F32, parameter(c, 1, at.row, full(at.a, 1))),
                                     b = castTo(DType::F32, parameter(c, 4, at.column, full(at.b, 2)));
                                Expr y = castTo(DType::F32, parameter(c, 6, at.row, vars));
                                return requantised(c.output(0).dtype, sum, a * b / y, parameter(c, 7, at.row, vars));
                              });
}

}  // namespace locution::ops

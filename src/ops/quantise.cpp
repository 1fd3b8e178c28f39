// QuantizeLinear, DequantizeLinear (a scale a tensor, an axis index, or a block) and DynamicQuantizeLinear.
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Indices into a scale or zero point (input i) for the element `at` of input 0.
std::vector<Expr> parameterIndices(const ComputeContext& c, size_t i, const std::vector<Expr>& at) {
  std::vector<int64_t> extents = c.inputExtents(i);
  if (c.input(i).shape.elements() == 1) return std::vector<Expr>(extents.size(), loop::index(0));
  int64_t axis = c.node().intAttr("axis", 1);
  size_t a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(at.size()) : axis);
  int64_t block = c.node().intAttr("block_size", 0);
  if (block <= 0) return {at[a]};
  std::vector<Expr> out = at;
  out[a] = floorDiv(at[a], loop::index(block));
  return out;
}

/// Shapes of scale (input 1) and zero point (input 2) against input 0.
Status checkParameters(const InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  const Shape &x = c.input(0).shape, &scale = c.input(1).shape;
  if (!x.isRanked() || !scale.isRanked()) return Status::ok();
  if (c.hasInput(2) && c.input(2).shape.isStatic() && scale.isStatic() && !(c.input(2).shape == scale) &&
      !(c.input(2).shape.elements() == 1 && scale.elements() == 1))
    return Status::error("the zero point has shape " + c.input(2).shape.str() + ", the scale " + scale.str());
  if (scale.isStatic() && scale.elements() == 1) return Status::ok();
  if (scale.rank() == 0) return Status::ok();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 1), x.rank()));
  int64_t block = c.node().intAttr("block_size", 0);
  if (block < 0) return Status::error("attribute 'block_size': expected 0 or more, got " + std::to_string(block));
  if (block == 0) {
    if (scale.rank() != 1)
      return Status::error("the scale has shape " + scale.str() +
                           ": without block_size a scalar or a vector is expected");
    return needSameDim(scale[0], x[axis], "the scale's length and dimension " + std::to_string(axis) + " of the input");
  }
  if (scale.rank() != x.rank())
    return Status::error("the scale " + scale.str() + " needs as many dimensions as the input " + x.str());
  for (int64_t i = 0; i < x.rank(); ++i)
    LOCUTION_RETURN_IF_ERROR(needSameDim(scale[i], i == axis ? ceilDiv(x[i], Dim(block)) : x[i],
                                         "dimension " + std::to_string(i) + " of the scale"));
  return Status::ok();
}

bool isQuantised(DType t) { return (isInteger(t) && dtypeBits(t) <= 16) || (isFloat(t) && dtypeBits(t) <= 8); }
bool isDequantisable(DType t) { return isQuantised(t) || t == DType::I32; }
bool isScale(DType t) { return isFloat(t) || t == DType::I32; }
bool isReal(DType t) { return isFloat(t) || t == DType::I32; }

}  // namespace

Status inferQuantizeLinear(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(checkParameters(c));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isReal, "a float type or int32"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isScale, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 2, isQuantised, "a type of at most 16 bits"));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> asked, dtypeAttr(c.node(), "output_dtype"));
  LOCUTION_RETURN_IF_ERROR(dtypeAttr(c.node(), "precision").status());
  if (asked && !isQuantised(*asked))
    return Status::error("attribute 'output_dtype': expected a type of at most 16 bits, got " +
                         std::string(dtypeName(*asked)));
  if (c.hasInput(2) && asked && *asked != c.input(2).dtype)
    return Status::error("attribute 'output_dtype' is " + std::string(dtypeName(*asked)) + ", the zero point " +
                         std::string(dtypeName(c.input(2).dtype)));
  return inferLike(c, c.hasInput(2) ? c.input(2).dtype : asked.value_or(DType::U8));
}

Status computeQuantizeLinear(ComputeContext& c) {
  DType to = c.output(0).dtype;
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> asked, dtypeAttr(c.node(), "precision"));
  // The scale's type is the precision of the division, unless asked otherwise.
  DType precision = asked.value_or(c.input(1).dtype);
  if (!isFloat(precision) || dtypeBits(precision) < 16) precision = DType::F32;
  DType type = computeType(precision);
  bool saturate = c.node().intAttr("saturate", 1) != 0;
  auto rounded = [&](const Expr& e) { return loop::cast(type, loop::cast(precision, e)); };
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr x = rounded(loop::cast(type, widened(c, 0, at)));
    Expr scale = rounded(loop::cast(type, widened(c, 1, parameterIndices(c, 1, at))));
    Expr y = rounded(x / scale);
    bool useZero = c.hasInput(2) && ((isInteger(to) && constantScalar(c, 2) != 0) || to == DType::F4E2M1);
    Expr zero = useZero ? loop::cast(type, widened(c, 2, parameterIndices(c, 2, at))) : nullptr;
    if (!isInteger(to)) return convert(to, zero ? y + zero : y, saturate);
    Expr whole = loop::call("round_even", {y});
    // Which saturates.
    return loop::cast(to, zero ? whole + zero : whole);
  });
}

Status inferDequantizeLinear(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(checkParameters(c));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isDequantisable, "int32 or a type of at most 16 bits"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> asked, dtypeAttr(c.node(), "output_dtype"));
  return inferLike(c, asked.value_or(c.input(1).dtype));
}

Status computeDequantizeLinear(ComputeContext& c) {
  const DType from = c.input(0).dtype;
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr scale = widened(c, 1, parameterIndices(c, 1, at));
    // Integers of 16 bits, and their differences, are floats.
    const DType type = isInteger(from) && dtypeBits(from) > 16 ? from : scale->type.dtype;
    auto value = [&](size_t i, const std::vector<Expr>& where) {
      return isInteger(from) ? loop::cast(type, c.at(i, where)) : widened(c, i, where);
    };
    Expr x = value(0, at);
    if (c.hasInput(2) && !(isInteger(from) && constantScalar(c, 2) == 0)) x = x - value(2, parameterIndices(c, 2, at));
    return loop::cast(scale->type.dtype, x) * scale;
  });
}

Status inferDynamicQuantizeLinear(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferFloatUnary(c));
  if (c.input(0).dtype == DType::F64) return Status::error("the input is float64, expected float32 or narrower");
  c.setOutput(0, DType::U8, c.input(0).shape);
  c.setOutput(1, DType::F32, Shape());
  c.setOutput(2, DType::U8, Shape());
  return Status::ok();
}

Status computeDynamicQuantizeLinear(ComputeContext& c) {
  auto reduced = [&](const char* stem, loop::Combiner combiner) {
    loop::Stage s;
    s.out = c.temporary(stem, DType::F32, {});
    s.reduce = makeAxes(c.inputExtents(0), "r");
    s.combiner = combiner;
    s.body = widened(c, 0, varsOf(s.reduce));
    s.acc = loop::makeVar("acc", s.body->type);
    // The range always holds 0.
    s.epilogue = loop::binary(loop::combinerOp(combiner), s.acc, loop::floatImm(DType::F32, 0));
    c.addStage(s);
    return s.out;
  };
  auto scalar = [&](const loop::BufferRef& out, Expr body) {
    loop::Stage s;
    s.out = out;
    s.body = std::move(body);
    c.addStage(std::move(s));
    return out;
  };
  Expr largest = loop::load(reduced("max", loop::Combiner::Max), {});
  Expr smallest = loop::load(reduced("min", loop::Combiner::Min), {});
  // A range of nothing: scale 1, as ONNX Runtime does (the formula would divide by 0).
  Expr scale = loop::select(eq(largest, smallest), loop::floatImm(DType::F32, 1),
                            (largest - smallest) / loop::floatImm(DType::F32, 255));
  loop::BufferRef scaleBuffer = scalar(c.temporary("scale", DType::F32, {}), scale);
  Expr scaled = loop::floatImm(DType::F32, 0) - smallest / loop::load(scaleBuffer, {});
  loop::BufferRef zeroBuffer =
      scalar(c.temporary("zero", DType::F32, {}), loop::call("round_even", {clampTo(scaled, 0, 255)}));
  if (c.wantsOutput(1)) scalar(c.outputBuffer(1), loop::load(scaleBuffer, {}));
  if (c.wantsOutput(2)) scalar(c.outputBuffer(2), loop::cast(DType::U8, loop::load(zeroBuffer, {})));
  if (!c.wantsOutput(0)) return Status::ok();
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr whole = loop::call("round_even", {widened(c, 0, at) / loop::load(scaleBuffer, {})});
    return clampTo(whole + loop::load(zeroBuffer, {}), 0, 255);
  });
}

}  // namespace locution::ops

// Element-wise arithmetic of two or more inputs: Add ... Mod, Pow, Max, Min, Mean, Sum, shifts and bitwise operators, Where.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/power.h"

namespace locution::ops {

using loop::BinaryOp;
using loop::Expr;

namespace {

std::vector<size_t> allInputs(const InferContext& c) {
  std::vector<size_t> out;
  for (size_t i = 0; i < c.inputCount(); ++i) out.push_back(i);
  return out;
}

Status inferSame(InferContext& c, size_t n, bool (*accepts)(DType), std::string_view expected) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, n));
  for (size_t i = 0; i < c.inputCount(); ++i) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, accepts, expected));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, allInputs(c)));
  return inferBroadcast(c, c.input(0).dtype);
}

Status inferArithmetic(InferContext& c) { return inferSame(c, 2, isNumeric, "a numeric type"); }

Status pairwise(ComputeContext& c, BinaryOp op) {
  return elementwise(c, [&](const std::vector<Expr>& args) { return loop::binary(op, args[0], args[1]); });
}

Status fold(ComputeContext& c, BinaryOp op) {
  return elementwise(c, [&](const std::vector<Expr>& args) {
    Expr out = args[0];
    for (size_t i = 1; i < args.size(); ++i) out = loop::binary(op, out, args[i]);
    return out;
  });
}

}  // namespace

Status inferAdd(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferArithmetic(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> { return a[0] + a[1]; });
  return Status::ok();
}
Status inferSub(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferArithmetic(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> { return a[0] - a[1]; });
  return Status::ok();
}
Status inferMul(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferArithmetic(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> { return a[0] * a[1]; });
  return Status::ok();
}
Status inferDiv(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferArithmetic(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
    if (a[0].isKnown() && a[1].isKnown()) {
      int64_t x = a[0].value(), y = a[1].value();
      if (y == 0) return Dim(0);
      return y == -1 ? Dim(0) - a[0] : Dim(x / y);
    }
    // Truncation is flooring where nothing is negative; a symbol that divides isn't 0.
    if (!a[0].isNonNegative() || !a[1].isNonNegative() || (a[1].isKnown() && a[1].value() == 0)) return std::nullopt;
    return floorDiv(a[0], a[1]);
  });
  return Status::ok();
}
Status inferMod(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferArithmetic(c));
  // Older opsets let floats through with fmod = 0; that was never given a meaning.
  if (c.node().intAttr("fmod", 0) == 0 && isFloat(c.input(0).dtype))
    return Status::error("attribute 'fmod': expected 1 for " + std::string(dtypeName(c.input(0).dtype)) + ", got 0");
  if (c.node().intAttr("fmod", 0) == 0)
    propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
      if (!a[1].isKnown() || a[1].value() <= 0) return std::nullopt;
      return a[0] - floorDiv(a[0], a[1]) * a[1];
    });
  return Status::ok();
}
Status inferExtremum(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferSame(c, 1, isNumeric, "a numeric type"));
  bool isMax = c.node().op == "Max";
  propagateDims(c, [isMax](const std::vector<Dim>& a) -> std::optional<Dim> {
    Dim out = a[0];
    for (size_t i = 1; i < a.size(); ++i) out = isMax ? maxDim(out, a[i]) : minDim(out, a[i]);
    return out;
  });
  return Status::ok();
}
Status inferSum(InferContext& c) { return inferSame(c, 1, isFloat, "a float type"); }
Status inferPow(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  for (size_t i : {0, 1}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isNumeric, "a numeric type"));
  return inferBroadcast(c, c.input(0).dtype);
}
Status inferBitwise(InferContext& c) { return inferSame(c, 2, isInteger, "an integer type"); }
Status inferLogical(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferSame(c, 2, isBool, "bool"));
  const std::string& op = c.node().op;
  propagateDims(c, [&](const std::vector<Dim>& a) -> std::optional<Dim> {
    // One side may decide.
    for (const Dim& d : a)
      if (d.isKnown() && ((op == "And" && d.value() == 0) || (op == "Or" && d.value() != 0)))
        return Dim(op == "Or" ? 1 : 0);
    if (!a[0].isKnown() || !a[1].isKnown()) return std::nullopt;
    bool x = a[0].value() != 0, y = a[1].value() != 0;
    return Dim(op == "And" ? x && y : op == "Or" ? x || y : x != y);
  });
  return Status::ok();
}
Status inferBitShift(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needOneOf("direction", c.node().stringAttr("direction", ""), {"LEFT", "RIGHT"}));
  return inferBitwise(c);
}

Status inferWhere(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isBool, "bool"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {1, 2}));
  if (isInteger(c.input(1).dtype))
    propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
      if (a[1] == a[2]) return a[1];
      if (!a[0].isKnown()) return std::nullopt;
      return a[0].value() != 0 ? a[1] : a[2];
    });
  return inferBroadcast(c, c.input(1).dtype);
}

Status computeAdd(ComputeContext& c) { return pairwise(c, BinaryOp::Add); }
Status computeSub(ComputeContext& c) { return pairwise(c, BinaryOp::Sub); }
Status computeMul(ComputeContext& c) { return pairwise(c, BinaryOp::Mul); }
Status computeDiv(ComputeContext& c) { return pairwise(c, BinaryOp::Div); }
Status computeMax(ComputeContext& c) { return fold(c, BinaryOp::Max); }
Status computeMin(ComputeContext& c) { return fold(c, BinaryOp::Min); }
Status computeSum(ComputeContext& c) { return fold(c, BinaryOp::Add); }
Status computeAnd(ComputeContext& c) { return pairwise(c, BinaryOp::And); }
Status computeOr(ComputeContext& c) { return pairwise(c, BinaryOp::Or); }
Status computeXor(ComputeContext& c) { return pairwise(c, BinaryOp::Xor); }

Status computeMean(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& args) {
    Expr out = args[0];
    for (size_t i = 1; i < args.size(); ++i) out = out + args[i];
    return out / loop::constant(out->type.dtype, static_cast<double>(args.size()));
  });
}

Status computeMod(ComputeContext& c) {
  // Integers: FloorMod's sign is the divisor's; fmod = 1 is C's remainder.
  return pairwise(c, c.node().intAttr("fmod", 0) != 0 ? BinaryOp::Mod : BinaryOp::FloorMod);
}

Status computeBitShift(ComputeContext& c) {
  return pairwise(c, c.node().stringAttr("direction", "") == "LEFT" ? BinaryOp::Shl : BinaryOp::Shr);
}

Status computePow(ComputeContext& c) {
  std::optional<double> exponent = constantScalar(c, 1);
  return elementwise(c, [&](const std::vector<Expr>& args) {
    if (exponent)
      if (Expr quick = constantPower(args[0], *exponent)) return quick;
    return power(args[0], args[1]);
  });
}

Status computeWhere(ComputeContext& c) {
  return injective(c, 0, [&](const std::vector<Expr>& full) {
    auto arg = [&](size_t i) { return c.at(i, broadcastIndices(c.inputExtents(i), full)); };
    return loop::select(arg(0), arg(1), arg(2));
  });
}

}  // namespace locution::ops

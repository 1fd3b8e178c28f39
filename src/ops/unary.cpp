// Element-wise operators of one input: arithmetic, rounding, exponentials, trigonometry, tests of floats.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

namespace {

Status unary(ComputeContext& c, const std::function<Expr(const Expr&)>& f) {
  return elementwise(c, [&](const std::vector<Expr>& args) { return shared(args[0], f); });
}

Status intrinsic(ComputeContext& c, const char* name) {
  return elementwise(c, [&](const std::vector<Expr>& args) { return loop::call(name, {args[0]}); });
}

}  // namespace

Status inferNumericUnary(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  return inferLike(c, c.input(0).dtype);
}

Status inferAbs(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferNumericUnary(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
    if (a[0].isNonNegative()) return a[0];
    if (a[0].isKnown()) return Dim(0) - a[0];
    return std::nullopt;
  });
  return Status::ok();
}

Status inferNeg(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferNumericUnary(c));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> { return Dim(0) - a[0]; });
  return Status::ok();
}

Status inferNot(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isBool, "bool"));
  propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
    if (!a[0].isKnown()) return std::nullopt;
    return Dim(a[0].value() == 0 ? 1 : 0);
  });
  return inferLike(c, DType::Bool);
}

Status inferBitwiseNot(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isInteger, "an integer type"));
  return inferLike(c, c.input(0).dtype);
}

Status inferFloatTest(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferFloatUnary(c));
  return inferLike(c, DType::Bool);
}

Status computeAbs(ComputeContext& c) {
  if (isUnsignedInt(c.input(0).dtype)) return unary(c, [](const Expr& x) { return x; });
  return intrinsic(c, "abs");
}
Status computeNeg(ComputeContext& c) {
  // -1 * x and not 0 - x: the negative of 0.0 is -0.0.
  return unary(c, [](const Expr& x) { return isFloat(x->type.dtype) ? x * -1 : loop::constant(x->type.dtype, 0) - x; });
}
Status computeSign(ComputeContext& c) {
  return unary(c, [](const Expr& x) {
    DType t = x->type.dtype;
    Expr zero = loop::constant(t, 0), one = loop::constant(t, 1);
    if (isUnsignedInt(t)) return loop::select(lt(zero, x), one, zero);
    // x itself where neither holds: zeros and NaN.
    return loop::select(lt(zero, x), one, loop::select(lt(x, zero), loop::constant(t, -1), x));
  });
}
Status computeNot(ComputeContext& c) { return intrinsic(c, "not"); }
Status computeBitwiseNot(ComputeContext& c) { return intrinsic(c, "not"); }
Status computeReciprocal(ComputeContext& c) {
  return unary(c, [](const Expr& x) { return loop::constant(x->type.dtype, 1) / x; });
}
Status computeCeil(ComputeContext& c) { return intrinsic(c, "ceil"); }
Status computeFloor(ComputeContext& c) { return intrinsic(c, "floor"); }
Status computeRound(ComputeContext& c) { return intrinsic(c, "round_even"); }
Status computeSqrt(ComputeContext& c) { return intrinsic(c, "sqrt"); }
Status computeExp(ComputeContext& c) { return intrinsic(c, "exp"); }
Status computeLog(ComputeContext& c) { return intrinsic(c, "log"); }
Status computeSin(ComputeContext& c) { return intrinsic(c, "sin"); }
Status computeCos(ComputeContext& c) { return intrinsic(c, "cos"); }
Status computeTan(ComputeContext& c) { return intrinsic(c, "tan"); }
Status computeAsin(ComputeContext& c) { return intrinsic(c, "asin"); }
Status computeAcos(ComputeContext& c) { return intrinsic(c, "acos"); }
Status computeAtan(ComputeContext& c) { return intrinsic(c, "atan"); }
Status computeSinh(ComputeContext& c) { return intrinsic(c, "sinh"); }
Status computeCosh(ComputeContext& c) { return intrinsic(c, "cosh"); }
Status computeAsinh(ComputeContext& c) { return intrinsic(c, "asinh"); }
Status computeAcosh(ComputeContext& c) { return intrinsic(c, "acosh"); }
Status computeAtanh(ComputeContext& c) { return intrinsic(c, "atanh"); }
Status computeTanh(ComputeContext& c) { return intrinsic(c, "tanh"); }
Status computeErf(ComputeContext& c) { return intrinsic(c, "erf"); }
Status computeSigmoid(ComputeContext& c) { return intrinsic(c, "sigmoid"); }
Status computeIsNaN(ComputeContext& c) { return intrinsic(c, "isnan"); }
Status computeIsInf(ComputeContext& c) {
  bool negative = c.node().intAttr("detect_negative", 1) != 0, positive = c.node().intAttr("detect_positive", 1) != 0;
  if (negative && positive) return intrinsic(c, "isinf");
  return unary(c, [&](const Expr& x) {
    if (!negative && !positive) return loop::constant(DType::Bool, 0);
    return eq(x, loop::floatImm(x->type.dtype, positive ? INFINITY : -INFINITY));
  });
}

}  // namespace locution::ops

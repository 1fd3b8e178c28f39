// Gradients of the element-wise operators of one input in unary.cpp and cast.cpp: dy times the derivative, in terms of the input where that
// costs no more than in terms of the output, which would have to be kept.
#include <cmath>

#include "ops/gradient.h"

namespace locution::ops {

namespace {

Status times(GradientContext& c, const Term& derivative) {
  c.give(0, c.gradient() * derivative);
  return Status::ok();
}

Term squared(const Term& x) { return x * x; }

}  // namespace

Status gradientAbs(GradientContext& c) { return times(c, call("Sign", c.input(0))); }
Status gradientNeg(GradientContext& c) {
  c.give(0, -c.gradient());
  return Status::ok();
}
Status gradientReciprocal(GradientContext& c) { return times(c, -squared(c.output())); }
Status gradientSqrt(GradientContext& c) { return times(c, 0.5 / c.output()); }
Status gradientExp(GradientContext& c) { return times(c, c.output()); }
Status gradientLog(GradientContext& c) {
  c.give(0, c.gradient() / c.input(0));
  return Status::ok();
}
Status gradientSin(GradientContext& c) { return times(c, call("Cos", c.input(0))); }
Status gradientCos(GradientContext& c) { return times(c, -call("Sin", c.input(0))); }
Status gradientTan(GradientContext& c) { return times(c, squared(c.output()) + 1); }
Status gradientAsin(GradientContext& c) { return times(c, 1 / call("Sqrt", 1 - squared(c.input(0)))); }
Status gradientAcos(GradientContext& c) { return times(c, -1 / call("Sqrt", 1 - squared(c.input(0)))); }
Status gradientAtan(GradientContext& c) { return times(c, 1 / (squared(c.input(0)) + 1)); }
Status gradientSinh(GradientContext& c) { return times(c, call("Cosh", c.input(0))); }
Status gradientCosh(GradientContext& c) { return times(c, call("Sinh", c.input(0))); }
Status gradientTanh(GradientContext& c) { return times(c, 1 - squared(c.output())); }
Status gradientAsinh(GradientContext& c) { return times(c, 1 / call("Sqrt", squared(c.input(0)) + 1)); }
Status gradientAcosh(GradientContext& c) { return times(c, 1 / call("Sqrt", squared(c.input(0)) - 1)); }
Status gradientAtanh(GradientContext& c) { return times(c, 1 / (1 - squared(c.input(0)))); }
Status gradientErf(GradientContext& c) { return times(c, 2 / std::sqrt(M_PI) * call("Exp", -squared(c.input(0)))); }
Status gradientSigmoid(GradientContext& c) { return times(c, c.output() * (1 - c.output())); }
Status gradientIdentity(GradientContext& c) {
  c.give(0, c.gradient());
  return Status::ok();
}
/// From one float type to another, `give` casts back.
Status gradientCast(GradientContext& c) { return gradientIdentity(c); }

}  // namespace locution::ops

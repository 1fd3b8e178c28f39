// Gradients of activation.cpp, each from the input alone. Where a derivative jumps it is that of the side the operator itself takes.
#include <cmath>

#include "ops/gradient.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

Term sigmoid(const Term& x) { return call("Sigmoid", x); }
Term isPositive(const Term& x) { return call("Greater", x, x.builder().scalar(x.dtype(), 0)); }
Term isBelow(const Term& x, double bound) { return call("Less", x, x.builder().scalar(x.dtype(), bound)); }
Term isAbove(const Term& x, double bound) { return call("Greater", x, x.builder().scalar(x.dtype(), bound)); }

Status give(GradientContext& c, const Term& g) {
  c.give(0, g);
  return Status::ok();
}

/// dy for positive x, dy * slope for others.
Status pieces(GradientContext& c, const Term& positive, const Term& other) {
  return give(c, where(isPositive(c.input(0)), positive, other));
}

/// alpha * exp(min(x, 0) / width): no overflow where the other side is taken.
Term decay(GradientContext& c, double alpha, double width = 1) {
  Term x = c.input(0);
  Term low = call("Min", x, c.builder().scalar(x.dtype(), 0));
  return call("Exp", width == 1 ? low : low / width) * alpha;
}

}  // namespace

Status gradientRelu(GradientContext& c) { return give(c, whereOrZero(isPositive(c.input(0)), c.gradient())); }

Status gradientPRelu(GradientContext& c) {
  Term x = c.input(0), slope = c.input(1), dy = c.gradient(), negative = isBelow(x, 0);
  if (c.wants(0)) c.give(0, where(negative, dy * slope, dy));
  if (c.wants(1)) c.give(1, whereOrZero(negative, dy * x));
  return Status::ok();
}

Status gradientLeakyRelu(GradientContext& c) {
  return pieces(c, c.gradient(), c.gradient() * c.node().floatAttr("alpha", 0.01));
}
Status gradientElu(GradientContext& c) {
  return pieces(c, c.gradient(), c.gradient() * decay(c, c.node().floatAttr("alpha", 1)));
}
Status gradientSelu(GradientContext& c) {
  const double alpha = c.node().floatAttr("alpha", 1.67326319217681884765625),
               gamma = c.node().floatAttr("gamma", 1.05070102214813232421875);
  return pieces(c, c.gradient() * gamma, c.gradient() * decay(c, alpha * gamma));
}
Status gradientCelu(GradientContext& c) {
  return pieces(c, c.gradient(), c.gradient() * decay(c, 1, c.node().floatAttr("alpha", 1)));
}
Status gradientThresholdedRelu(GradientContext& c) {
  return give(c, whereOrZero(isAbove(c.input(0), c.node().floatAttr("alpha", 1)), c.gradient()));
}

Status gradientHardSigmoid(GradientContext& c) {
  const double alpha = c.node().floatAttr("alpha", 0.2), beta = c.node().floatAttr("beta", 0.5);
  Term linear = c.input(0) * alpha + beta;
  return give(c, whereOrZero(call("And", isAbove(linear, 0), isBelow(linear, 1)), c.gradient() * alpha));
}

Status gradientHardSwish(GradientContext& c) {
  Term x = c.input(0), dy = c.gradient();
  Term middle = where(isAbove(x, -3), dy * (x * (1.0 / 3) + 0.5), c.builder().scalar(x.dtype(), 0));
  return give(c, where(isAbove(x, 3), dy, middle));
}

Status gradientSoftplus(GradientContext& c) { return give(c, c.gradient() * sigmoid(c.input(0))); }

Status gradientSoftsign(GradientContext& c) {
  Term d = call("Abs", c.input(0)) + 1;
  return give(c, c.gradient() / (d * d));
}

/// x tanh(softplus(x)): tanh(s) + x (1 - tanh(s)^2) sigmoid(x).
Status gradientMish(GradientContext& c) {
  Term x = c.input(0), t = call("Tanh", call("Softplus", x));
  return give(c, c.gradient() * (t + x * (1 - t * t) * sigmoid(x)));
}

Status gradientGelu(GradientContext& c) {
  Term x = c.input(0);
  if (c.node().stringAttr("approximate", "none") == "none") {
    Term phi = 0.5 * (call("Erf", x * M_SQRT1_2) + 1), density = call("Exp", x * x * -0.5) * (1 / std::sqrt(2 * M_PI));
    return give(c, c.gradient() * (phi + x * density));
  }
  // y = x sigmoid(z), z = a x + b x^3
  const double a = 2 * std::sqrt(2 / M_PI), b = a * 0.044715;
  Term square = x * x, s = sigmoid(x * (square * b + a));
  return give(c, c.gradient() * (s + x * s * (1 - s) * (square * (3 * b) + a)));
}

Status gradientSwish(GradientContext& c) {
  const double alpha = c.node().floatAttr("alpha", 1);
  Term x = c.input(0), s = sigmoid(x * alpha);
  return give(c, c.gradient() * (s + x * s * (1 - s) * alpha));
}

Status gradientShrink(GradientContext& c) {
  return give(c, whereOrZero(isAbove(call("Abs", c.input(0)), c.node().floatAttr("lambd", 0.5)), c.gradient()));
}

/// Bounds that are tensors get what the data doesn't.
Status gradientClip(GradientContext& c) {
  Term x = c.input(0), g = c.gradient();
  if (c.hasInput(1)) {
    Term below = call("Less", x, c.input(1));
    if (c.wants(1)) c.give(1, whereOrZero(below, g));
    g = where(below, c.builder().scalar(x.dtype(), 0), g);
  }
  if (c.hasInput(2)) {
    Term above = call("Greater", x, c.input(2));
    if (c.wants(2)) c.give(2, whereOrZero(above, g));
    g = where(above, c.builder().scalar(x.dtype(), 0), g);
  }
  return give(c, g);
}

}  // namespace locution::ops

// Gradients of binary.cpp. What was broadcast is summed over by `give`.
#include "ops/gradient.h"

namespace locution::ops {

Status gradientAdd(GradientContext& c) {
  c.give(0, c.gradient());
  c.give(1, c.gradient());
  return Status::ok();
}

Status gradientSub(GradientContext& c) {
  c.give(0, c.gradient());
  if (c.wants(1)) c.give(1, -c.gradient());
  return Status::ok();
}

Status gradientMul(GradientContext& c) {
  if (c.wants(0)) c.give(0, c.gradient() * c.input(1));
  if (c.wants(1)) c.give(1, c.gradient() * c.input(0));
  return Status::ok();
}

Status gradientDiv(GradientContext& c) {
  Term g = c.gradient() / c.input(1);
  c.give(0, g);
  if (c.wants(1)) c.give(1, -(g * c.input(0)) / c.input(1));
  return Status::ok();
}

/// a - b * (a quotient that jumps).
Status gradientMod(GradientContext& c) {
  c.give(0, c.gradient());
  if (c.wants(1)) c.give(1, c.gradient() * (c.output() - c.input(0)) / c.input(1));
  return Status::ok();
}

Status gradientPow(GradientContext& c) {
  Term x = c.input(0), p = cast(c.input(1), x.dtype()), dy = c.gradient();
  if (c.wants(0)) {
    const Tensor* exponent = c.constant(1);
    if (exponent && exponent->elements() == 1 && exponent->elementAsDouble(0) == 2)
      c.give(0, dy * x * 2);
    else
      c.give(0, dy * p * call("Pow", x, p - 1));
  }
  // 0 to the power of p stays 0 around p.
  if (c.wants(1)) {
    Term zero = c.builder().scalar(x.dtype(), 0);
    c.give(1, where(call("Equal", x, zero), zero, dy * c.output() * call("Log", x)));
  }
  return Status::ok();
}

/// The first of equal inputs takes it.
Status gradientExtremum(GradientContext& c) {
  Term open = c.gradient();
  for (size_t i = 0; i < c.inputCount(); ++i) {
    Term taken = call("Equal", c.input(i), c.output());
    if (c.wants(i)) c.give(i, whereOrZero(taken, open));
    if (i + 1 < c.inputCount()) open = where(taken, c.builder().scalar(open.dtype(), 0), open);
  }
  return Status::ok();
}

Status gradientSum(GradientContext& c) {
  for (size_t i = 0; i < c.inputCount(); ++i) c.give(i, c.gradient());
  return Status::ok();
}

Status gradientMean(GradientContext& c) {
  Term g = c.gradient() / static_cast<double>(c.inputCount());
  for (size_t i = 0; i < c.inputCount(); ++i) c.give(i, g);
  return Status::ok();
}

Status gradientWhere(GradientContext& c) {
  Term zero = c.builder().scalar(c.gradient().dtype(), 0);
  if (c.wants(1)) c.give(1, where(c.input(0), c.gradient(), zero));
  if (c.wants(2)) c.give(2, where(c.input(0), zero, c.gradient()));
  return Status::ok();
}

}  // namespace locution::ops

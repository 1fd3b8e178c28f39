// Gradients of normalisation.cpp. A row's statistics are computed once more from its input: reading it again costs less than keeping what
// the forward pass knew, and what is written here stays one kernel.
#include <numeric>

#include "ops/gradient.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

std::vector<int64_t> axesFrom(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

}  // namespace

Status gradientSoftmax(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), c.gradient().rank()));
  Term y = c.output(), dy = c.gradient();
  c.give(0, y * (dy - reduce("ReduceSum", dy * y, {axis}, true)));
  return Status::ok();
}

Status gradientLogSoftmax(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), c.gradient().rank()));
  Term dy = c.gradient();
  c.give(0, dy - call("Exp", c.output()) * reduce("ReduceSum", dy, {axis}, true));
  return Status::ok();
}

/// With n = (x - mean) / deviation and g = dy * scale: (g - mean(g) - n mean(g n)) / deviation.
Status gradientLayerNormalization(GradientContext& c) {
  if (c.outputCount() > 1)
    for (size_t i = 1; i < c.outputCount(); ++i)
      if (c.gradient(i)) return Status::error("the mean or the deviation as an output");
  Term x = c.input(0), scale = c.input(1), dy = c.gradient();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), x.rank()));
  const std::vector<int64_t> axes = axesFrom(axis, x.rank());
  Term centred = x - reduce("ReduceMean", x, axes, true);
  Term variance = reduce("ReduceMean", centred * centred, axes, true);
  Term inverse = 1 / call("Sqrt", variance + c.node().floatAttr("epsilon", 1e-5));
  Term n = centred * inverse;
  if (c.wants(0)) {
    Term g = dy * scale;
    c.give(0, (g - reduce("ReduceMean", g, axes, true) - n * reduce("ReduceMean", g * n, axes, true)) * inverse);
  }
  if (c.wants(1)) c.give(1, dy * n);
  if (c.hasInput(2)) c.give(2, dy);
  return Status::ok();
}

Status gradientRMSNormalization(GradientContext& c) {
  Term x = c.input(0), scale = c.input(1), dy = c.gradient();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), x.rank()));
  const std::vector<int64_t> axes = axesFrom(axis, x.rank());
  Term inverse = 1 / call("Sqrt", reduce("ReduceMean", x * x, axes, true) + c.node().floatAttr("epsilon", 1e-5));
  Term n = x * inverse;
  if (c.wants(0)) {
    Term g = dy * scale;
    c.give(0, (g - n * reduce("ReduceMean", g * n, axes, true)) * inverse);
  }
  if (c.wants(1)) c.give(1, dy * n);
  return Status::ok();
}

}  // namespace locution::ops

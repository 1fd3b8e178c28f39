// Gradients of reduction.cpp: what came back goes to every element that was reduced.
#include <numeric>

#include "ops/gradient.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

/// A reduction with its reduced dims put back as dims of 1.
class Reduced {
 public:
  static Result<Reduced> of(GradientContext& c) {
    Reduced r;
    r.dims_ = c.input(0).dims();
    const auto rank = static_cast<int64_t>(r.dims_.size());
    if (c.hasInput(1)) {
      LOCUTION_ASSIGN_OR_RETURN(r.axes_, c.ints(1));
      LOCUTION_ASSIGN_OR_RETURN(r.axes_, normaliseAxes(r.axes_, rank));
    }
    if (r.axes_.empty() && c.node().intAttr("noop_with_empty_axes", 0) == 0) {
      r.axes_.resize(r.dims_.size());
      std::iota(r.axes_.begin(), r.axes_.end(), 0);
    }
    for (int64_t a : r.axes_) {
      r.count_ *= r.dims_[static_cast<size_t>(a)];
      r.dims_[static_cast<size_t>(a)] = 1;
    }
    return r;
  }
  Term kept(const Term& t) const { return reshape(t, dims_); }
  const std::vector<int64_t>& axes() const { return axes_; }
  int64_t count() const { return count_; }

 private:
  std::vector<int64_t> dims_, axes_;
  int64_t count_ = 1;
};

Status finish(GradientContext& c, const Term& g) {
  c.give(0, g);
  return Status::ok();
}

}  // namespace

Status gradientReduceSum(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, r.kept(c.gradient()));
}
Status gradientReduceMean(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, r.kept(c.gradient()) * (1.0 / static_cast<double>(r.count())));
}
/// Equal extrema share it.
Status gradientReduceExtremum(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  Term taken = cast(call("Equal", c.input(0), r.kept(c.output())), c.gradient().dtype());
  return finish(c, taken * (r.kept(c.gradient()) / reduce("ReduceSum", taken, r.axes(), true)));
}
Status gradientReduceL1(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, call("Sign", c.input(0)) * r.kept(c.gradient()));
}
/// 0 where all elements are.
Status gradientReduceL2(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  Term zero = c.builder().scalar(c.gradient().dtype(), 0);
  Term scale = where(call("Greater", c.output(), zero), c.gradient() / c.output(), zero);
  return finish(c, c.input(0) * r.kept(scale));
}
Status gradientReduceSumSquare(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, c.input(0) * r.kept(c.gradient() * 2));
}
Status gradientReduceLogSum(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, r.kept(c.gradient() * call("Exp", -c.output())));
}
Status gradientReduceLogSumExp(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Reduced r, Reduced::of(c));
  return finish(c, call("Exp", c.input(0) - r.kept(c.output())) * r.kept(c.gradient()));
}

Status gradientGlobalAveragePool(GradientContext& c) {
  if (c.node().intAttr("channels_last", 0) != 0) return Status::error("channels that are last");
  int64_t count = 1;
  const std::vector<int64_t> dims = c.input(0).dims();
  for (size_t i = 2; i < dims.size(); ++i) count *= dims[i];
  return finish(c, c.gradient() * (1.0 / static_cast<double>(count)));
}

}  // namespace locution::ops

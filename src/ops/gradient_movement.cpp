// Gradients of operators that move every element to one place or to several: the way back, summed where there were several.
#include <algorithm>
#include <numeric>

#include "ops/gradient.h"
#include "ops/helpers.h"

namespace locution::ops {

Status gradientReshape(GradientContext& c) {
  c.give(0, reshape(c.gradient(), c.input(0).dims()));
  return Status::ok();
}

Status gradientTranspose(GradientContext& c) {
  std::vector<int64_t> perm = c.node().intsAttr("perm"), back(static_cast<size_t>(c.gradient().rank()));
  if (perm.empty()) {
    perm.resize(back.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  c.give(0, transpose(c.gradient(), back));
  return Status::ok();
}

Status gradientConcat(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), c.gradient().rank()));
  int64_t start = 0;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    const int64_t end = start + c.input(i).dims()[static_cast<size_t>(axis)];
    if (c.wants(i)) c.give(i, slice(c.gradient(), axis, start, end));
    start = end;
  }
  return Status::ok();
}

Status gradientSplit(GradientContext& c) {
  std::vector<Term> parts;
  for (size_t i = 0; i < c.outputCount(); ++i) {
    if (!c.node().outputs[i].isValid()) return Status::error("a part that is left out");
    parts.push_back(c.gradient(i) ? c.gradient(i) : c.builder().full(c.output(i).dtype(), c.output(i).dims(), 0));
  }
  c.give(0, parts.size() == 1 ? parts[0] : c.builder().node("Concat", parts, {{"axis", c.node().intAttr("axis", 0)}}));
  return Status::ok();
}

Status gradientExpand(GradientContext& c) {
  c.give(0, c.gradient());
  return Status::ok();
}

/// The repetitions as dims of their own, which are summed over.
Status gradientTile(GradientContext& c) {
  std::vector<int64_t> in = c.input(0).dims(), out = c.gradient().dims(), apart, axes;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == 0) return Status::error("an input without elements");
    axes.push_back(static_cast<int64_t>(apart.size()));
    apart.insert(apart.end(), {out[i] / in[i], in[i]});
  }
  c.give(0, reduce("ReduceSum", reshape(c.gradient(), apart), axes, false));
  return Status::ok();
}

Status gradientTrilu(GradientContext& c) {
  std::vector<Term> inputs = {c.gradient()};
  if (c.hasInput(1)) inputs.push_back(c.input(1));
  c.give(0, c.builder().node("Trilu", inputs, {{"upper", c.node().intAttr("upper", 1)}}));
  return Status::ok();
}

Status gradientCumSum(GradientContext& c) {
  const int64_t reverse = c.node().intAttr("reverse", 0) != 0;
  c.give(0, c.builder().node("CumSum", {c.gradient(), c.input(1)},
                             {{"exclusive", c.node().intAttr("exclusive", 0)}, {"reverse", 1 - reverse}}));
  return Status::ok();
}

}  // namespace locution::ops

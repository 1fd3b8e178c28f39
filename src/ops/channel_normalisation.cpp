// Normalisations and pools that know of channels: BatchNormalization, InstanceNormalization, GroupNormalization, LRN,
// GlobalAveragePool, GlobalMaxPool, GlobalLpPool. Channels are dim 1, or the last with channels_last.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/moments.h"
#include "ops/power.h"
#include "ops/reducer.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Combiner;
using loop::Expr;

namespace {

std::vector<int64_t> spatialAxes(const SpatialLayout& layout) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < layout.spatialRank(); ++i) axes.push_back(layout.spatial(i));
  return axes;
}

SpatialLayout layoutOf(const ComputeContext& c) { return SpatialLayout::of(c.node(), c.input(0).shape.rank()); }

/// Vector input i at `channel`, in the type that input 0 is computed in.
Expr perChannel(ComputeContext& c, size_t i, const Expr& channel) {
  return loop::cast(computeType(c.input(0).dtype), widened(c, i, {channel}));
}

/// Inputs from..to are vectors as long as there are channels.
Status needChannelVectors(const InferContext& c, size_t from, size_t to, const std::vector<Dim>& lengths) {
  for (size_t i = from; i <= to; ++i) {
    LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
    LOCUTION_RETURN_IF_ERROR(needRank(c, i, 1));
    if (!c.input(i).shape.isRanked()) continue;
    const Dim& n = c.input(i).shape[0];
    bool fits = lengths.empty();
    for (const Dim& length : lengths) fits = fits || needSameDim(n, length, "").isOk();
    if (!fits)
      return Status::error("input " + std::to_string(i) + ": expected " + lengths.front().str() +
                           " elements (the channels of " + c.input(0).shape.str() + "), got " + n.str());
  }
  return Status::ok();
}

Result<std::vector<Dim>> channelsOf(const InferContext& c, int64_t minimumRank) {
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) return std::vector<Dim>();
  if (in.rank() < minimumRank)
    return Status::error("expected " + std::to_string(minimumRank) + " or more dimensions, got shape " + in.str());
  if (in.rank() == 1) return std::vector<Dim>{Dim(1)};
  return std::vector<Dim>{in[SpatialLayout::of(c.node(), in.rank()).channel()]};
}

}  // namespace

Status inferBatchNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 5));
  bool training = c.node().intAttr("training_mode", 0) != 0;
  if (!training && (c.wantsOutput(1) || c.wantsOutput(2)))
    return Status::error("running statistics are asked for, but training_mode isn't set");
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Dim> channels, channelsOf(c, 1));
  LOCUTION_RETURN_IF_ERROR(needChannelVectors(c, 1, 4, channels));
  for (size_t i : {1, 2})
    if (c.wantsOutput(i)) c.setOutput(i, c.input(i + 2));
  return inferFloatUnary(c);
}

namespace {

/// By the batch's own mean and variance, which move the running ones.
Status normaliseByBatch(ComputeContext& c, const SpatialLayout& layout, double epsilon) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < layout.rank; ++i)
    if (layout.rank == 1 || i != layout.channel()) axes.push_back(i);
  Reducer r(c, c.inputExtents(0), axes);
  auto x = [&](const std::vector<Expr>& full) { return widened(c, 0, full); };
  Moments m = moments(r, x, [](const Expr& variance) { return variance; });
  double momentum = c.node().floatAttr("momentum", 0.9);
  for (size_t i : {1, 2}) {
    if (!c.wantsOutput(i)) continue;
    const loop::BufferRef& now = i == 1 ? m.mean : m.scale;
    LOCUTION_RETURN_IF_ERROR(injective(c, i, [&](const std::vector<Expr>& at) {
      Expr batch = loop::load(now, layout.rank == 1 ? std::vector<Expr>{} : at);
      DType type = batch->type.dtype;
      Expr before = loop::cast(type, widened(c, i + 2, at));
      Expr after = before * loop::constant(type, momentum) + batch * loop::constant(type, 1 - momentum);
      return loop::cast(c.output(i).dtype, after);
    }));
  }
  if (!c.wantsOutput(0)) return Status::ok();
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr channel = layout.rank == 1 ? loop::index(0) : at[static_cast<size_t>(layout.channel())];
    Expr scale = inverseDeviation(r.at(m.scale, at), epsilon) * perChannel(c, 1, channel);
    return (x(at) - r.at(m.mean, at)) * scale + perChannel(c, 2, channel);
  });
}

}  // namespace

Status computeBatchNormalization(ComputeContext& c) {
  SpatialLayout layout = layoutOf(c);
  double epsilon = c.node().floatAttr("epsilon", 1e-5);
  if (c.node().intAttr("training_mode", 0) != 0) return normaliseByBatch(c, layout, epsilon);
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr channel = layout.rank == 1 ? loop::index(0) : at[static_cast<size_t>(layout.channel())];
    auto p = [&](size_t i) { return perChannel(c, i, channel); };
    return (widened(c, 0, at) - p(3)) * (p(1) * inverseDeviation(p(4), epsilon)) + p(2);
  });
}

Status inferInstanceNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Dim> channels, channelsOf(c, 2));
  LOCUTION_RETURN_IF_ERROR(needChannelVectors(c, 1, 2, channels));
  return inferFloatUnary(c);
}

Status computeInstanceNormalization(ComputeContext& c) {
  SpatialLayout layout = layoutOf(c);
  Reducer r(c, c.inputExtents(0), spatialAxes(layout));
  auto x = [&](const std::vector<Expr>& full) { return widened(c, 0, full); };
  Moments m = moments(r, x, [&](const Expr& v) { return inverseDeviation(v, c.node().floatAttr("epsilon", 1e-5)); });
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    const Expr& channel = at[static_cast<size_t>(layout.channel())];
    return (x(at) - r.at(m.mean, at)) * (r.at(m.scale, at) * perChannel(c, 1, channel)) + perChannel(c, 2, channel);
  });
}

Status inferGroupNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(dtypeAttr(c.node(), "stash_type").status());
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Dim> lengths, channelsOf(c, 2));
  int64_t groups = c.node().intAttr("num_groups", 0);
  if (groups < 1) return Status::error("attribute 'num_groups': expected 1 or more, got " + std::to_string(groups));
  if (!lengths.empty()) {
    if (lengths[0].isKnown() && lengths[0].value() % groups != 0)
      return Status::error(lengths[0].str() + " channels aren't a multiple of " + std::to_string(groups) + " groups");
    // Opset 18 had a scale a group.
    lengths.emplace_back(groups);
  }
  LOCUTION_RETURN_IF_ERROR(needChannelVectors(c, 1, 2, lengths));
  return inferFloatUnary(c);
}

Status computeGroupNormalization(ComputeContext& c) {
  SpatialLayout layout = layoutOf(c);
  std::vector<int64_t> extents = c.inputExtents(0);
  auto at = static_cast<size_t>(layout.channel());
  int64_t groups = c.node().intAttr("num_groups", 1), channels = extents[at], size = channels / groups;
  // Seen as N, groups, channels of a group, spatial... (or N, spatial..., groups, channels of a group).
  std::vector<int64_t> view = extents, axes;
  view[at] = groups;
  view.insert(view.begin() + static_cast<std::ptrdiff_t>(at) + 1, size);
  for (size_t i = 1; i < view.size(); ++i)
    if (i != at) axes.push_back(static_cast<int64_t>(i));
  auto viewed = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> out = indices;
    out[at] = size == 0 ? loop::index(0) : floorDiv(indices[at], loop::index(size));
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(at) + 1,
               size == 0 ? loop::index(0) : floorMod(indices[at], loop::index(size)));
    return out;
  };
  auto x = [&](const std::vector<Expr>& full) {
    std::vector<Expr> in = full;
    in[at] = full[at] * size + full[at + 1];
    in.erase(in.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    return widened(c, 0, in);
  };
  Reducer r(c, view, axes);
  Moments m = moments(r, x, [&](const Expr& v) { return inverseDeviation(v, c.node().floatAttr("epsilon", 1e-5)); });
  return injective(c, 0, [&](const std::vector<Expr>& indices) {
    std::vector<Expr> full = viewed(indices);
    auto p = [&](size_t i) { return perChannel(c, i, c.inputExtents(i)[0] == channels ? indices[at] : full[at]); };
    return (widened(c, 0, indices) - r.at(m.mean, full)) * (r.at(m.scale, full) * p(1)) + p(2);
  });
}

Status inferLRN(InferContext& c) {
  int64_t size = c.node().intAttr("size", 0);
  if (size < 1) return Status::error("attribute 'size': expected 1 or more, got " + std::to_string(size));
  if (c.hasInput(0)) LOCUTION_RETURN_IF_ERROR(channelsOf(c, 2).status());
  return inferFloatUnary(c);
}

Status computeLRN(ComputeContext& c) {
  SpatialLayout layout = layoutOf(c);
  auto at = static_cast<size_t>(layout.channel());
  std::vector<int64_t> extents = c.inputExtents(0);
  int64_t size = std::min(c.node().intAttr("size", 1), 2 * extents[at] + 1),
          before = (c.node().intAttr("size", 1) - 1) / 2;
  if (before > extents[at])
    return Status::error("attribute 'size' " + std::to_string(c.node().intAttr("size", 1)) +
                         " exceeds twice the channels");
  double alpha = c.node().floatAttr("alpha", 1e-4), beta = c.node().floatAttr("beta", 0.75),
         bias = c.node().floatAttr("bias", 1);
  loop::Stage s;
  s.out = c.outputBuffer(0);
  s.axes = makeAxes(extents);
  s.reduce = {{loop::makeVar("r" + std::to_string(at)), size}};
  s.combiner = Combiner::Sum;
  std::vector<Expr> centre = varsOf(s.axes), near = centre;
  near[at] = centre[at] - before + s.reduce[0].var;
  Expr inside = logicalAnd(le(loop::index(0), near[at]), lt(near[at], loop::index(extents[at])));
  Expr squared = shared(widened(c, 0, near), [](const Expr& x) { return x * x; });
  s.body = loop::select(inside, squared, loop::constant(squared->type.dtype, 0));
  s.acc = loop::makeVar("acc", s.body->type);
  DType type = s.body->type.dtype;
  Expr base = loop::constant(type, bias) +
              loop::constant(type, alpha / static_cast<double>(c.node().intAttr("size", 1))) * s.acc;
  Expr divisor = constantPower(base, beta);
  if (!divisor) divisor = power(base, loop::constant(type, beta));
  s.epilogue = loop::cast(c.output(0).dtype, widened(c, 0, centre) / divisor);
  c.addStage(std::move(s));
  return Status::ok();
}

Status inferGlobalPool(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferFloatUnary(c));
  LOCUTION_RETURN_IF_ERROR(channelsOf(c, 2).status());
  Shape out = c.input(0).shape;
  if (out.isRanked())
    for (int64_t a : spatialAxes(SpatialLayout::of(c.node(), out.rank()))) out[a] = Dim(1);
  if (c.node().op == "GlobalLpPool" && c.node().intAttr("p", 2) < 1)
    return Status::error("attribute 'p': expected 1 or more, got " + std::to_string(c.node().intAttr("p", 2)));
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computeGlobalAveragePool(ComputeContext& c) {
  Reducer r(c, c.inputExtents(0), spatialAxes(layoutOf(c)));
  r.output(
      0, true, Combiner::Sum, [&](const std::vector<Expr>& full) { return widened(c, 0, full); },
      [&](const Expr& sum, const std::vector<Expr>&) {
        return sum / loop::constant(sum->type.dtype, static_cast<double>(r.count()));
      });
  return Status::ok();
}

Status computeGlobalMaxPool(ComputeContext& c) {
  Reducer r(c, c.inputExtents(0), spatialAxes(layoutOf(c)));
  r.output(0, true, Combiner::Max, [&](const std::vector<Expr>& full) { return widened(c, 0, full); });
  return Status::ok();
}

Status computeGlobalLpPool(ComputeContext& c) {
  auto p = static_cast<double>(c.node().intAttr("p", 2));
  auto raised = [](const Expr& x, double e) {
    Expr quick = constantPower(x, e);
    return quick ? quick : power(x, loop::constant(x->type.dtype, e));
  };
  Reducer r(c, c.inputExtents(0), spatialAxes(layoutOf(c)));
  r.output(
      0, true, Combiner::Sum,
      [&](const std::vector<Expr>& full) { return raised(loop::call("abs", {widened(c, 0, full)}), p); },
      [&](const Expr& sum, const std::vector<Expr>&) { return raised(sum, 1 / p); });
  return Status::ok();
}

}  // namespace locution::ops

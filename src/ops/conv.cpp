// Conv in 1, 2 and 3 (or more) spatial dims: one contraction whose loads are affine and unguarded. Padding is a stage of its
// own in front; groups divide the output channel, a depthwise convolution indexes it directly.
#include "ops/conv.h"

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// The weights' kernel when all of it is known.
std::optional<std::vector<int64_t>> knownKernel(const Shape& weights) {
  if (!weights.isRanked()) return std::nullopt;
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < weights.rank(); ++i) {
    if (!weights[i].isKnown()) return std::nullopt;
    kernel.push_back(weights[i].value());
  }
  return kernel;
}

Status checkChannels(const Shape& x, const Shape& w, const SpatialLayout& layout, int64_t group) {
  if (group < 1) return Status::error("attribute group is " + std::to_string(group) + ", expected at least 1");
  const Dim& channels = x[layout.channel()];
  if (channels.isKnown() && w[1].isKnown()) {
    int64_t in = channels.value(), each = w[1].value();
    if (in % group != 0 || in / group != each) {
      return Status::error("input has " + std::to_string(in) + " channels, weights want " +
                           (Dim(each) * Dim(group)).str() + " (group " + std::to_string(group) + ")");
    }
  }
  if (w[0].isKnown() && w[0].value() % group != 0) {
    return Status::error("weights have " + w[0].str() + " output channels, not divisible by group " +
                         std::to_string(group));
  }
  return Status::ok();
}

}  // namespace

Status inferConvolution(InferContext& c, size_t xi, size_t wi, int64_t bias, DType output) {
  const Shape &x = c.input(xi).shape, &w = c.input(wi).shape;
  if (!x.isRanked()) {
    c.setOutput(0, output, Shape::unranked());
    return Status::ok();
  }
  if (w.isRanked() && w.rank() != x.rank()) {
    return Status::error("input has rank " + std::to_string(x.rank()) + ", weights have rank " +
                         std::to_string(w.rank()));
  }
  SpatialLayout layout = SpatialLayout::of(c.node(), x.rank());
  LOCUTION_ASSIGN_OR_RETURN(Window window, parseWindow(c.node(), layout.spatialRank(), knownKernel(w)));
  Dim channels = w.isRanked() ? w[0] : c.freshDim();
  if (w.isRanked()) LOCUTION_RETURN_IF_ERROR(checkChannels(x, w, layout, c.node().intAttr("group", 1)));
  if (bias >= 0 && c.hasInput(static_cast<size_t>(bias))) {
    const Shape& b = c.input(static_cast<size_t>(bias)).shape;
    if (b.isRanked() && b.rank() != 1) return Status::error("bias has the shape " + b.str() + ", expected one dim");
    if (b.isRanked()) LOCUTION_RETURN_IF_ERROR(needSameDim(b[0], channels, "elements of the bias"));
  }
  std::vector<Dim> spatial;
  for (int64_t i = 0; i < layout.spatialRank(); ++i) {
    if (window.kernel.empty()) {
      spatial.push_back(c.freshDim());
      continue;
    }
    LOCUTION_ASSIGN_OR_RETURN(Dim extent, windowOutput(window, static_cast<size_t>(i), x[layout.spatial(i)]));
    spatial.push_back(extent);
  }
  c.setOutput(0, output, Shape(layout.arrange(x[0], channels, spatial)));
  return Status::ok();
}

Status computeConvolution(ComputeContext& c, const ConvOperands& op) {
  std::vector<int64_t> xDims = c.inputExtents(op.x), wDims = c.inputExtents(op.w), outDims = c.outputExtents();
  SpatialLayout layout = SpatialLayout::of(c.node(), static_cast<int64_t>(xDims.size()));
  std::vector<int64_t> in = layout.spatialOf(xDims), out = layout.spatialOf(outDims);
  LOCUTION_ASSIGN_OR_RETURN(
      Window window, parseWindow(c.node(), layout.spatialRank(), std::vector<int64_t>(wDims.begin() + 2, wDims.end())));
  resolvePads(window, in);
  int64_t group = c.node().intAttr("group", 1), perGroup = wDims[1], outPerGroup = wDims[0] / group;

  // The padded copy holds what the windows read and no more.
  std::vector<int64_t> end;
  for (size_t i = 0; i < window.rank(); ++i) {
    int64_t needed = out[i] == 0 ? 0 : (out[i] - 1) * window.strides[i] + window.span(i);
    end.push_back(std::max<int64_t>(0, needed - window.padBegin[i] - in[i]));
  }
  Margins margins{layout.arrange<int64_t>(0, 0, window.padBegin), layout.arrange<int64_t>(0, 0, end)};
  LOCUTION_ASSIGN_OR_RETURN(loop::BufferRef source, padded(c, op.x, margins, op.padValue));

  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(outDims);
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> vars = varsOf(stage.axes), outVars = layout.spatialOf(vars);
  Expr oc = vars[static_cast<size_t>(layout.channel())];
  std::vector<loop::Axis> kernel = windowAxes(window);
  loop::Axis ic{loop::makeVar("ic"), perGroup};
  bool depthwise = group > 1 && perGroup == 1;
  if (layout.channelsLast || depthwise) stage.reduce = kernel;
  if (!depthwise) stage.reduce.push_back(ic);
  if (!layout.channelsLast && !depthwise) stage.reduce.insert(stage.reduce.end(), kernel.begin(), kernel.end());

  Expr within = depthwise ? loop::index(0) : Expr(ic.var), channel = within;
  if (group > 1) {
    Expr g = outPerGroup == 1 ? oc : floorDiv(oc, loop::index(outPerGroup));
    channel = g * perGroup + within;
  }
  std::vector<Expr> position, wIndices{oc, within};
  for (size_t i = 0; i < window.rank(); ++i) {
    position.push_back(outVars[i] * window.strides[i] + Expr(kernel[i].var) * window.dilations[i]);
    wIndices.push_back(kernel[i].var);
  }
  Expr x = load(source, layout.arrange(vars[0], channel, position));
  stage.body = op.mapX(x) * op.mapW(c.at(op.w, wIndices), oc);
  stage.acc = loop::makeVar("acc", {op.accumulator, 1});
  stage.epilogue = op.finish(stage.acc, oc);
  if (stage.epilogue == Expr(stage.acc)) {
    stage.acc = nullptr;
    stage.epilogue = nullptr;
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

Status inferConv(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  return inferConvolution(c, 0, 1, 2, c.input(0).dtype);
}

Status computeConv(ComputeContext& c) {
  DType type = c.input(0).dtype;
  ConvOperands op;
  op.accumulator = accumulatorType(type);
  op.padValue = loop::constant(type, 0);
  op.mapX = [&](Expr e) { return castTo(op.accumulator, std::move(e)); };
  op.mapW = [&](Expr e, const Expr&) { return castTo(op.accumulator, std::move(e)); };
  op.finish = [&](Expr acc, const Expr& oc) {
    if (c.hasInput(2)) acc = acc + castTo(op.accumulator, c.at(2, {oc}));
    return castTo(type, acc);
  };
  return computeConvolution(c, op);
}

bool movesWindowOfThree(const graph::Node& node, const std::vector<int64_t>& weights) {
  if (weights.size() < 3 || node.intAttr("group", 1) != 1) return false;
  for (const char* key : {"strides", "dilations"})
    for (int64_t n : node.intsAttr(key))
      if (n != 1) return false;
  return std::all_of(weights.begin() + 2, weights.end(), [](int64_t n) { return n == 1 || n == 3; }) &&
         std::any_of(weights.begin() + 2, weights.end(), [](int64_t n) { return n == 3; });
}

}  // namespace locution::ops

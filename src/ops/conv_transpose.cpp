// ConvTranspose as a plain convolution. Where the stride s is 1, the window is turned around. Where it is larger, output o = s * q + r
// gets only the kernel elements k = r + s * j, so each phase r is a convolution of ceil(K / s) elements over the unspread input
// ("sub-pixel convolution", Shi et al. 2016): one contraction with the phases as axes, then a copy that interleaves them. Only with
// stride and dilation both above 1 the input is spread with zeros first. All loads of the contraction are affine and unguarded.
#include <algorithm>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<std::vector<int64_t>> spatialAttr(const graph::Node& node, const char* key, size_t rank) {
  std::vector<int64_t> values = node.intsAttr(key);
  if (!values.empty() && values.size() != rank) {
    return Status::error("attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                         " entries, expected " + std::to_string(rank));
  }
  for (int64_t v : values) {
    if (v < 0 || v > (int64_t{1} << 40))
      return Status::error("attribute " + std::string(key) + " has the entry " + std::to_string(v));
  }
  return values;
}

bool isSame(const Window& w) { return w.autoPad == AutoPad::SameUpper || w.autoPad == AutoPad::SameLower; }

/// Extents before the pads take their part.
Dim fullExtent(const Window& w, size_t i, const Dim& in, int64_t outputPadding) {
  return (in - Dim(1)) * Dim(w.strides[i]) + Dim(outputPadding) + Dim(w.span(i));
}

/// How one spatial dim is computed.
struct Phase {
  int64_t spread = 1;           ///< distance of the input's elements in the source
  int64_t stride = 1;           ///< phases
  int64_t taps = 1, step = 1;   ///< kernel elements a phase, and their distance in the source
  int64_t first = 0;            ///< the quotient of output 0
  int64_t count = 0;            ///< quotients that outputs have
  int64_t lead = 0, total = 0;  ///< of the source: elements in front of the input, and all
};

Phase phaseOf(const Window& w, size_t i, int64_t out) {
  Phase p;
  int64_t s = w.strides[i];
  if (s == 1 || w.dilations[i] > 1) {
    p.spread = s;
    p.taps = w.kernel[i];
    p.step = w.dilations[i];
    p.count = out;
    p.lead = w.span(i) - 1 - w.padBegin[i];
    p.total = out + w.span(i) - 1;
    return p;
  }
  p.stride = s;
  p.taps = ceilDivide(w.kernel[i], s);
  p.first = w.padBegin[i] / s;
  p.count = out == 0 ? 0 : (out - 1 + w.padBegin[i]) / s - p.first + 1;
  p.lead = p.taps - 1 - p.first;
  p.total = p.count + p.taps - 1;
  return p;
}

}  // namespace

Status inferConvTranspose(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  const Shape &x = c.input(0).shape, &w = c.input(1).shape;
  if (!x.isRanked() || !w.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  if (w.rank() != x.rank())
    return Status::error("input has rank " + std::to_string(x.rank()) + ", weights have rank " +
                         std::to_string(w.rank()));
  SpatialLayout layout = SpatialLayout::of(c.node(), x.rank());
  std::optional<std::vector<int64_t>> kernel = std::vector<int64_t>();
  for (int64_t i = 2; i < w.rank() && kernel; ++i) {
    if (w[i].isKnown()) {
      kernel->push_back(w[i].value());
    } else {
      kernel.reset();
    }
  }
  LOCUTION_ASSIGN_OR_RETURN(Window window, parseWindow(c.node(), layout.spatialRank(), kernel));
  int64_t group = c.node().intAttr("group", 1);
  if (group < 1) return Status::error("attribute group is " + std::to_string(group) + ", expected at least 1");
  LOCUTION_RETURN_IF_ERROR(needSameDim(x[layout.channel()], w[0], "channels of the input"));
  if (w[0].isKnown() && w[0].value() % group != 0) {
    return Status::error("weights have " + w[0].str() + " input channels, not divisible by group " +
                         std::to_string(group));
  }
  Dim channels = w[1] * Dim(group);
  if (c.hasInput(2) && c.input(2).shape.isRanked()) {
    const Shape& b = c.input(2).shape;
    if (b.rank() != 1) return Status::error("bias has the shape " + b.str() + ", expected one dim");
    LOCUTION_RETURN_IF_ERROR(needSameDim(b[0], channels, "elements of the bias"));
  }
  LOCUTION_ASSIGN_OR_RETURN(auto outputShape, spatialAttr(c.node(), "output_shape", window.rank()));
  LOCUTION_ASSIGN_OR_RETURN(auto outputPadding, spatialAttr(c.node(), "output_padding", window.rank()));
  outputPadding.resize(window.rank(), 0);
  std::vector<Dim> spatial;
  for (size_t i = 0; i < window.rank(); ++i) {
    const Dim& in = x[layout.spatial(static_cast<int64_t>(i))];
    if (!outputShape.empty()) {
      spatial.emplace_back(outputShape[i]);
    } else if (isSame(window)) {
      spatial.push_back(in * Dim(window.strides[i]));
    } else if (window.kernel.empty()) {
      spatial.push_back(c.freshDim());
    } else {
      Dim extent = fullExtent(window, i, in, outputPadding[i]) - Dim(window.padBegin[i]) - Dim(window.padEnd[i]);
      if (extent.isKnown() && extent.value() < 0) {
        return Status::error("the output would have " + extent.str() + " elements in spatial dim " + std::to_string(i));
      }
      spatial.push_back(extent);
    }
  }
  c.setOutput(0, c.input(0).dtype, Shape(layout.arrange(x[0], channels, spatial)));
  return Status::ok();
}

Status computeConvTranspose(ComputeContext& c) {
  std::vector<int64_t> xDims = c.inputExtents(0), wDims = c.inputExtents(1), outDims = c.outputExtents();
  SpatialLayout layout = SpatialLayout::of(c.node(), static_cast<int64_t>(xDims.size()));
  std::vector<int64_t> in = layout.spatialOf(xDims), out = layout.spatialOf(outDims);
  LOCUTION_ASSIGN_OR_RETURN(
      Window w, parseWindow(c.node(), layout.spatialRank(), std::vector<int64_t>(wDims.begin() + 2, wDims.end())));
  LOCUTION_ASSIGN_OR_RETURN(auto outputPadding, spatialAttr(c.node(), "output_padding", w.rank()));
  outputPadding.resize(w.rank(), 0);
  if (isSame(w) || !c.node().intsAttr("output_shape").empty()) {
    for (size_t i = 0; i < w.rank(); ++i) {
      int64_t total = std::max<int64_t>(0, (fullExtent(w, i, in[i], outputPadding[i]) - Dim(out[i])).value());
      w.padBegin[i] = w.autoPad == AutoPad::SameUpper ? total / 2 : total - total / 2;
    }
  }
  DType type = c.input(0).dtype, accumulator = accumulatorType(type);
  int64_t group = c.node().intAttr("group", 1), perGroup = wDims[0] / group, outPerGroup = wDims[1];

  std::vector<Phase> phases;
  Margins xMargins, wMargins{std::vector<int64_t>(wDims.size(), 0), std::vector<int64_t>(wDims.size(), 0)};
  std::vector<int64_t> begin, end, spread;
  bool interleaved = false;
  for (size_t i = 0; i < w.rank(); ++i) {
    Phase p = phaseOf(w, i, out[i]);
    int64_t own = in[i] == 0 ? 0 : (in[i] - 1) * p.spread + 1;
    begin.push_back(p.lead);
    end.push_back(p.total - p.lead - own);
    spread.push_back(p.spread);
    if (p.stride > 1) wMargins.end[2 + i] = p.taps * p.stride - w.kernel[i];
    interleaved = interleaved || p.stride > 1;
    phases.push_back(p);
  }
  xMargins = {layout.arrange<int64_t>(0, 0, begin), layout.arrange<int64_t>(0, 0, end)};
  Expr zero = loop::constant(type, 0);
  LOCUTION_ASSIGN_OR_RETURN(loop::BufferRef source,
                            padded(c, 0, xMargins, zero, layout.arrange<int64_t>(1, 1, spread)));
  LOCUTION_ASSIGN_OR_RETURN(loop::BufferRef weights, padded(c, 1, wMargins, zero));

  // The contraction's axes: each spatial dim is its quotients, followed by its phases where it has several.
  std::vector<int64_t> spatialExtents;
  for (const Phase& p : phases) {
    spatialExtents.push_back(p.count);
    if (p.stride > 1) spatialExtents.push_back(p.stride);
  }
  SpatialLayout wide{layout.channelsLast, static_cast<int64_t>(spatialExtents.size()) + 2};
  std::vector<int64_t> extents =
      wide.arrange(outDims[0], outDims[static_cast<size_t>(layout.channel())], spatialExtents);
  LOCUTION_RETURN_IF_ERROR(checkElements(extents, "the output"));
  loop::Stage stage;
  stage.out = interleaved ? c.temporary("phases", type, extents) : c.outputBuffer(0);
  stage.axes = makeAxes(extents);
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> vars = varsOf(stage.axes), spatialVars = wide.spatialOf(vars);
  Expr oc = vars[static_cast<size_t>(wide.channel())];
  std::vector<loop::Axis> taps;
  for (size_t i = 0; i < w.rank(); ++i) taps.push_back({loop::makeVar("k" + std::to_string(i)), phases[i].taps});
  loop::Axis ic{loop::makeVar("ic"), perGroup};
  bool depthwise = group > 1 && perGroup == 1;
  if (layout.channelsLast || depthwise) stage.reduce = taps;
  if (!depthwise) stage.reduce.push_back(ic);
  if (!layout.channelsLast && !depthwise) stage.reduce.insert(stage.reduce.end(), taps.begin(), taps.end());

  Expr within = depthwise ? loop::index(0) : Expr(ic.var), channel = within, ocWithin = oc;
  if (group > 1) {
    channel = (outPerGroup == 1 ? oc : floorDiv(oc, loop::index(outPerGroup))) * perGroup + within;
    ocWithin = outPerGroup == 1 ? loop::index(0) : floorMod(oc, loop::index(outPerGroup));
  }
  std::vector<Expr> position, wIndices{channel, ocWithin};
  for (size_t i = 0, axis = 0; i < w.rank(); ++i) {
    const Phase& p = phases[i];
    position.push_back(spatialVars[axis++] + Expr(taps[i].var) * p.step);
    Expr turned = loop::index(p.taps - 1) - taps[i].var;
    if (p.stride > 1) turned = spatialVars[axis++] + turned * p.stride;
    wIndices.push_back(turned);
  }
  stage.body = castTo(accumulator, load(source, layout.arrange(vars[0], channel, position))) *
               castTo(accumulator, load(weights, wIndices));
  if (c.hasInput(2) || accumulator != type) {
    stage.acc = loop::makeVar("acc", {accumulator, 1});
    Expr sum = stage.acc;
    if (c.hasInput(2)) sum = sum + castTo(accumulator, c.at(2, {oc}));
    stage.epilogue = castTo(type, sum);
  }
  loop::BufferRef result = stage.out;
  c.addStage(std::move(stage));
  if (!interleaved) return Status::ok();

  loop::Stage copy;
  copy.out = c.outputBuffer(0);
  copy.axes = makeAxes(outDims);
  std::vector<Expr> outVars = varsOf(copy.axes), o = layout.spatialOf(outVars), from;
  for (size_t i = 0; i < w.rank(); ++i) {
    const Phase& p = phases[i];
    if (p.stride == 1) {
      from.push_back(o[i]);
      continue;
    }
    Expr shifted = o[i] + (w.padBegin[i] - p.stride * p.first);
    from.push_back(floorDiv(shifted, loop::index(p.stride)));
    from.push_back(floorMod(shifted, loop::index(p.stride)));
  }
  copy.body = load(result, wide.arrange(outVars[0], outVars[static_cast<size_t>(layout.channel())], from));
  c.addStage(std::move(copy));
  return Status::ok();
}

}  // namespace locution::ops

// Resize: the output shape from sizes or scales, and Nearest as one gather whose indices are affine wherever the ratio allows. Linear
// and Cubic are in resize_filter.cpp.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Logical dims that are resized.
Result<std::vector<int64_t>> resizedDims(const graph::Node& node, int64_t rank) {
  if (node.hasAttr("axes") && !node.intsAttr("axes").empty()) return normaliseAxes(node.intsAttr("axes"), rank);
  std::vector<int64_t> all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <typename Context>
bool isGiven(const Context& c, size_t i) {
  if (!c.hasInput(i)) return false;
  const Shape& s = c.input(i).shape;
  return !(s.isRanked() && s.rank() == 1 && s[0] == Dim(0));
}

Result<std::vector<float>> readScales(const Tensor& t, size_t count) {
  if (!isFloat(t.dtype()) || t.elements() != static_cast<int64_t>(count)) {
    return Status::error("scales has " + std::to_string(t.elements()) + " entries, expected " + std::to_string(count) +
                         " floats");
  }
  std::vector<float> scales;
  for (int64_t i = 0; i < t.elements(); ++i) {
    auto s = static_cast<float>(t.elementAsDouble(i));
    if (!(s > 0) || !(s < 1e9f))
      return Status::error("scales has the entry " + std::to_string(s) + ", expected a number above 0");
    scales.push_back(s);
  }
  return scales;
}

/// The one scale that a policy other than "stretch" gives all dims; 0: not defined.
float commonScale(const std::string& policy, const std::vector<int64_t>& sizes, const std::vector<int64_t>& in) {
  float scale = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    float s = in[i] == 0 ? 0 : static_cast<float>(sizes[i]) / static_cast<float>(in[i]);
    scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  return scale;
}

int64_t roundedDown(float extent) {
  return extent < 9e18f ? static_cast<int64_t>(extent) : std::numeric_limits<int64_t>::max();
}

/// floor(in * scale); symbolic when the scale is a simple fraction.
Dim scaledDim(InferContext& c, const Dim& in, float scale) {
  if (in.isKnown()) return Dim(roundedDown(static_cast<float>(in.value()) * scale));
  for (int64_t q = 1; q <= 64; ++q) {
    double p = static_cast<double>(scale) * static_cast<double>(q);
    if (p == std::floor(p) && p < 1e6) return floorDiv(in * Dim(static_cast<int64_t>(p)), Dim(q));
  }
  return c.freshDim();
}

}  // namespace

Status inferResize(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(parseResizeMode(c.node()).status());
  std::string policy = c.node().stringAttr("keep_aspect_ratio_policy", "stretch");
  LOCUTION_RETURN_IF_ERROR(needOneOf("keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"}));
  bool hasScales = isGiven(c, 2), hasSizes = isGiven(c, 3);
  if (hasScales == hasSizes)
    return Status::error(hasScales ? "scales and sizes are both given" : "neither scales nor sizes is given");
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  SpatialLayout layout = SpatialLayout::of(c.node(), x.rank());
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, resizedDims(c.node(), x.rank()));
  Shape out = x;
  const Tensor* scales = hasScales ? c.constant(2) : nullptr;
  std::optional<std::vector<Dim>> sizes = hasSizes ? c.inputDims(3) : std::nullopt;
  std::vector<float> factors;
  if (scales) {
    LOCUTION_ASSIGN_OR_RETURN(factors, readScales(*scales, axes.size()));
  }
  if (sizes && sizes->size() != axes.size()) {
    return Status::error("sizes has " + std::to_string(sizes->size()) + " entries, expected " +
                         std::to_string(axes.size()));
  }
  if (sizes) {
    for (const Dim& d : *sizes) {
      if (d.isKnown() && d.value() < 0) return Status::error("sizes has the entry " + d.str());
    }
  }
  std::optional<float> common;
  if (sizes && policy != "stretch") {
    std::vector<int64_t> want, have;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim& in = x[layout.physical(axes[i])];
      if (!in.isKnown() || !(*sizes)[i].isKnown()) continue;
      have.push_back(in.value());
      want.push_back((*sizes)[i].value());
    }
    if (want.size() == axes.size()) common = commonScale(policy, want, have);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& d = out[layout.physical(axes[i])];
    if (scales) {
      d = scaledDim(c, d, factors[i]);
    } else if (common) {
      d = Dim(roundedDown(static_cast<float>(d.value()) * *common + 0.5f));
    } else if (sizes && policy == "stretch") {
      d = (*sizes)[i];
    } else {
      d = c.freshDim();
    }
  }
  c.setOutput(0, c.input(0).dtype, out);
  return Status::ok();
}

namespace {

/// The dims that change, with their scales.
Result<std::vector<ResizeAxis>> resizeAxes(ComputeContext& c, const ResizeMode& mode) {
  std::vector<int64_t> in = c.inputExtents(0), out = c.outputExtents();
  auto rank = static_cast<int64_t>(in.size());
  SpatialLayout layout = SpatialLayout::of(c.node(), rank);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, resizedDims(c.node(), rank));
  std::vector<float> scales, roi;
  if (isGiven(c, 2)) {
    if (!c.constant(2)) return Status::error("input 2 (scales) must be known at compile time");
    LOCUTION_ASSIGN_OR_RETURN(scales, readScales(*c.constant(2), dims.size()));
  }
  float common = 0;
  std::string policy = c.node().stringAttr("keep_aspect_ratio_policy", "stretch");
  if (scales.empty() && policy != "stretch") {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, constantInts(c, 3, "sizes"));
    std::vector<int64_t> have;
    for (int64_t d : dims) have.push_back(in[static_cast<size_t>(layout.physical(d))]);
    if (sizes.size() != have.size()) return Status::error("sizes has " + std::to_string(sizes.size()) + " entries");
    common = commonScale(policy, sizes, have);
  }
  if (mode.crops()) {
    const Tensor* t = c.hasInput(1) ? c.constant(1) : nullptr;
    if (!t || t->elements() != 2 * static_cast<int64_t>(dims.size())) {
      return Status::error("tf_crop_and_resize wants input 1 (roi) with " + std::to_string(2 * dims.size()) +
                           " entries known at compile time");
    }
    for (int64_t i = 0; i < t->elements(); ++i) roi.push_back(static_cast<float>(t->elementAsDouble(i)));
  }
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    ResizeAxis a;
    a.dim = layout.physical(dims[i]);
    a.in = in[static_cast<size_t>(a.dim)];
    a.out = out[static_cast<size_t>(a.dim)];
    if (a.out == 0) continue;
    if (a.in == 0)
      return Status::error("dim " + std::to_string(dims[i]) + " is empty and can't be resized to " +
                           std::to_string(a.out));
    if (!scales.empty()) {
      a.scale = scales[i];
      a.width = static_cast<double>(a.scale) * static_cast<double>(a.in);
    } else if (common != 0) {
      a.scale = common;
      a.width = static_cast<double>(a.scale) * static_cast<double>(a.in);
    } else {
      a.scale = static_cast<float>(a.out) / static_cast<float>(a.in);
      a.width = static_cast<double>(a.out);
    }
    if (mode.crops()) {
      a.roiStart = roi[i];
      a.roiEnd = roi[dims.size() + i];
    }
    bool whole = !mode.crops() || (a.roiStart == 0 && a.roiEnd == 1);
    if (a.scale == 1 && a.in == a.out && whole) continue;
    axes.push_back(a);
  }
  return axes;
}

/// The index expression of Nearest for one dim: (o * a + b) / c when some small fraction gives the same as the float arithmetic.
Result<Expr> nearestPosition(ComputeContext& c, const ResizeMode& mode, const ResizeAxis& a, const Expr& o) {
  LOCUTION_RETURN_IF_ERROR(checkElements({a.out}, "the table of positions"));
  std::vector<int64_t> table;
  for (int64_t i = 0; i < std::min<int64_t>(a.out, 1 << 20); ++i) table.push_back(nearestIndex(mode, a, i));
  AffineIndex fit;
  bool fits = false;
  if (static_cast<int64_t>(table.size()) == a.out && a.in < (int64_t{1} << 31)) {
    int64_t g = std::gcd(a.in, a.out);
    fits = fitAffine(table, a.in / g, a.out / g, &fit);
    for (int64_t q = 1; q <= 16 && !fits; ++q)
      fits = fitAffine(table, std::llround(static_cast<double>(q) / a.scale), q, &fit);
  }
  if (fits) {
    Expr scaled = o * fit.multiplier + fit.offset;
    return fit.divisor == 1 ? scaled : floorDiv(scaled, loop::index(fit.divisor));
  }
  loop::Stage positions;
  positions.out = c.temporary("positions", DType::I64, {a.out});
  positions.axes = makeAxes({a.out});
  positions.body = nearestIndex(mode, a, Expr(positions.axes[0].var));
  loop::BufferRef buffer = positions.out;
  c.addStage(std::move(positions));
  return load(buffer, {o});
}

Status resizeNearest(ComputeContext& c, const ResizeMode& mode, const std::vector<ResizeAxis>& axes) {
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  std::vector<Expr> vars = varsOf(stage.axes), indices = vars;
  for (const ResizeAxis& a : axes) {
    auto d = static_cast<size_t>(a.dim);
    LOCUTION_ASSIGN_OR_RETURN(indices[d], nearestPosition(c, mode, a, vars[d]));
  }
  stage.body = c.at(0, indices);
  if (Expr outside = outsideCrop(mode, axes, vars))
    stage.body = select(outside, loop::constant(c.output(0).dtype, mode.extrapolation), stage.body);
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace

Status computeResize(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(ResizeMode mode, parseResizeMode(c.node()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes, resizeAxes(c, mode));
  if (Shape::of(c.outputExtents()).elements() == 0) axes.clear();
  if (mode.kind == ResizeMode::Kind::Nearest || axes.empty()) return resizeNearest(c, mode, axes);
  return resizeFiltered(c, mode, std::move(axes));
}

}  // namespace locution::ops

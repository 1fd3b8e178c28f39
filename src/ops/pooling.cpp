// MaxPool (with Indices), AveragePool and LpPool: one reduction over the window. A position outside the input counts as the
// combiner's identity; the divisor of an average is an expression of the output position. NaN propagates through the maximum.
#include <algorithm>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

Status inferPool(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  const Shape& x = c.input(0).shape;
  Shape shape = Shape::unranked();
  if (x.isRanked()) {
    SpatialLayout layout = SpatialLayout::of(c.node(), x.rank());
    LOCUTION_ASSIGN_OR_RETURN(Window window, parseWindow(c.node(), layout.spatialRank(), std::nullopt));
    if (window.kernel.empty()) return Status::error("attribute kernel_shape is missing");
    std::vector<Dim> spatial;
    for (int64_t i = 0; i < layout.spatialRank(); ++i) {
      LOCUTION_ASSIGN_OR_RETURN(Dim extent, windowOutput(window, static_cast<size_t>(i), x[layout.spatial(i)]));
      spatial.push_back(extent);
    }
    shape = Shape(layout.arrange(x[0], x[layout.channel()], spatial));
  }
  c.setOutput(0, c.input(0).dtype, shape);
  if (c.wantsOutput(1)) c.setOutput(1, DType::I64, shape);
  return Status::ok();
}

/// One pooling stage in the making.
struct Pool {
  SpatialLayout layout;
  std::vector<int64_t> xDims, outDims, in, out;
  Window window;
  std::vector<loop::Axis> axes, kernel;
  std::vector<Expr> vars, outVars;
  WindowPosition at;
  std::vector<Expr> indices;  ///< into the input

  static Result<Pool> make(ComputeContext& c) {
    Pool p;
    p.xDims = c.inputExtents(0);
    p.outDims = c.wantsOutput(0) ? c.outputExtents(0) : c.outputExtents(1);
    p.layout = SpatialLayout::of(c.node(), static_cast<int64_t>(p.xDims.size()));
    LOCUTION_ASSIGN_OR_RETURN(p.window, parseWindow(c.node(), p.layout.spatialRank(), std::nullopt));
    p.in = p.layout.spatialOf(p.xDims);
    p.out = p.layout.spatialOf(p.outDims);
    resolvePads(p.window, p.in);
    p.axes = makeAxes(p.outDims);
    p.kernel = windowAxes(p.window);
    p.vars = varsOf(p.axes);
    p.outVars = p.layout.spatialOf(p.vars);
    p.at = windowPosition(p.window, p.outVars, varsOf(p.kernel), p.in, p.out);
    p.indices = p.layout.arrange(p.vars[0], p.vars[static_cast<size_t>(p.layout.channel())], p.at.position);
    return p;
  }
  Expr guarded(Expr value, Expr outside) const {
    return at.inside ? select(at.inside, std::move(value), std::move(outside)) : value;
  }
  /// A stage over the window with the axes set.
  loop::Stage stage(loop::Combiner combiner, loop::BufferRef buffer, Expr body) const {
    loop::Stage s;
    s.out = std::move(buffer);
    s.axes = axes;
    s.reduce = kernel;
    s.combiner = combiner;
    s.body = std::move(body);
    return s;
  }
};

/// Where the maximum is, as the flat index into the whole input in N, C, spatial order. storage_order 1 counts the spatial dims
/// column by column, but which of several equal maxima is meant is decided row by row.
void addIndices(ComputeContext& c, const Pool& p, const loop::BufferRef& maximum) {
  Expr element = c.at(0, p.indices), best = load(maximum, p.vars), same = eq(element, best);
  if (isFloat(element->type.dtype)) {
    same = logicalOr(same, logicalAnd(loop::call("isnan", {element}), loop::call("isnan", {best})));
  }
  Expr none = loop::identity(loop::Combiner::Min, DType::I64);
  loop::Stage stage = p.stage(loop::Combiner::Min, c.outputBuffer(1),
                              p.guarded(select(same, flattenIndex(p.in, p.at.position), none), none));
  stage.acc = loop::makeVar("acc", {DType::I64, 1});
  Expr flat = stage.acc;
  if (c.node().intAttr("storage_order", 0) == 1) {
    std::vector<Expr> unflat = unflattenIndex(p.in, stage.acc);
    flat = loop::index(0);
    for (size_t i = p.in.size(); i-- > 0;) flat = flat * p.in[i] + unflat[i];
  }
  int64_t plane = 1;
  for (int64_t extent : p.in) plane *= extent;
  Expr channel = p.vars[static_cast<size_t>(p.layout.channel())];
  stage.epilogue = (p.vars[0] * p.xDims[static_cast<size_t>(p.layout.channel())] + channel) * plane + flat;
  c.addStage(std::move(stage));
}

/// How many kernel elements of spatial dim `i` lie in [low, high) of the input for the window at output `o`; null when all do, always.
Expr countInside(const Pool& p, size_t i, int64_t low, int64_t high) {
  const Window& w = p.window;
  int64_t last = (p.out[i] - 1) * w.strides[i] - w.padBegin[i] + w.span(i) - 1;
  if (-w.padBegin[i] >= low && last < high) return nullptr;
  Expr start = p.outVars[i] * w.strides[i] - w.padBegin[i];
  // The kernel elements below `bound`: ceil((bound - start) / dilation), within 0 .. kernel.
  auto below = [&](int64_t bound) {
    Expr distance = loop::index(bound + w.dilations[i] - 1) - start;
    return minOf(maxOf(floorDiv(distance, loop::index(w.dilations[i])), loop::index(0)), loop::index(w.kernel[i]));
  };
  return below(high) - below(low);
}

}  // namespace

Status inferMaxPool(InferContext& c) { return inferPool(c); }
Status inferAveragePool(InferContext& c) { return inferPool(c); }
Status inferLpPool(InferContext& c) {
  if (c.node().intAttr("p", 2) < 1)
    return Status::error("attribute p is " + std::to_string(c.node().intAttr("p", 2)) + ", expected at least 1");
  return inferPool(c);
}

Status computeMaxPool(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Pool p, Pool::make(c));
  DType type = c.input(0).dtype;
  loop::BufferRef maximum = c.wantsOutput(0) ? c.outputBuffer(0) : c.temporary("maximum", type, p.outDims);
  c.addStage(
      p.stage(loop::Combiner::Max, maximum, p.guarded(c.at(0, p.indices), loop::identity(loop::Combiner::Max, type))));
  if (c.wantsOutput(1)) addIndices(c, p, maximum);
  return Status::ok();
}

Status computeAveragePool(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Pool p, Pool::make(c));
  DType type = c.input(0).dtype, accumulator = accumulatorType(type);
  bool includePad = c.node().intAttr("count_include_pad", 0) != 0;
  Expr count;
  int64_t constantCount = 1;
  for (size_t i = 0; i < p.window.rank(); ++i) {
    int64_t low = includePad ? -p.window.padBegin[i] : 0, high = p.in[i] + (includePad ? p.window.padEnd[i] : 0);
    Expr inside = countInside(p, i, low, high);
    if (!inside) {
      constantCount = saturatingMul(constantCount, p.window.kernel[i]);
    } else {
      count = count ? count * inside : inside;
    }
  }
  Expr zero = loop::constant(accumulator, 0);
  loop::Stage stage =
      p.stage(loop::Combiner::Sum, c.outputBuffer(0), p.guarded(castTo(accumulator, c.at(0, p.indices)), zero));
  stage.acc = loop::makeVar("acc", {accumulator, 1});
  Expr divisor = loop::constant(accumulator, static_cast<double>(constantCount));
  // A window may lie wholly in the padding when dilation steps over the input.
  if (count) divisor = castTo(accumulator, maxOf(count * constantCount, loop::index(1)));
  stage.epilogue = castTo(type, Expr(stage.acc) / divisor);
  c.addStage(std::move(stage));
  return Status::ok();
}

Status computeLpPool(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Pool p, Pool::make(c));
  DType type = c.input(0).dtype, accumulator = accumulatorType(type);
  if (!isFloat(type)) return Status::error("LpPool of " + std::string(dtypeName(type)) + " is not defined");
  int64_t power = c.node().intAttr("p", 2);
  Expr x = castTo(accumulator, c.at(0, p.indices)), exponent = loop::constant(accumulator, static_cast<double>(power));
  Expr term = power == 2 ? x * x : loop::call("abs", {x});
  if (power > 2) term = loop::call("pow", {term, exponent});
  loop::Stage stage = p.stage(loop::Combiner::Sum, c.outputBuffer(0), p.guarded(term, loop::constant(accumulator, 0)));
  stage.acc = loop::makeVar("acc", {accumulator, 1});
  Expr sum = stage.acc;
  if (power == 2) sum = loop::call("sqrt", {sum});
  if (power > 2) sum = loop::call("pow", {sum, loop::constant(accumulator, 1) / exponent});
  stage.epilogue = castTo(type, sum);
  if (stage.epilogue == Expr(stage.acc)) stage.acc = nullptr, stage.epilogue = nullptr;
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

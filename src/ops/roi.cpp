// Pooling over regions of interest: RoiAlign and MaxRoiPool. The number of samples of a bin may depend on the region, so these are
// raw loops with extents computed at run time.
#include <utility>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/raw.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;
using loop::Stmt;

namespace {

/// The largest sampling_ratio: bounds the work that the attribute can ask for.
constexpr int64_t kMaxSamples = 1 << 10;

Expr f32(double v) { return loop::constant(DType::F32, v); }
Expr asInt(const Expr& e) { return loop::cast(DType::I64, e); }
Expr asFloat(const Expr& e) { return loop::cast(DType::F32, e); }

Status inferRoi(InferContext& c, int64_t columns, Dim height, Dim width) {
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 4));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  const Shape &x = c.input(0).shape, &rois = c.input(1).shape;
  if (rois.isRanked())
    LOCUTION_RETURN_IF_ERROR(needSameDim(rois[1], Dim(columns), "columns of rois and " + std::to_string(columns)));
  Dim regions = rois.isRanked() ? rois[0] : c.freshDim(), channels = x.isRanked() ? x[1] : c.freshDim();
  c.setOutput(0, c.input(0).dtype, Shape{regions, channels, std::move(height), std::move(width)});
  return Status::ok();
}

}  // namespace

Status inferRoiAlign(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 2));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 2, isInteger, "an integer type"));
  const graph::Node& node = c.node();
  LOCUTION_RETURN_IF_ERROR(needOneOf("mode", node.stringAttr("mode", "avg"), {"avg", "max"}));
  LOCUTION_RETURN_IF_ERROR(needOneOf("coordinate_transformation_mode",
                                     node.stringAttr("coordinate_transformation_mode", "half_pixel"),
                                     {"half_pixel", "output_half_pixel"}));
  int64_t height = node.intAttr("output_height", 1), width = node.intAttr("output_width", 1),
          ratio = node.intAttr("sampling_ratio", 0);
  if (height < 1 || width < 1 || height > (1 << 20) || width > (1 << 20))
    return Status::error("attributes output_height and output_width must be at least 1");
  if (ratio < 0 || ratio > kMaxSamples) return Status::error("attribute sampling_ratio is " + std::to_string(ratio));
  const Shape &rois = c.input(1).shape, &batches = c.input(2).shape;
  if (rois.isRanked() && batches.isRanked())
    LOCUTION_RETURN_IF_ERROR(needSameDim(rois[0], batches[0], "numbers of rois and batch_indices"));
  return inferRoi(c, 4, height, width);
}

Status computeRoiAlign(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0), out = c.outputExtents();
  const graph::Node& node = c.node();
  bool average = node.stringAttr("mode", "avg") == "avg",
       half = node.stringAttr("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  int64_t ratio = node.intAttr("sampling_ratio", 0);
  double scale = static_cast<float>(node.floatAttr("spatial_scale", 1));
  if (x[2] == 0 || x[3] == 0 || x[0] == 0) {
    if (Shape::of(out).elements() != 0) return Status::error("the input is empty: " + c.input(0).shape.str());
  }
  c.checkIndices(2, 0, x[0] - 1);
  const DType type = accumulatorType(c.input(0).dtype);
  auto number = [&](double v) { return loop::constant(type, v); };
  auto asType = [&](const Expr& e) { return castTo(type, e); };
  std::vector<loop::Axis> axes = makeAxes(out);
  Expr r = axes[0].var, channel = axes[1].var;
  loop::BufferRef sum = c.temporary("sum", type, {1});
  std::vector<Expr> zeroth{loop::index(0)};

  /// Of dim d (0: rows, 1: columns): start, extent and samples of the bin that the output position names.
  auto edge = [&](int64_t column) {
    return asType(c.at(1, {r, loop::index(column)})) * number(scale) - number(half ? 0.5 : 0);
  };
  auto binSize = [&](int64_t d) {
    Expr extent = edge(3 - d) - edge(1 - d);
    if (!half) extent = maxOf(extent, number(1));
    return extent / number(static_cast<double>(out[static_cast<size_t>(2 + d)]));
  };
  auto sampleCount = [&](const Expr& size) {
    if (ratio > 0) return loop::index(ratio);
    return maxOf(asInt(loop::call("ceil", {size})), loop::index(0));
  };
  auto binStart = [&](int64_t d, const Expr& size) {
    return edge(1 - d) + asType(axes[static_cast<size_t>(2 + d)].var) * size;
  };
  auto samplePosition = [&](int64_t d, const Expr& size, const Expr& count, const Expr& i) {
    return binStart(d, size) + (asType(i) + number(0.5)) * size / asType(count);
  };
  // Samples outside the input give nothing: of an adaptive number, which wild coordinates can make as large as they like, only those
  // inside are visited, with one to spare on either side.
  auto sampleRange = [&](int64_t d, const Expr& size, const Expr& count, int64_t length) {
    if (ratio > 0) return std::pair(loop::index(0), count);
    Expr step = size / asType(count);
    auto at = [&](double position) {
      return asInt(loop::call("floor", {(number(position) - binStart(d, size)) / step}));
    };
    Expr begin = minOf(maxOf(at(-1), loop::index(1)) - 1, count);
    return std::pair(begin, minOf(maxOf(minOf(at(static_cast<double>(length)), count) + 2, begin), count));
  };
  auto outside = [&](const Expr& p, int64_t length) {
    return logicalOr(lt(p, number(-1)), lt(number(static_cast<double>(length)), p));
  };

  loop::VarRef iy = loop::makeVar("iy"), ix = loop::makeVar("ix");
  Lets bin, sample, taps;
  Expr batch = bin("batch", asInt(c.at(2, {r})));
  Expr sizeY = bin("sizeY", binSize(0)), sizeX = bin("sizeX", binSize(1));
  Expr countY = bin("countY", sampleCount(sizeY)), countX = bin("countX", sampleCount(sizeX));
  auto [beginY, endY] = sampleRange(0, sizeY, countY, x[2]);
  auto [beginX, endX] = sampleRange(1, sizeX, countX, x[3]);
  Expr firstY = bin("firstY", beginY), pastY = bin("pastY", endY), firstX = bin("firstX", beginX),
       pastX = bin("pastX", endX);
  Expr py = sample("py", samplePosition(0, sizeY, countY, iy)), px = sample("px", samplePosition(1, sizeX, countX, ix));
  Expr before = load(sum, zeroth);

  // Beyond the last pixel's centre the position is the last pixel itself.
  auto clamped = [&](const Expr& p, int64_t length) {
    return minOf(maxOf(p, number(0)), number(static_cast<double>(length - 1)));
  };
  Expr y = taps("y", clamped(py, x[2])), xx = taps("x", clamped(px, x[3]));
  Expr y0 = taps("y0", minOf(asInt(y), loop::index(x[2] - 1))),
       x0 = taps("x0", minOf(asInt(xx), loop::index(x[3] - 1)));
  Expr y1 = minOf(y0 + 1, loop::index(x[2] - 1)), x1 = minOf(x0 + 1, loop::index(x[3] - 1));
  Expr ly = y - asType(y0), lx = xx - asType(x0), hy = number(1) - ly, hx = number(1) - lx;
  auto pixel = [&](const Expr& row, const Expr& column) { return asType(c.at(0, {batch, channel, row, column})); };
  Expr a = hy * hx * pixel(y0, x0), b = hy * lx * pixel(y0, x1), d = ly * hx * pixel(y1, x0),
       e = ly * lx * pixel(y1, x1);
  Stmt add, nothing;
  Expr start = number(0);
  if (average) {
    add = store(sum, zeroth, before + (a + b + d + e));
  } else {
    add = store(sum, zeroth, maxOf(before, maxOf(maxOf(a, b), maxOf(d, e))));
    // Samples far outside count as zeros: they add nothing to a sum, but are a candidate for the maximum.
    nothing = store(sum, zeroth, maxOf(before, number(0)));
    Expr allVisited = logicalAnd(eq(pastY - firstY, countY), eq(pastX - firstX, countX));
    Expr some = logicalAnd(lt(loop::index(0), countY), lt(loop::index(0), countX));
    start = select(logicalAnd(allVisited, some), loop::identity(loop::Combiner::Max, type), number(0));
  }
  Expr off = logicalOr(outside(py, x[2]), outside(px, x[3]));
  Stmt loops = sample.around(loop::ifThen(loop::call("not", {off}), taps.around(add), nothing));
  loops = loop::forLoop(ix, firstX, pastX - firstX, loop::LoopKind::Serial, loops);
  loops = loop::forLoop(iy, firstY, pastY - firstY, loop::LoopKind::Serial, loops);
  Expr result = load(sum, zeroth);
  if (average) result = result / maxOf(asType(countY) * asType(countX), number(1));
  Stmt finish = store(c.outputBuffer(0), varsOf(axes), castTo(c.output(0).dtype, result));
  c.setRaw(withBuffers({sum}, nest(axes, bin.around(loop::block({store(sum, zeroth, start), loops, finish})))));
  return Status::ok();
}

Status inferMaxRoiPool(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  std::vector<int64_t> pooled = c.node().intsAttr("pooled_shape");
  if (pooled.size() != 2)
    return Status::error("attribute pooled_shape has " + std::to_string(pooled.size()) + " entries, expected 2");
  for (int64_t p : pooled) {
    if (p < 1 || p > (1 << 20)) return Status::error("attribute pooled_shape has the entry " + std::to_string(p));
  }
  return inferRoi(c, 5, pooled[0], pooled[1]);
}

Status computeMaxRoiPool(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0), out = c.outputExtents();
  double scale = static_cast<float>(c.node().floatAttr("spatial_scale", 1));
  if (x[0] == 0 && Shape::of(out).elements() != 0)
    return Status::error("the input is empty: " + c.input(0).shape.str());
  std::vector<loop::Axis> axes = makeAxes(out);
  Expr r = axes[0].var;
  // Corners are whole pixels, both ends included; halves round away from zero.
  auto corner = [&](int64_t column) {
    Expr v = asFloat(c.at(1, {r, loop::index(column)})) * f32(scale), half = f32(0.5);
    return asInt(select(lt(v, f32(0)), loop::call("ceil", {v - half}), loop::call("floor", {v + half})));
  };
  Lets bin;
  Expr region = asInt(asFloat(c.at(1, {r, loop::index(0)})));
  Expr batch = bin("batch", minOf(maxOf(region, loop::index(0)), loop::index(std::max<int64_t>(0, x[0] - 1))));
  loop::BufferRef largest = c.temporary("largest", c.output(0).dtype, {1});
  std::vector<Expr> zeroth{loop::index(0)};
  // First row and one past the last of a bin, clipped to the input.
  auto bounds = [&](int64_t d, bool last) {
    Expr start = corner(2 - d), extent = maxOf(corner(4 - d) - start + 1, loop::index(1));
    Expr size = asFloat(extent) / f32(static_cast<double>(out[static_cast<size_t>(2 + d)])),
         i = axes[static_cast<size_t>(2 + d)].var;
    Expr edge = last ? loop::call("ceil", {asFloat(i + 1) * size}) : loop::call("floor", {asFloat(i) * size});
    return minOf(maxOf(asInt(edge) + start, loop::index(0)), loop::index(x[static_cast<size_t>(2 + d)]));
  };
  Expr top = bin("top", bounds(0, false)), bottom = bin("bottom", bounds(0, true));
  Expr left = bin("left", bounds(1, false)), right = bin("right", bounds(1, true));
  loop::VarRef y = loop::makeVar("y"), xx = loop::makeVar("x");
  Stmt loops = store(largest, zeroth, maxOf(load(largest, zeroth), c.at(0, {batch, axes[1].var, y, xx})));
  loops = loop::forLoop(xx, left, maxOf(right - left, loop::index(0)), loop::LoopKind::Serial, loops);
  loops = loop::forLoop(y, top, maxOf(bottom - top, loop::index(0)), loop::LoopKind::Serial, loops);
  Expr empty = logicalOr(le(bottom, top), le(right, left));
  Expr lowest = loop::identity(loop::Combiner::Max, c.output(0).dtype), zero = loop::constant(c.output(0).dtype, 0);
  Stmt start = store(largest, zeroth, select(empty, zero, lowest)),
       finish = store(c.outputBuffer(0), varsOf(axes), load(largest, zeroth));
  c.setRaw(withBuffers({largest}, nest(axes, bin.around(loop::block({start, loops, finish})))));
  return Status::ok();
}

}  // namespace locution::ops

// Reading an image at computed positions: GridSample (any number of spatial dims) and AffineGrid. GridSample first works out the
// positions, once for all channels, then sums the taps around each with the weights that their distance gives.
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/resize.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

struct SampleMode {
  ResizeMode filter;  ///< kind and cubic coefficient
  std::string padding;
  bool alignCorners = false;
};

Result<SampleMode> parseSampleMode(const graph::Node& node) {
  SampleMode m;
  std::string mode = node.stringAttr("mode", "linear");
  m.padding = node.stringAttr("padding_mode", "zeros");
  LOCUTION_RETURN_IF_ERROR(needOneOf("mode", mode, {"linear", "nearest", "cubic", "bilinear", "bicubic"}));
  LOCUTION_RETURN_IF_ERROR(needOneOf("padding_mode", m.padding, {"zeros", "border", "reflection"}));
  m.filter.kind = mode == "nearest"                      ? ResizeMode::Kind::Nearest
                  : mode == "cubic" || mode == "bicubic" ? ResizeMode::Kind::Cubic
                                                         : ResizeMode::Kind::Linear;
  m.alignCorners = node.intAttr("align_corners", 0) != 0;
  return m;
}

/// Mirrors a coordinate at the borders until it lies between them.
Expr reflected(const Expr& x, double low, double high) {
  DType type = x->type.dtype;
  auto k = [&](double v) { return loop::constant(type, v); };
  if (high <= low) return k(low);
  Expr inside = logicalAnd(le(k(low), x), le(x, k(high)));
  double period = 2 * (high - low);
  Expr mirrored = shared(loop::call("abs", {x - k(low)}), [&](const Expr& d) {
    return shared(d - loop::call("floor", {d / k(period)}) * k(period),
                  [&](const Expr& m) { return select(le(m, k(high - low)), k(low) + m, k(low + period) - m); });
  });
  return select(inside, x, mirrored);
}

/// The same for an integer position of a dim of `length`; the result is always in range.
Expr reflectedIndex(const Expr& i, int64_t length, bool alignCorners) {
  if (length == 1) return loop::index(0);
  int64_t period = alignCorners ? 2 * (length - 1) : 2 * length;
  return shared(floorMod(i, loop::index(period)), [&](const Expr& m) {
    return select(lt(m, loop::index(length)), m, loop::index(alignCorners ? period : period - 1) - m);
  });
}

}  // namespace

Status inferGridSample(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(parseSampleMode(c.node()).status());
  const Shape &x = c.input(0).shape, &grid = c.input(1).shape;
  if (!x.isRanked() || !grid.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  if (x.rank() < 3 || grid.rank() != x.rank())
    return Status::error("the input has the shape " + x.str() + ", the grid " + grid.str());
  SpatialLayout layout = SpatialLayout::of(c.node(), x.rank());
  LOCUTION_RETURN_IF_ERROR(
      needSameDim(grid[grid.rank() - 1], Dim(layout.spatialRank()), "coordinates of a grid point and spatial dims"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(grid[0], x[0], "batches of the grid and the input"));
  std::vector<Dim> spatial(grid.dims().begin() + 1, grid.dims().end() - 1);
  c.setOutput(0, c.input(0).dtype, Shape(layout.arrange(x[0], x[layout.channel()], spatial)));
  return Status::ok();
}

Status computeGridSample(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(SampleMode mode, parseSampleMode(c.node()));
  std::vector<int64_t> xDims = c.inputExtents(0), gridDims = c.inputExtents(1), outDims = c.outputExtents();
  SpatialLayout layout = SpatialLayout::of(c.node(), static_cast<int64_t>(xDims.size()));
  std::vector<int64_t> in = layout.spatialOf(xDims);
  size_t rank = in.size();
  DType coordinate = c.input(1).dtype == DType::F64 ? DType::F64 : DType::F32, out = c.output(0).dtype;
  DType type = isFloat(out) ? accumulatorType(out) : DType::F64;
  // The taps of a cubic take care of the border themselves, as in PyTorch: the position keeps its place between them.
  bool nearest = mode.filter.kind == ResizeMode::Kind::Nearest, cubic = mode.filter.kind == ResizeMode::Kind::Cubic;
  bool empty = Shape::of(xDims).elements() == 0;
  if (empty && Shape::of(outDims).elements() != 0) return Status::error("the input is empty, the output is not");

  // Positions in the order of the spatial dims (the grid has the last dim's coordinate first).
  loop::Stage positions;
  positions.out = c.temporary("positions", coordinate, gridDims);
  positions.axes = makeAxes(gridDims);
  {
    std::vector<Expr> vars = varsOf(positions.axes), at = vars;
    at.back() = loop::index(static_cast<int64_t>(rank) - 1) - vars.back();
    Expr n = castTo(coordinate, c.at(1, at)), value;
    auto k = [&](double v) { return loop::constant(coordinate, v); };
    // One expression a dim, chosen by the last axis.
    for (size_t d = rank; d-- > 0;) {
      auto length = static_cast<double>(in[d]);
      Expr x = mode.alignCorners ? (n + k(1)) / k(2) * k(length - 1) : ((n + k(1)) * k(length) - k(1)) / k(2);
      if (nearest) {
        x = loop::call("round_even", {x});
      } else if (mode.padding == "border") {
        // A cubic's taps are the border wherever they are all beyond it, as far out as infinity.
        x = cubic ? minOf(maxOf(x, k(-3)), k(length + 2)) : minOf(maxOf(x, k(0)), k(length - 1));
      } else if (mode.padding == "reflection" && !cubic) {
        x = shared(x, [&](const Expr& e) {
          return mode.alignCorners ? reflected(e, 0, length - 1) : reflected(e, -0.5, length - 0.5);
        });
      }
      value = value ? select(eq(vars.back(), loop::index(static_cast<int64_t>(d))), x, value) : x;
    }
    positions.body = value;
  }
  loop::BufferRef table = positions.out;
  c.addStage(std::move(positions));

  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(outDims);
  std::vector<Expr> vars = varsOf(stage.axes), outVars = layout.spatialOf(vars), pixel;
  ResizeTaps taps = resizeTaps(mode.filter, ResizeAxis{});
  Expr inside, weight;
  for (size_t d = 0; d < rank; ++d) {
    std::vector<Expr> at{vars[0]};
    at.insert(at.end(), outVars.begin(), outVars.end());
    at.push_back(loop::index(static_cast<int64_t>(d)));
    Expr x = load(table, at), position = loop::cast(DType::I64, x);
    if (!nearest) {
      stage.reduce.push_back({loop::makeVar("t" + std::to_string(d)), taps.count});
      Expr tap = Expr(stage.reduce.back().var) + taps.first, base = loop::call("floor", {x});
      position = loop::cast(DType::I64, base) + tap;
      Expr distance = loop::call("abs", {castTo(type, x - base) - loop::cast(type, tap)});
      Expr w = resizeFilter(mode.filter, distance);
      weight = weight ? weight * w : w;
    }
    if (mode.padding == "zeros") {
      inside = both(inside, logicalAnd(le(loop::index(0), position), lt(position, loop::index(in[d]))));
    } else if (mode.padding == "border") {
      position = minOf(maxOf(position, loop::index(0)), loop::index(in[d] - 1));
    } else {
      position = reflectedIndex(position, in[d], mode.alignCorners);
    }
    pixel.push_back(position);
  }
  Expr element = c.at(0, layout.arrange(vars[0], vars[static_cast<size_t>(layout.channel())], pixel));
  if (nearest) {
    stage.body = inside ? select(inside, element, loop::constant(out, 0)) : element;
  } else {
    Expr value = castTo(type, element) * weight;
    stage.body = inside ? select(inside, value, loop::constant(type, 0)) : value;
    stage.combiner = loop::Combiner::Sum;
    if (type != out) {
      stage.acc = loop::makeVar("acc", {type, 1});
      stage.epilogue = castTo(out, stage.acc);
    }
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

Status inferAffineGrid(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 3));
  const Shape& theta = c.input(0).shape;
  std::optional<std::vector<Dim>> size = c.inputDims(1);
  if (!size) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  auto rank = static_cast<int64_t>(size->size()) - 2;
  if (rank != 2 && rank != 3)
    return Status::error("size has " + std::to_string(size->size()) + " entries, expected 4 or 5");
  for (const Dim& d : *size) {
    if (d.isKnown() && d.value() < 0) return Status::error("size has the entry " + d.str());
  }
  if (theta.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(theta[0], (*size)[0], "batches of theta and size"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(theta[1], Dim(rank), "rows of theta and spatial dims"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(theta[2], Dim(rank + 1), "columns of theta and spatial dims + 1"));
  }
  std::vector<Dim> dims{(*size)[0]};
  dims.insert(dims.end(), size->begin() + 2, size->end());
  dims.emplace_back(rank);
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeAffineGrid(ComputeContext& c) {
  std::vector<int64_t> dims = c.outputExtents();
  size_t rank = dims.size() - 2;
  bool alignCorners = c.node().intAttr("align_corners", 0) != 0;
  DType out = c.output(0).dtype, type = accumulatorType(out);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(dims);
  std::vector<Expr> vars = varsOf(stage.axes);
  auto k = [&](double v) { return loop::constant(type, v); };
  auto theta = [&](size_t column) {
    return castTo(type, c.at(0, {vars[0], vars.back(), loop::index(static_cast<int64_t>(column))}));
  };
  Expr sum = theta(rank);
  for (size_t d = 0; d < rank; ++d) {
    // The first column goes with the last spatial dim.
    const Expr& i = vars[1 + d];
    int64_t length = dims[1 + d];
    Expr x = alignCorners ? loop::cast(type, i * 2) / k(static_cast<double>(std::max<int64_t>(1, length - 1))) - k(1)
                          : loop::cast(type, i * 2 + 1) / k(static_cast<double>(length)) - k(1);
    sum = sum + theta(rank - 1 - d) * x;
  }
  stage.body = castTo(out, sum);
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

// Resize by Linear and Cubic: one pass a dim over small tables of positions and weights; a dim that shrinks goes first.
#include <algorithm>

#include "ops/helpers.h"
#include "ops/resize.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

Expr outsideCrop(const ResizeMode& mode, const std::vector<ResizeAxis>& axes, const std::vector<Expr>& vars) {
  Expr outside;
  if (!mode.crops()) return outside;
  for (const ResizeAxis& a : axes) {
    Expr x = resizeCoordinate(mode, a, vars[static_cast<size_t>(a.dim)]);
    Expr here = logicalOr(lt(x, loop::constant(DType::F32, 0)),
                          lt(loop::constant(DType::F32, static_cast<double>(a.in - 1)), x));
    outside = outside ? logicalOr(outside, here) : here;
  }
  return outside;
}

namespace {

/// Positions (clamped) and weights of one dim, out x taps each.
struct Tables {
  loop::BufferRef positions, weights;
  int64_t taps = 0;
};

Tables addTables(ComputeContext& c, const ResizeMode& mode, const ResizeAxis& a, DType type) {
  ResizeTaps taps = resizeTaps(mode, a);
  std::vector<int64_t> dims{a.out, taps.count};
  auto unclamped = [&](const Expr& o, const Expr& t) {
    return loop::cast(DType::I64, loop::call("floor", {resizeCoordinate(mode, a, o)})) + (t + taps.first);
  };
  Tables tables;
  tables.taps = taps.count;
  loop::Stage positions;
  positions.out = tables.positions = c.temporary("positions", DType::I64, dims);
  positions.axes = makeAxes(dims);
  positions.body =
      minOf(maxOf(unclamped(positions.axes[0].var, positions.axes[1].var), loop::index(0)), loop::index(a.in - 1));
  c.addStage(std::move(positions));

  auto weight = [&](const Expr& o, const Expr& t) {
    Expr x = loop::cast(type, resizeCoordinate(mode, a, o));
    Expr base = loop::call("floor", {x}), fraction = x - base;
    Expr distance = loop::call("abs", {loop::cast(type, t + taps.first) - fraction});
    if (taps.shrink != 1) distance = distance * loop::constant(type, taps.shrink);
    Expr w = resizeFilter(mode, distance);
    if (!mode.excludeOutside) return w;
    Expr p = unclamped(o, t);
    return select(logicalAnd(le(loop::index(0), p), lt(p, loop::index(a.in))), w, loop::constant(type, 0));
  };
  bool normalise = taps.shrink != 1 || mode.excludeOutside;
  loop::Stage raw;
  raw.out = c.temporary("weights", type, dims);
  raw.axes = makeAxes(dims);
  raw.body = weight(raw.axes[0].var, raw.axes[1].var);
  tables.weights = raw.out;
  c.addStage(std::move(raw));
  if (!normalise) return tables;

  loop::Stage sum;
  sum.out = c.temporary("sums", type, {a.out});
  sum.axes = makeAxes({a.out});
  sum.reduce = {{loop::makeVar("t"), taps.count}};
  sum.combiner = loop::Combiner::Sum;
  sum.body = load(tables.weights, {sum.axes[0].var, sum.reduce[0].var});
  loop::BufferRef sums = sum.out;
  c.addStage(std::move(sum));
  loop::Stage scaled;
  scaled.out = c.temporary("weights", type, dims);
  scaled.axes = makeAxes(dims);
  Expr o = scaled.axes[0].var, total = load(sums, {o}), zero = loop::constant(type, 0);
  scaled.body = load(tables.weights, {o, scaled.axes[1].var}) / select(eq(total, zero), loop::constant(type, 1), total);
  tables.weights = scaled.out;
  c.addStage(std::move(scaled));
  return tables;
}

/// A weighted sum as the output's type. Integers: rounded with antialias, else truncated, both as in ONNX Runtime, except that a sum
/// that misses a whole number by a rounding error is that number.
Expr filteredValue(const ResizeMode& mode, DType out, const Expr& sum) {
  if (isFloat(out)) return castTo(out, sum);
  return shared(sum, [&](const Expr& v) {
    Expr whole = loop::call("round_even", {v});
    if (mode.antialias) return loop::cast(out, whole);
    Expr close = lt(loop::call("abs", {v - whole}), loop::constant(v->type.dtype, 1e-4));
    return loop::cast(out, select(close, whole, v));
  });
}

}  // namespace

Status resizeFiltered(ComputeContext& c, const ResizeMode& mode, std::vector<ResizeAxis> axes) {
  // Integers are weighed in float64, so that the weights of a plain image sum to exactly one.
  DType out = c.output(0).dtype, type = isFloat(out) && dtypeBits(out) <= 32 ? DType::F32 : DType::F64;
  std::sort(axes.begin(), axes.end(), [](const ResizeAxis& a, const ResizeAxis& b) {
    auto growth = [](const ResizeAxis& x) { return static_cast<double>(x.out) / static_cast<double>(x.in); };
    return growth(a) != growth(b) ? growth(a) < growth(b) : a.dim < b.dim;
  });
  std::vector<int64_t> dims = c.inputExtents(0);
  loop::BufferRef source = c.inputBuffer(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const ResizeAxis& a = axes[i];
    bool last = i + 1 == axes.size();
    Tables tables = addTables(c, mode, a, type);
    auto d = static_cast<size_t>(a.dim);
    dims[d] = a.out;
    LOCUTION_RETURN_IF_ERROR(checkElements(dims, "an intermediate result"));
    loop::Stage stage;
    stage.out = last ? c.outputBuffer(0) : c.temporary("resized", type, dims);
    stage.axes = makeAxes(dims);
    std::vector<Expr> vars = varsOf(stage.axes);
    auto term = [&](const Expr& t) {
      std::vector<Expr> indices = vars;
      indices[d] = load(tables.positions, {vars[d], t});
      return castTo(type, load(source, indices)) * load(tables.weights, {vars[d], t});
    };
    Expr value;
    if (tables.taps <= 4) {
      for (int64_t t = 0; t < tables.taps; ++t) value = t == 0 ? term(loop::index(0)) : value + term(loop::index(t));
    } else {
      stage.reduce = {{loop::makeVar("t"), tables.taps}};
      stage.combiner = loop::Combiner::Sum;
      stage.body = term(stage.reduce[0].var);
      stage.acc = loop::makeVar("acc", {type, 1});
      value = stage.acc;
    }
    if (last) {
      value = filteredValue(mode, out, value);
      if (Expr outside = outsideCrop(mode, axes, vars))
        value = select(outside, loop::constant(out, mode.extrapolation), value);
    }
    (stage.acc ? stage.epilogue : stage.body) = value;
    source = stage.out;
    c.addStage(std::move(stage));
  }
  return Status::ok();
}

}  // namespace locution::ops

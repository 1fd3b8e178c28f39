#include "schedule/winograd.h"

#include <algorithm>
#include <functional>

#include "core/saturate.h"
#include "loop/passes.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

using Matrix = std::vector<std::vector<double>>;

// Lavin and Gray's, on the points 0, 1, -1, (2, -2,) infinity: output = A' [(G g) * (B' d)].
struct Transforms {
  Matrix b, g, a;  // transposed B and A
};
// In integers: G without its fractions, which A makes up for. Outputs come 2 or 24 times as large for each dim.
const Transforms& integerTransforms(int64_t m) {
  static const Transforms kTwo{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                               {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}},
                               {{1, 1, 1, 0}, {0, 1, -1, -1}}};
  static const Transforms kFour{{{4, 0, -5, 0, 1, 0},
                                 {0, -4, -4, 1, 1, 0},
                                 {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0},
                                 {0, 2, -1, -2, 1, 0},
                                 {0, 4, 0, -5, 0, 1}},
                                {{1, 0, 0}, {-1, -1, -1}, {-1, 1, -1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}},
                                {{6, 4, 4, 1, 1, 0}, {0, 4, -4, 2, -2, 0}, {0, 4, 4, 4, 4, 0}, {0, 4, -4, 8, -8, 24}}};
  return m == 2 ? kTwo : kFour;
}
const Transforms& transforms(int64_t m) {
  static const Transforms kTwo{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                               {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                               {{1, 1, 1, 0}, {0, 1, -1, -1}}};
  static const Transforms kFour{{{4, 0, -5, 0, 1, 0},
                                 {0, -4, -4, 1, 1, 0},
                                 {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0},
                                 {0, 2, -1, -2, 1, 0},
                                 {0, 4, 0, -5, 0, 1}},
                                {{1.0 / 4, 0, 0},
                                 {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                 {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                 {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                 {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                 {0, 0, 1}},
                                {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};
  return m == 2 ? kTwo : kFour;
}

// A row of a transform applied to values.
Expr combine(const std::vector<double>& row, const std::function<Expr(int64_t)>& value) {
  Expr sum;
  // Terms of factor 1 first: the others become multiply-adds onto them.
  for (bool unit : {true, false})
    for (size_t k = 0; k < row.size(); ++k) {
      const double c = row[k];
      if (c == 0 || (c == 1) != unit) continue;
      Expr v = value(static_cast<int64_t>(k));
      if (!sum) {
        sum = c == 1 ? v : v * constant(v->type.dtype, c);
      } else if (c == -1) {
        sum = sum - v;
      } else {
        sum = sum + (c == 1 ? v : v * constant(v->type.dtype, c));
      }
    }
  return sum;
}

const Expr& withoutCast(const Expr& e) {
  const auto* c = as<Cast>(e);
  return c ? c->value : e;
}

Stmt serial(const VarRef& var, int64_t extent, Stmt body) {
  return forLoop(var, index(0), index(extent), LoopKind::Serial, std::move(body));
}
Stmt unrolled(const VarRef& var, int64_t extent, Stmt body) {
  return forLoop(var, index(0), index(extent), LoopKind::Unrolled, std::move(body));
}

class Winograd {
 public:
  Winograd(const Computation& c, const WinogradForm& form, const WinogradTile& tile)
      : c_(c),
        s_(c.stages[0]),
        form_(form),
        t_(tile),
        f_(form.isInteger ? integerTransforms(tile.m) : transforms(tile.m)),
        narrow_(form.isInteger ? DType::I16 : DType::F32),
        wide_(form.isInteger ? DType::I32 : DType::F32),
        edge_(tile.m + 2),
        dims_(form.windows.size()),
        points_(form.points(tile.m)),
        tiles_(form.tiles(tile.m)),
        blocks_(ceilDivide(tiles_, tile.block)),
        columns_(tile.vectors * tile.lanes),
        panels_(ceilDivide(form.outputs, columns_)),
        channelLanes_(form.isInteger ? 2 * tile.lanes : tile.lanes) {
    while (form.channels % channelLanes_ != 0) channelLanes_ /= 2;
    const auto* product = as<Binary>(s_.body);
    const Expr sides[2] = {withoutCast(product->a), withoutCast(product->b)};
    const Expr& side = sides[form.dataOperand];
    const auto* guarded = as<Select>(side);
    x_ = as<Load>(guarded ? guarded->yes : side);
    w_ = as<Load>(sides[1 - form.dataOperand]);
  }

  Lowered run() {
    Lowered out;
    out.packs.push_back(transformedData());
    out.packs.push_back(transformedWeights());
    v_ = out.packs[0].packed;
    u_ = out.packs[1].packed;
    out.function.name = c_.name;
    VarRef q = makeVar("q");
    Expr inner = index(t_.isTilesOuter ? panels_ : blocks_);
    Expr major = floorDiv(q, inner), minor = floorMod(q, inner);
    out.function.parallelExtent = panels_ * blocks_;
    out.function.body = forLoop(q, index(0), index(panels_ * blocks_), LoopKind::Parallel,
                                t_.isTilesOuter ? block(major, minor) : block(minor, major));
    return out;
  }

 private:
  // Of a tile by number: the values of the batch axes and the first output along each window.
  struct Place {
    std::vector<Expr> batch, origin;
  };
  Place placeOf(Expr p) const {
    Place out;
    out.origin.resize(dims_);
    for (size_t d = dims_; d-- > 0;) {
      const int64_t along = form_.tilesAlong(form_.windows[d], t_.m);
      out.origin[d] = floorMod(p, index(along)) * t_.m;
      p = floorDiv(p, index(along));
    }
    out.batch.resize(form_.batch.size());
    for (size_t k = form_.batch.size(); k-- > 0;) {
      const int64_t extent = s_.axes[form_.batch[k]].extent;
      out.batch[k] = k == 0 ? p : floorMod(p, index(extent));
      if (k > 0) p = floorDiv(p, index(extent));
    }
    return out;
  }

  // ---- data: V[block, point, tile, channel] = B' d B --------------------------------------------------------------------------
  PackedOperand transformedData() const {
    PackedOperand out;
    out.source = x_->buffer;
    out.packed = makeBuffer(x_->buffer->name + ".tiles", {narrow_, 1}, {blocks_, points_, t_.block, form_.channels});
    out.computation.name = "tiles";
    out.computation.inputs = {out.source};
    out.computation.outputs = {out.packed};
    VarRef p = makeVar("p");
    // Past the last tile: the last again, whose products nobody stores.
    Expr tile = minOf(p, index(tiles_ - 1));
    Place place = placeOf(tile);
    std::vector<std::vector<VarRef>> inside(dims_);
    std::vector<std::pair<VarRef, Expr>> lets;
    std::vector<Expr> position(dims_);
    for (size_t d = 0; d < dims_; ++d) {
      VarRef start = makeVar("start" + std::to_string(d));
      position[d] = start;
      lets.emplace_back(start, place.origin[d] + index(form_.windows[d].offset));
      for (int64_t k = 0; k < edge_; ++k) {
        inside[d].push_back(makeVar("in" + std::to_string(d) + std::to_string(k), {DType::Bool, 1}));
        Expr at = Expr(start) + k;
        lets.emplace_back(inside[d].back(), logicalAnd(le(index(0), at), lt(at, index(form_.windows[d].inExtent))));
      }
    }
    VarRef co = makeVar("co"), lane = makeVar("c");
    Expr channel = Expr(co) * channelLanes_ + Expr(lane);
    BufferRef d = makeBuffer("d", {narrow_, 1}, {points_, channelLanes_}, Scope::Register);
    BufferRef half = makeBuffer("half", {narrow_, 1}, {points_, channelLanes_}, Scope::Register);
    std::vector<Stmt> steps;
    auto each = [&](Stmt s) {
      steps.push_back(forLoop(lane, index(0), index(channelLanes_), LoopKind::Vector, std::move(s)));
    };
    const int64_t second = dims_ == 2 ? edge_ : 1;
    for (int64_t i = 0; i < edge_; ++i)
      for (int64_t j = 0; j < second; ++j) {
        std::vector<Expr> indices = x_->indices;
        Substitution axes;
        for (size_t k = 0; k < form_.batch.size(); ++k) axes[s_.axes[form_.batch[k]].var.get()] = place.batch[k];
        for (Expr& e : indices) e = substitute(e, axes);
        indices[form_.windows[0].dim] = position[0] + i;
        if (dims_ == 2) indices[form_.windows[1].dim] = position[1] + j;
        indices.back() = channel;
        Expr guard = inside[0][static_cast<size_t>(i)];
        if (dims_ == 2) guard = logicalAnd(guard, inside[1][static_cast<size_t>(j)]);
        const Expr outside = form_.padding ? form_.padding : constant(x_->buffer->element.dtype, 0);
        Expr value = cast(narrow_, select(guard, load(x_->buffer, indices), outside));
        each(store(d, {index(i * second + j), lane}, value));
      }
    for (int64_t i = 0; i < edge_; ++i)
      for (int64_t j = 0; j < second; ++j)
        each(store(half, {index(i * second + j), lane}, combine(f_.b[static_cast<size_t>(i)], [&](int64_t k) {
                     return load(d, {index(k * second + j), lane});
                   })));
    Expr block = floorDiv(p, index(t_.block)), within = floorMod(p, index(t_.block));
    for (int64_t i = 0; i < edge_; ++i)
      for (int64_t j = 0; j < second; ++j) {
        Expr value = dims_ == 1 ? load(half, {index(i), lane}) : combine(f_.b[static_cast<size_t>(j)], [&](int64_t k) {
          return load(half, {index(i * second + k), lane});
        });
        each(store(out.packed, {block, index(i * second + j), within, channel}, value));
      }
    Stmt body = serial(co, form_.channels / channelLanes_, allocate(d, allocate(half, loop::block(steps))));
    for (size_t k = lets.size(); k-- > 0;) body = letStmt(lets[k].first, lets[k].second, body);
    out.computation.raw = forLoop(p, index(0), index(blocks_ * t_.block), LoopKind::Parallel, body);
    return out;
  }

  // Of a pair of channels, integers lie side by side.
  std::vector<Expr> weightAt(const Expr& panel, const Expr& point, const Expr& channel, const Expr& column,
                             const Expr& lane) const {
    if (!form_.isInteger) return {panel, point, channel, column, lane};
    return {panel, point, floorDiv(channel, index(2)), column, lane, floorMod(channel, index(2))};
  }

  // ---- weights: U[panel, point, channel, column] = G g G' -----------------------------------------------------------------------
  PackedOperand transformedWeights() const {
    PackedOperand out;
    out.source = w_->buffer;
    std::vector<int64_t> dims{panels_, points_, form_.channels, t_.vectors, t_.lanes};
    if (form_.isInteger) {
      dims[2] /= 2;
      dims.push_back(2);
    }
    out.packed = makeBuffer(w_->buffer->name + ".transformed", {narrow_, 1}, dims);
    out.computation.name = "transformed";
    out.computation.inputs = {out.source};
    out.computation.outputs = {out.packed};
    VarRef panel = makeVar("panel"), channel = makeVar("channel"), column = makeVar("column"), lane = makeVar("lane");
    const Expr first = Expr(panel) * columns_ + Expr(column) * t_.lanes;
    const int64_t taps = dims_ == 2 ? 3 : 1, second = dims_ == 2 ? edge_ : 1;
    BufferRef g = makeBuffer("g", {narrow_, 1}, {3 * taps, t_.lanes}, Scope::Register);
    BufferRef half = makeBuffer("half", {narrow_, 1}, {edge_ * taps, t_.lanes}, Scope::Register);
    std::vector<Stmt> steps, zeros;
    auto each = [&](Stmt s) { return forLoop(lane, index(0), index(t_.lanes), LoopKind::Vector, std::move(s)); };
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < taps; ++j) {
        Substitution map;
        for (const Axis& r : s_.reduce) map[r.var.get()] = index(0);
        for (const Axis& a : s_.axes) map[a.var.get()] = index(0);
        map[s_.reduce[form_.windows[0].tap].var.get()] = index(i);
        if (dims_ == 2) map[s_.reduce[form_.windows[1].tap].var.get()] = index(j);
        map[s_.reduce[form_.channelTap].var.get()] = channel;
        map[s_.axes.back().var.get()] = first + Expr(lane);
        std::vector<Expr> indices;
        for (const Expr& e : w_->indices) indices.push_back(substitute(e, map));
        steps.push_back(
            each(store(g, {index(i * taps + j), lane}, cast(narrow_, load(w_->buffer, std::move(indices))))));
      }
    for (int64_t i = 0; i < edge_; ++i)
      for (int64_t j = 0; j < taps; ++j)
        steps.push_back(
            each(store(half, {index(i * taps + j), lane}, combine(f_.g[static_cast<size_t>(i)], [&](int64_t k) {
                         return load(g, {index(k * taps + j), lane});
                       }))));
    for (int64_t i = 0; i < edge_; ++i)
      for (int64_t j = 0; j < second; ++j) {
        Expr value = dims_ == 1 ? load(half, {index(i), lane}) : combine(f_.g[static_cast<size_t>(j)], [&](int64_t k) {
          return load(half, {index(i * taps + k), lane});
        });
        const std::vector<Expr> at = weightAt(panel, index(i * second + j), channel, column, lane);
        steps.push_back(each(store(out.packed, at, value)));
        zeros.push_back(each(store(out.packed, at, constant(narrow_, 0))));
      }
    Stmt body = allocate(g, allocate(half, loop::block(steps)));
    if (form_.outputs % columns_ != 0) body = ifThen(lt(first, index(form_.outputs)), body, loop::block(zeros));
    out.computation.raw = forLoop(panel, index(0), index(panels_), LoopKind::Parallel,
                                  serial(channel, form_.channels, serial(column, t_.vectors, body)));
    return out;
  }

  // ---- products and outputs of one block of tiles and one panel of output channels -----------------------------------------------
  Stmt block(const Expr& tileBlock, const Expr& panel) const {
    BufferRef products = makeBuffer("products", {wide_, 1}, {points_, t_.block, t_.vectors, t_.lanes}, Scope::Stack);
    return allocate(products, loop::block({multiply(products, tileBlock, panel), finish(products, tileBlock, panel)}));
  }

  // Weights are read once or a few times, from far: the steps of a point share out the next point's lines among them.
  Stmt fetchingAhead(const Expr& panel, const Expr& point, const Expr& step, int64_t steps, Stmt body) const {
    constexpr int64_t kLineBytes = 64, kMostLines = 2;
    const int64_t line = kLineBytes / dtypeBytes(narrow_, 1), slab = form_.channels * columns_;
    const int64_t stride = ceilDivide(slab, steps), perStep = ceilDivide(stride, line);
    // A stream that is used up as fast as it comes is the hardware's to follow.
    if (perStep > kMostLines) return body;
    std::vector<Expr> at = weightAt(panel, point, index(0), index(0), index(0));
    for (int64_t k = 0; k < perStep; ++k) {
      std::vector<Expr> ahead = at;
      ahead.back() = step * stride + index(slab + k * line);
      body = letStmt(makeVar("ahead", {narrow_, 1}), call("prefetch", {load(u_, ahead)}), body);
    }
    return body;
  }

  Stmt multiply(const BufferRef& products, const Expr& tileBlock, const Expr& panel) const {
    BufferRef acc = makeBuffer("acc", {wide_, 1}, {t_.rows, t_.vectors, t_.lanes}, Scope::Register);
    VarRef point = makeVar("point"), group = makeVar("group"), co = makeVar("co"), ci = makeVar("ci");
    VarRef row = makeVar("row"), column = makeVar("column"), lane = makeVar("lane");
    auto inTile = [&](Stmt s) {
      return unrolled(
          row, t_.rows,
          unrolled(column, t_.vectors, forLoop(lane, index(0), index(t_.lanes), LoopKind::Vector, std::move(s))));
    };
    Expr tile = Expr(group) * t_.rows + Expr(row);
    // Of one channel, or of a pair.
    auto update = [&](const Expr& channel) {
      auto x = [&](const Expr& c) { return load(v_, {tileBlock, point, tile, c}); };
      auto w = [&](const Expr& c) { return load(u_, weightAt(panel, point, c, column, lane)); };
      const Expr old = load(acc, {row, column, lane});
      const auto pair = [](const Expr& a, const Expr& b) { return call("join", {a, b}); };
      return inTile(store(
          acc, {row, column, lane},
          form_.isInteger ? call("madd16", {old, pair(x(channel), x(channel + 1)), pair(w(channel), w(channel + 1))})
                          : old + x(channel) * w(channel)));
    };
    // More steps of integers at once would have their operands loaded too early for the registers.
    const int64_t unroll = form_.isInteger ? 2 : 4;
    const int64_t taken = form_.isInteger ? 2 : 1, inStep = unroll * taken;
    std::vector<Stmt> steps;
    steps.push_back(inTile(store(acc, {row, column, lane}, constant(wide_, 0))));
    if (int64_t whole = form_.channels / inStep)
      steps.push_back(serial(co, whole,
                             fetchingAhead(panel, point, Expr(group) * whole + Expr(co), t_.block / t_.rows * whole,
                                           unrolled(ci, unroll, update(Expr(co) * inStep + Expr(ci) * taken)))));
    if (int64_t rest = form_.channels % inStep)
      steps.push_back(unrolled(ci, rest / taken, update(Expr(ci) * taken + (form_.channels - rest))));
    steps.push_back(inTile(store(products, {point, tile, column, lane}, load(acc, {row, column, lane}))));
    return serial(point, points_, serial(group, t_.block / t_.rows, allocate(acc, loop::block(steps))));
  }

  // An output from 2 (24) times itself for each dim. 3 and 9 have inverses modulo 2^32; of the rest no bit is lost (`holdsSums`).
  Expr unscaled(const Expr& e) const {
    constexpr int64_t kInverseOf3 = 0xAAAAAAAB, kInverseOf9 = 0x38E38E39;
    if (t_.m == 2) return binary(BinaryOp::Shr, e, intImm(wide_, dims_ == 2 ? 2 : 1));
    const auto inverse = static_cast<int32_t>(dims_ == 2 ? kInverseOf9 : kInverseOf3);
    return binary(BinaryOp::Shr, e * intImm(wide_, inverse), intImm(wide_, dims_ == 2 ? 6 : 3));
  }

  Stmt finish(const BufferRef& products, const Expr& tileBlock, const Expr& panel) const {
    VarRef within = makeVar("tile"), column = makeVar("column"), lane = makeVar("lane");
    Expr tile = tileBlock * t_.block + Expr(within);
    Place place = placeOf(tile);
    const int64_t second = dims_ == 2 ? edge_ : 1, secondOut = dims_ == 2 ? t_.m : 1;
    BufferRef half = makeBuffer("half", {wide_, 1}, {t_.m * second, t_.lanes}, Scope::Register);
    BufferRef y = makeBuffer("y", {wide_, 1}, {t_.m * secondOut, t_.lanes}, Scope::Register);
    std::vector<Stmt> steps;
    auto each = [&](Stmt s) { return forLoop(lane, index(0), index(t_.lanes), LoopKind::Vector, std::move(s)); };
    for (int64_t j = 0; j < second; ++j)
      for (int64_t i = 0; i < t_.m; ++i)
        steps.push_back(
            each(store(half, {index(i * second + j), lane}, combine(f_.a[static_cast<size_t>(i)], [&](int64_t k) {
                         return load(products, {index(k * second + j), within, column, lane});
                       }))));
    for (int64_t i = 0; i < t_.m; ++i)
      for (int64_t j = 0; j < secondOut; ++j) {
        Expr value = dims_ == 1 ? load(half, {index(i), lane}) : combine(f_.a[static_cast<size_t>(j)], [&](int64_t k) {
          return load(half, {index(i * second + k), lane});
        });
        steps.push_back(each(store(y, {index(i * secondOut + j), lane}, form_.isInteger ? unscaled(value) : value)));
      }
    std::vector<VarRef> origin;
    for (size_t d = 0; d < dims_; ++d) origin.push_back(makeVar("origin" + std::to_string(d)));
    std::vector<Stmt> all, guarded;
    Expr whole;
    for (size_t d = 0; d < dims_; ++d) {
      if (form_.windows[d].outExtent % t_.m == 0) continue;
      Expr fits = le(Expr(origin[d]) + t_.m, index(form_.windows[d].outExtent));
      whole = whole ? logicalAnd(whole, fits) : fits;
    }
    for (int64_t i = 0; i < t_.m; ++i)
      for (int64_t j = 0; j < secondOut; ++j) {
        Substitution map;
        for (size_t k = 0; k < form_.batch.size(); ++k) map[s_.axes[form_.batch[k]].var.get()] = place.batch[k];
        map[s_.axes[form_.windows[0].axis].var.get()] = Expr(origin[0]) + i;
        if (dims_ == 2) map[s_.axes[form_.windows[1].axis].var.get()] = Expr(origin[1]) + j;
        map[s_.axes.back().var.get()] = panel * columns_ + Expr(column) * t_.lanes + Expr(lane);
        Expr value = load(y, {index(i * secondOut + j), lane});
        if (s_.epilogue) {
          Substitution full = map;
          full[s_.acc.get()] = value;
          value = substitute(s_.epilogue, full);
        }
        std::vector<Expr> indices;
        for (const Axis& a : s_.axes) indices.push_back(map.at(a.var.get()));
        Stmt st = each(store(s_.out, std::move(indices), value));
        all.push_back(st);
        Expr in;
        for (size_t d = 0; d < dims_; ++d) {
          const int64_t k = d == 0 ? i : j;
          if (form_.windows[d].outExtent % t_.m == 0) continue;
          Expr fits = lt(Expr(origin[d]) + k, index(form_.windows[d].outExtent));
          in = in ? logicalAnd(in, fits) : fits;
        }
        guarded.push_back(in ? ifThen(in, st) : st);
      }
    steps.push_back(whole ? ifThen(whole, loop::block(all), loop::block(guarded)) : loop::block(all));
    Stmt body = allocate(half, allocate(y, loop::block(steps)));
    if (form_.outputs % columns_ != 0)
      body = ifThen(lt(panel * columns_ + Expr(column) * t_.lanes, index(form_.outputs)), body);
    body = serial(column, t_.vectors, body);
    for (size_t d = dims_; d-- > 0;) body = letStmt(origin[d], place.origin[d], body);
    if (tiles_ % t_.block != 0) body = ifThen(lt(tile, index(tiles_)), body);
    return serial(within, t_.block, body);
  }

  const Computation& c_;
  const Stage& s_;
  const WinogradForm& form_;
  const WinogradTile& t_;
  const Transforms& f_;
  DType narrow_, wide_;  ///< of what is transformed and multiplied; of sums
  int64_t edge_;
  size_t dims_;
  int64_t points_, tiles_, blocks_, columns_, panels_, channelLanes_;
  const Load* x_ = nullptr;
  const Load* w_ = nullptr;
  BufferRef v_, u_;
};

std::optional<WinogradTile> readSteps(const std::vector<Step>& steps) {
  if (steps.size() != 6) return std::nullopt;
  WinogradTile t;
  t.m = steps[0].factor;
  t.block = steps[1].factor;
  t.rows = steps[2].factor;
  t.lanes = steps[4].factor;
  if (t.lanes < 1) return std::nullopt;
  t.vectors = steps[3].factor / t.lanes;
  t.isTilesOuter = steps[5].loops.size() == 2 && steps[5].loops[0] == "p.o";
  // One way to write each choice.
  return winogradSteps(t) == steps ? std::make_optional(t) : std::nullopt;
}

}  // namespace

std::vector<Step> winogradSteps(const WinogradTile& t) {
  return {{Primitive::Winograd, 0, {}, t.m, Tail::Peel},
          {Primitive::Split, 0, {"p"}, t.block, Tail::Mask},
          {Primitive::Split, 0, {"p.i"}, t.rows, Tail::Mask},
          {Primitive::Split, 0, {"o"}, t.vectors * t.lanes, Tail::Mask},
          {Primitive::Split, 0, {"o.i"}, t.lanes, Tail::Mask},
          {Primitive::Reorder, 0,
           t.isTilesOuter ? std::vector<std::string>{"p.o", "o.o"} : std::vector<std::string>{"o.o", "p.o"}, 0,
           Tail::Peel}};
}

bool isWinograd(const Plan& plan) { return !plan.steps.empty() && plan.steps[0].primitive == Primitive::Winograd; }

std::variant<Lowered, ApplyError> applyWinograd(const Computation& c, const Plan& plan) {
  if (c.stages.size() != 1) return ApplyError{Illegal::NotWinograd, 0};
  auto form = winogradForm(c.stages[0]);
  auto tile = readSteps(plan.steps);
  if (!form || !tile) return ApplyError{Illegal::NotWinograd, 0};
  const bool isLegal = (tile->m == 2 || tile->m == 4) && holdsSums(*form, tile->m) && tile->rows >= 1 &&
                       tile->vectors >= 1 && (tile->lanes & (tile->lanes - 1)) == 0 &&
                       form->outputs % tile->lanes == 0 && tile->block >= 1 && tile->block % tile->rows == 0;
  if (!isLegal) return ApplyError{Illegal::BadFactor, 0};
  return Winograd(c, *form, *tile).run();
}

}  // namespace locution::schedule

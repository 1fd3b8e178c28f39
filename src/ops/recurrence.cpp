// Recurrences over packed weights: a step takes tile after tile of units; a tile's gates accumulate in registers from their projected
// inputs on, over a stream of weights and the broadcast elements of the state, and go through the cell where they are.
#include "ops/recurrence.h"

#include <algorithm>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;
using loop::LoopKind;
using loop::Stmt;

int64_t gatesOf(const std::string& cell) { return cell == "LSTM" ? 4 : cell == "GRU" ? 3 : 1; }

std::vector<std::string> defaultActivations(const std::string& cell) {
  if (cell == "LSTM") return {"Sigmoid", "Tanh", "Tanh"};
  if (cell == "GRU") return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

Status inferRecurrence(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 3));
  const graph::Node& node = c.node();
  std::string cell = node.stringAttr("cell", "");
  LOCUTION_RETURN_IF_ERROR(needOneOf("cell", cell, {"RNN", "GRU", "LSTM"}));
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrentAttributes(node, gatesOf(cell), defaultActivations(cell)));
  const Shape& x = c.input(0).shape;
  Dim hidden(node.intAttr("hidden_size", 0)), d(r.directions);
  Dim steps = x.isRanked() ? x[r.batchFirst ? 1 : 0] : c.freshDim();
  Dim batch = x.isRanked() ? x[r.batchFirst ? 0 : 1] : c.freshDim();
  DType type = c.input(0).dtype;
  c.setOutput(0, type, r.batchFirst ? Shape{batch, steps, d, hidden} : Shape{steps, d, batch, hidden});
  for (size_t i = 1; i < c.outputCount(); ++i)
    c.setOutput(i, type, r.batchFirst ? Shape{batch, d, hidden} : Shape{d, batch, hidden});
  return Status::ok();
}

namespace {

Stmt loopOver(const loop::VarRef& v, int64_t extent, LoopKind kind, Stmt body) {
  return loop::forLoop(v, loop::index(0), loop::index(extent), kind, std::move(body));
}

class RecurrenceLoops {
 public:
  RecurrenceLoops(ComputeContext& c, const Recurrent& r, const RecurrenceTile& tile)
      : c_(c), r_(r), t_(tile), cell_(c.node().stringAttr("cell", "")) {
    unit_ = t_.lanes * t_.vectors;
    unitTiles_ = ceilDivide(r.hidden, unit_);
    padded_ = unitTiles_ * unit_;
    taskRows_ = t_.rows * t_.tiles;
    tasks_ = ceilDivide(r.batch, taskRows_);
    isRagged_ = c.hasInput(4);
    resetAfter_ = c.node().intAttr("linear_before_reset", 0) != 0;
    coupled_ = c.node().intAttr("input_forget", 0) != 0;
  }

  Stmt build() {
    auto state = [&](const char* name) { return c_.temporary(name, DType::F32, {taskRows_, padded_}); };
    h_ = state("h");
    nextH_ = state("next");
    std::vector<loop::BufferRef> buffers{h_, nextH_};
    if (cell_ == "LSTM") {
      cellState_ = state("c");
      nextCell_ = state("nextc");
      buffers.insert(buffers.end(), {cellState_, nextCell_});
    } else if (cell_ == "GRU" && !resetAfter_) {
      update_ = state("update");
      reset_ = state("reset");
      buffers.insert(buffers.end(), {update_, reset_});
    }
    loop::VarRef task = loop::makeVar("task"), step = loop::makeVar("t");
    int64_t all = tasks_ * r_.directions;
    direction_ = r_.directions == 1 ? loop::index(0) : floorDiv(task, loop::index(tasks_));
    first_ = tasks_ == 1 ? loop::index(0) : floorMod(task, loop::index(tasks_)) * taskRows_;
    step_ = step;
    Stmt body = loop::block({start(h_, 5), cellState_ ? start(cellState_, 6) : loop::block({}),
                             loopOver(step, r_.steps, LoopKind::Serial, oneStep()), finish(h_, 1),
                             cellState_ ? finish(cellState_, 2) : loop::block({})});
    return loopOver(task, all, all > 1 ? LoopKind::Parallel : LoopKind::Serial, withBuffers(buffers, body));
  }

 private:
  /// `f` at vectors of indices, then at single ones.
  Stmt alongUnits(int64_t count, const std::function<Stmt(const Expr&)>& f) const {
    std::vector<Stmt> stmts;
    int64_t whole = count / t_.lanes * t_.lanes;
    if (whole > 0) {
      loop::VarRef v = loop::makeVar("v");
      Expr lanes = loop::ramp(Expr(v) * t_.lanes, loop::index(1), static_cast<int>(t_.lanes));
      stmts.push_back(loopOver(v, whole / t_.lanes, LoopKind::Serial, f(lanes)));
    }
    if (whole < count) {
      loop::VarRef u = loop::makeVar("u");
      stmts.push_back(loopOver(u, count - whole, LoopKind::Serial, f(Expr(u) + whole)));
    }
    return loop::block(stmts);
  }

  bool hasSpareRows() const { return tasks_ * taskRows_ != r_.batch; }
  /// The batch entry of a row of the task; spare rows repeat the last entry.
  Expr entry(const Expr& row) const {
    Expr b = first_ + row;
    return hasSpareRows() ? minOf(b, loop::index(r_.batch - 1)) : b;
  }
  Stmt ifReal(const Expr& row, Stmt s) const {
    return hasSpareRows() ? loop::ifThen(lt(first_ + row, loop::index(r_.batch)), std::move(s)) : s;
  }
  std::vector<Expr> stateIndices(const Expr& b, const Expr& u) const {
    return r_.batchFirst ? std::vector<Expr>{b, direction_, u} : std::vector<Expr>{direction_, b, u};
  }

  Stmt start(const loop::BufferRef& state, size_t input) const {
    loop::VarRef row = loop::makeVar("row");
    Stmt known = alongUnits(r_.hidden, [&](const Expr& u) {
      Expr value = c_.hasInput(input) ? c_.at(input, stateIndices(entry(row), u))
                                      : loop::broadcast(loop::constant(DType::F32, 0), u->type.lanes);
      return store(state, {row, u}, value);
    });
    loop::VarRef u = loop::makeVar("u");
    Stmt padding = r_.hidden == padded_
                       ? loop::block({})
                       : loopOver(u, padded_ - r_.hidden, LoopKind::Serial,
                                  store(state, {row, Expr(u) + r_.hidden}, loop::constant(DType::F32, 0)));
    return loopOver(row, taskRows_, LoopKind::Serial, loop::block({known, padding}));
  }

  Stmt finish(const loop::BufferRef& state, size_t output) const {
    if (!c_.wantsOutput(output)) return loop::block({});
    loop::VarRef row = loop::makeVar("row");
    Stmt copy = alongUnits(r_.hidden, [&](const Expr& u) {
      return store(c_.outputBuffer(output), stateIndices(first_ + row, u), load(state, {row, u}));
    });
    return loopOver(row, taskRows_, LoopKind::Serial, ifReal(row, copy));
  }

  Expr length(const Expr& b) const { return isRagged_ ? cast(DType::I64, c_.at(4, {b})) : loop::index(r_.steps); }
  /// The step of the sequence that a row is at; where the sequence is over, any.
  Expr timeOf(const Expr& b) const {
    bool ever = r_.reverseOnly || r_.directions == 2;
    if (!ever) return step_;
    Expr back = length(b) - 1 - step_;
    if (isRagged_) back = maxOf(back, loop::index(0));
    return r_.directions == 2 ? select(eq(direction_, loop::index(1)), back, step_) : back;
  }

  Stmt oneStep() const {
    std::vector<Stmt> stmts;
    if (cell_ == "LSTM") {
      stmts.push_back(phase(4, false, [&](const Tile& t) { return lstmUnit(t); }));
    } else if (cell_ == "RNN") {
      stmts.push_back(phase(1, false, [&](const Tile& t) {
        return store(nextH_, {t.row, t.units}, applyActivation(r_.activations[0], clipped(r_, t.gate(0))));
      }));
    } else if (resetAfter_) {
      stmts.push_back(phase(3, false, [&](const Tile& t) { return gruUnit(t); }));
    } else {
      stmts.push_back(phase(2, false, [&](const Tile& t) {
        const Recurrent::Activation& f = r_.activations[0];
        Expr reset = applyActivation(f, clipped(r_, t.gate(1)));
        return loop::block({store(update_, {t.row, t.units}, applyActivation(f, clipped(r_, t.gate(0)))),
                            store(reset_, {t.row, t.units}, reset * load(h_, {t.row, t.units}))});
      }));
      stmts.push_back(phase(1, true, [&](const Tile& t) {
        return mixed(t, load(update_, {t.row, t.units}), applyActivation(r_.activations[1], clipped(r_, t.gate(0))));
      }));
    }
    stmts.push_back(commit());
    return loop::block(stmts);
  }

  /// What a cell sees of one vector of units of one row.
  struct Tile {
    Expr row, entry, units;                  ///< units: among the padded ones
    std::function<Expr(int64_t)> gate;       ///< its sum
    std::function<Expr(int64_t)> projected;  ///< its projected input
  };

  /// The sums of the first `count` gates over the state, or of GRU's candidate over the reset state, tile after tile; then the cell.
  Stmt phase(int64_t count, bool isCandidate, const std::function<Stmt(const Tile&)>& cell) const {
    size_t weights = isCandidate ? 2 : 1;
    int64_t offset = isCandidate ? 2 : 0;
    const loop::BufferRef& source = isCandidate ? reset_ : h_;
    loop::VarRef j = loop::makeVar("j"), m = loop::makeVar("m");
    auto lanes = static_cast<int>(t_.lanes);
    loop::BufferRef sums =
        loop::makeBuffer("sums", {DType::F32, lanes}, {t_.rows, count, t_.vectors}, loop::Scope::Register);
    auto row = [&](int64_t i) { return Expr(m) * t_.rows + i; };
    std::vector<Expr> entries, times;
    Lets lets;
    for (int64_t i = 0; i < t_.rows; ++i) {
      entries.push_back(lets("b", entry(row(i))));
      times.push_back(lets("at", timeOf(entries.back())));
    }
    auto projected = [&](int64_t i, int64_t g, int64_t v) {
      Expr n = ((direction_ * unitTiles_ + Expr(j)) * r_.gates + (offset + g)) * unit_ + v * t_.lanes;
      Expr at = loop::ramp(n, loop::index(1), lanes);
      const Expr &b = entries[static_cast<size_t>(i)], &time = times[static_cast<size_t>(i)];
      return r_.batchFirst ? c_.at(0, {b, time, at}) : c_.at(0, {time, b, at});
    };
    auto sum = [&](int64_t i, int64_t g, int64_t v) {
      return std::vector<Expr>{loop::index(i), loop::index(g), loop::index(v)};
    };
    std::vector<Stmt> init, finish;
    forTile(count, [&](int64_t i, int64_t g, int64_t v) {
      Expr value = projected(i, g, v);
      // The reset gate scales what the state gives to the candidate: its sum stays apart.
      if (resetAfter_ && cell_ == "GRU" && g == 2)
        value = c_.hasInput(2)
                    ? c_.at(2, {direction_, loop::ramp(Expr(j) * unit_ + v * t_.lanes, loop::index(1), lanes)})
                    : loop::broadcast(loop::constant(DType::F32, 0), lanes);
      init.push_back(store(sums, sum(i, g, v), value));
    });
    for (int64_t i = 0; i < t_.rows; ++i)
      for (int64_t v = 0; v < t_.vectors; ++v) {
        Tile t{row(i), entries[static_cast<size_t>(i)],
               loop::ramp(Expr(j) * unit_ + v * t_.lanes, loop::index(1), lanes),
               [&, i, v](int64_t g) { return load(sums, sum(i, g, v)); },
               [&, i, v](int64_t g) { return projected(i, g, v); }};
        finish.push_back(cell(t));
      }
    auto accumulate = [&](const Expr& k) {
      std::vector<Stmt> stmts;
      forTile(count, [&](int64_t i, int64_t g, int64_t v) {
        Expr w = c_.at(weights,
                       {direction_, j, k, loop::ramp(loop::index(g * unit_ + v * t_.lanes), loop::index(1), lanes)});
        Expr x = loop::broadcast(load(source, {row(i), k}), lanes);
        stmts.push_back(store(sums, sum(i, g, v), load(sums, sum(i, g, v)) + x * w));
      });
      return loop::block(stmts);
    };
    constexpr int64_t kUnroll = 4;
    std::vector<Stmt> body = std::move(init);
    int64_t whole = r_.hidden / kUnroll * kUnroll;
    if (whole > 0) {
      loop::VarRef o = loop::makeVar("k"), u = loop::makeVar("ku");
      body.push_back(loopOver(o, whole / kUnroll, LoopKind::Serial,
                              loopOver(u, kUnroll, LoopKind::Unrolled, accumulate(Expr(o) * kUnroll + Expr(u)))));
    }
    for (int64_t k = whole; k < r_.hidden; ++k) body.push_back(accumulate(loop::index(k)));
    body.insert(body.end(), finish.begin(), finish.end());
    Stmt tile = lets.around(withBuffers({sums}, loop::block(body)));
    return loopOver(j, unitTiles_, LoopKind::Serial, loopOver(m, t_.tiles, LoopKind::Serial, tile));
  }

  void forTile(int64_t gates, const std::function<void(int64_t, int64_t, int64_t)>& f) const {
    for (int64_t i = 0; i < t_.rows; ++i)
      for (int64_t g = 0; g < gates; ++g)
        for (int64_t v = 0; v < t_.vectors; ++v) f(i, g, v);
  }

  Stmt lstmUnit(const Tile& t) const {
    const Recurrent::Activation* act = r_.activations.data();
    auto peephole = [&](int64_t block, const Expr& state, Expr value) {
      return c_.hasInput(7) ? value + c_.at(7, {direction_, loop::index(block), t.units}) * state : value;
    };
    Expr one = loop::constant(DType::F32, 1);
    Lets lets;
    Expr before = lets("before", load(cellState_, {t.row, t.units}));
    Expr i = lets("i", applyActivation(act[0], clipped(r_, peephole(0, before, t.gate(0)))));
    Expr f = coupled_ ? one - i : lets("f", applyActivation(act[0], clipped(r_, peephole(2, before, t.gate(2)))));
    Expr candidate = lets("g", applyActivation(act[1], clipped(r_, t.gate(3))));
    Expr after = lets("after", f * before + i * candidate);
    Expr o = lets("o", applyActivation(act[0], clipped(r_, peephole(1, after, t.gate(1)))));
    return lets.around(loop::block({store(nextCell_, {t.row, t.units}, after),
                                    store(nextH_, {t.row, t.units}, o * applyActivation(act[2], after))}));
  }

  Stmt gruUnit(const Tile& t) const {
    const Recurrent::Activation &f = r_.activations[0], &g = r_.activations[1];
    Lets lets;
    Expr z = lets("z", applyActivation(f, clipped(r_, t.gate(0))));
    Expr reset = lets("r", applyActivation(f, clipped(r_, t.gate(1))));
    Expr candidate = applyActivation(g, clipped(r_, t.projected(2) + reset * t.gate(2)));
    return lets.around(mixed(t, z, candidate));
  }
  Stmt mixed(const Tile& t, const Expr& z, const Expr& candidate) const {
    return store(nextH_, {t.row, t.units},
                 (loop::constant(DType::F32, 1) - z) * candidate + z * load(h_, {t.row, t.units}));
  }

  /// The next state becomes the present one and is written to Y.
  Stmt commit() const {
    loop::VarRef row = loop::makeVar("row");
    Expr b = entry(row), real = first_ + row;
    auto y = [&](const Expr& time, const Expr& u, const Expr& value) -> Stmt {
      std::vector<Expr> at =
          r_.batchFirst ? std::vector<Expr>{real, time, direction_, u} : std::vector<Expr>{time, direction_, real, u};
      return store(c_.outputBuffer(0), at, value);
    };
    Lets lets;
    Expr time = lets("at", timeOf(b));
    auto advance = [&](bool writes) {
      return alongUnits(r_.hidden, [&](const Expr& u) {
        std::vector<Stmt> stmts{store(h_, {row, u}, load(nextH_, {row, u}))};
        if (nextCell_) stmts.push_back(store(cellState_, {row, u}, load(nextCell_, {row, u})));
        if (writes) stmts.push_back(y(time, u, load(nextH_, {row, u})));
        return loop::block(stmts);
      });
    };
    bool writes = c_.wantsOutput(0);
    Stmt body;
    if (writes && hasSpareRows())
      body = loop::ifThen(lt(real, loop::index(r_.batch)), advance(true), advance(false));
    else
      body = advance(writes);
    body = lets.around(body);
    if (isRagged_) {
      Stmt over =
          writes ? ifReal(row, alongUnits(r_.hidden,
                                          [&](const Expr& u) {
                                            return y(step_, u,
                                                     loop::broadcast(loop::constant(DType::F32, 0), u->type.lanes));
                                          }))
                 : nullptr;
      body = loop::ifThen(lt(step_, length(b)), body, over);
    }
    return loopOver(row, taskRows_, LoopKind::Serial, body);
  }

  ComputeContext& c_;
  const Recurrent& r_;
  const RecurrenceTile& t_;
  std::string cell_;
  int64_t unit_ = 0, unitTiles_ = 0, padded_ = 0, taskRows_ = 0, tasks_ = 0;
  bool isRagged_ = false, resetAfter_ = false, coupled_ = false;
  loop::BufferRef h_, nextH_, cellState_, nextCell_, update_, reset_;
  Expr direction_, first_, step_;
};

}  // namespace

Status computeRecurrence(ComputeContext& c) {
  const graph::Node& node = c.node();
  std::string cell = node.stringAttr("cell", "");
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrentAttributes(node, gatesOf(cell), defaultActivations(cell)));
  std::vector<int64_t> x = c.inputExtents(0);
  r.steps = x[r.batchFirst ? 1 : 0];
  r.batch = x[r.batchFirst ? 0 : 1];
  r.hidden = node.intAttr("hidden_size", 0);
  r.type = r.accumulator = DType::F32;
  RecurrenceTile tile{node.intAttr("lanes", 8), node.intAttr("vectors", 1), node.intAttr("rows", 1),
                      node.intAttr("tiles", 1)};
  if (c.input(0).dtype != DType::F32 || r.hidden < 1 || tile.lanes < 1 || tile.vectors < 1 || tile.rows < 1 ||
      tile.tiles < 1)
    return Status::error("is not the recurrence that split-recurrent makes");
  if (c.hasInput(4)) c.checkIndices(4, 0, r.steps);
  c.setRaw(RecurrenceLoops(c, r, tile).build());
  return Status::ok();
}

}  // namespace locution::ops

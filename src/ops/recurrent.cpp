// RNN, GRU and LSTM as raw loops: a cell computes the gates of one unit from dot products over the input and the state, then the next
// state; sums run over vectors of lanes.
#include "ops/recurrent.h"

#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;
using loop::Stmt;

namespace {

/// Copies the next state of a batch entry over the present one.
Stmt commit(const Recurrent& r, const loop::BufferRef& state, const loop::BufferRef& next, const Expr& batch) {
  loop::Axis u{loop::makeVar("u"), r.hidden};
  return nest({u}, store(state, {batch, u.var}, load(next, {u.var})));
}

}  // namespace

Status inferRNN(InferContext& c) { return inferRecurrent(c, 1, {"Tanh"}); }
Status inferGRU(InferContext& c) { return inferRecurrent(c, 3, {"Sigmoid", "Tanh"}); }
Status inferLSTM(InferContext& c) { return inferRecurrent(c, 4, {"Sigmoid", "Tanh", "Tanh"}); }

Status computeRNN(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrent(c, 1, {"Tanh"}));
  State h{5, 1, c.temporary("h", r.accumulator, {r.batch, r.hidden})};
  loop::BufferRef next = c.temporary("next", r.accumulator, {r.hidden});
  Dots dots(r, 1);
  Stmt loops = recurrentLoops(c, r, {h}, [&](const Step& s) {
    loop::Axis u{loop::makeVar("u"), r.hidden};
    auto d = static_cast<size_t>(s.direction);
    Expr sum = dots.sum(0) + (biasOf(c, r, s.direction, 0, u.var) + biasOf(c, r, s.direction, 1, u.var));
    Stmt unit = loop::block({dots.clear(),
                             dots.add(c.inputBuffer(1), s.direction, {u.var}, r.inputs,
                                      [&](const Expr& i) { return inputFeature(c, r, s, i); }),
                             dots.add(c.inputBuffer(2), s.direction, {u.var}, r.hidden,
                                      [&](const Expr& i) {
                                        return load(h.buffer, {s.batch, i});
                                      }),
                             store(next, {u.var}, applyActivation(r.activations[d], clipped(r, sum)))});
    return loop::block({nest({u}, withBuffers(dots.buffers(), unit)), commit(r, h.buffer, next, s.batch)});
  });
  c.setRaw(withBuffers({next}, loops));
  return Status::ok();
}

// Gates in the order z (update), r (reset), h (candidate).
Status computeGRU(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrent(c, 3, {"Sigmoid", "Tanh"}));
  bool resetAfter = c.node().intAttr("linear_before_reset", 0) != 0;
  State h{5, 1, c.temporary("h", r.accumulator, {r.batch, r.hidden})};
  loop::BufferRef next = c.temporary("next", r.accumulator, {r.hidden}),
                  update = c.temporary("update", r.accumulator, {r.hidden});
  loop::BufferRef reset = c.temporary("reset", r.accumulator, {r.hidden});
  Dots gates(r, 2), fromInput(r, 1), fromState(r, 1);
  Expr one = loop::constant(r.accumulator, 1);
  Stmt loops = recurrentLoops(c, r, {h}, [&](const Step& s) {
    int64_t d = s.direction;
    const Recurrent::Activation &f = r.activations[static_cast<size_t>(2 * d)],
                                &g = r.activations[static_cast<size_t>(2 * d + 1)];
    auto feature = [&](const Expr& i) { return inputFeature(c, r, s, i); };
    auto bias = [&](int64_t block, const Expr& u) { return biasOf(c, r, d, block, u); };
    // First z and r of every unit: the candidate reads all of r * h.
    loop::Axis u{loop::makeVar("u"), r.hidden};
    std::vector<Expr> rows{u.var, u.var + r.hidden};
    auto gate = [&](size_t i) {
      auto block = static_cast<int64_t>(i);
      return applyActivation(f, clipped(r, gates.sum(i) + (bias(block, u.var) + bias(3 + block, u.var))));
    };
    Expr state = load(h.buffer, {s.batch, u.var}), resetGate = gate(1);
    Stmt unit = loop::block({gates.clear(), gates.add(c.inputBuffer(1), d, rows, r.inputs, feature),
                             gates.add(c.inputBuffer(2), d, rows, r.hidden,
                                       [&](const Expr& i) {
                                         return load(h.buffer, {s.batch, i});
                                       }),
                             store(update, {u.var}, gate(0)),
                             store(reset, {u.var}, resetAfter ? resetGate : resetGate * state)});
    Stmt first = nest({u}, withBuffers(gates.buffers(), unit));

    loop::Axis v{loop::makeVar("u"), r.hidden};
    std::vector<Expr> row{v.var + 2 * r.hidden};
    Stmt recurrent = fromState.add(c.inputBuffer(2), d, row, r.hidden, [&](const Expr& i) {
      return resetAfter ? load(h.buffer, {s.batch, i}) : load(reset, {i});
    });
    Expr hiddenPart = fromState.sum(0) + bias(5, v.var);
    if (resetAfter) hiddenPart = load(reset, {v.var}) * hiddenPart;
    Expr candidate = applyActivation(g, clipped(r, fromInput.sum(0) + bias(2, v.var) + hiddenPart));
    Expr z = load(update, {v.var});
    Stmt mix = store(next, {v.var}, (one - z) * candidate + z * load(h.buffer, {s.batch, v.var}));
    std::vector<loop::BufferRef> buffers = fromInput.buffers();
    buffers.insert(buffers.end(), fromState.buffers().begin(), fromState.buffers().end());
    Stmt second = nest(
        {v}, withBuffers(buffers,
                         loop::block({fromInput.clear(), fromState.clear(),
                                      fromInput.add(c.inputBuffer(1), d, row, r.inputs, feature), recurrent, mix})));
    return loop::block({first, second, commit(r, h.buffer, next, s.batch)});
  });
  c.setRaw(withBuffers({next, update, reset}, loops));
  return Status::ok();
}

// Gates in the order i (input), o (output), f (forget), c (cell); peepholes P in the order i, o, f.
Status computeLSTM(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrent(c, 4, {"Sigmoid", "Tanh", "Tanh"}));
  bool coupled = c.node().intAttr("input_forget", 0) != 0;
  State h{5, 1, c.temporary("h", r.accumulator, {r.batch, r.hidden})},
      cell{6, 2, c.temporary("c", r.accumulator, {r.batch, r.hidden})};
  loop::BufferRef next = c.temporary("next", r.accumulator, {r.hidden});
  Dots gates(r, 4);
  Expr one = loop::constant(r.accumulator, 1);
  Stmt loops = recurrentLoops(c, r, {h, cell}, [&](const Step& s) {
    int64_t d = s.direction;
    const Recurrent::Activation* act = &r.activations[static_cast<size_t>(3 * d)];
    loop::Axis u{loop::makeVar("u"), r.hidden};
    std::vector<Expr> rows;
    for (int64_t g = 0; g < 4; ++g) rows.push_back(u.var + g * r.hidden);
    auto preActivation = [&](int64_t g) {
      return gates.sum(static_cast<size_t>(g)) + (biasOf(c, r, d, g, u.var) + biasOf(c, r, d, 4 + g, u.var));
    };
    auto peephole = [&](int64_t g, const Expr& state, Expr value) {
      if (!c.hasInput(7)) return value;
      return value + loop::cast(r.accumulator, c.at(7, {loop::index(d), u.var + g * r.hidden})) * state;
    };
    Lets lets;
    Expr before = lets("before", load(cell.buffer, {s.batch, u.var}));
    Expr i = lets("i", applyActivation(act[0], clipped(r, peephole(0, before, preActivation(0)))));
    Expr f = coupled ? one - i : lets("f", applyActivation(act[0], clipped(r, peephole(2, before, preActivation(2)))));
    Expr candidate = lets("g", applyActivation(act[1], clipped(r, preActivation(3))));
    Expr after = lets("after", f * before + i * candidate);
    Expr o = lets("o", applyActivation(act[0], clipped(r, peephole(1, after, preActivation(1)))));
    Stmt write = lets.around(loop::block(
        {store(cell.buffer, {s.batch, u.var}, after), store(next, {u.var}, o * applyActivation(act[2], after))}));
    Stmt unit = loop::block(
        {gates.clear(),
         gates.add(c.inputBuffer(1), d, rows, r.inputs, [&](const Expr& k) { return inputFeature(c, r, s, k); }),
         gates.add(c.inputBuffer(2), d, rows, r.hidden,
                   [&](const Expr& k) {
                     return load(h.buffer, {s.batch, k});
                   }),
         write});
    return loop::block({nest({u}, withBuffers(gates.buffers(), unit)), commit(r, h.buffer, next, s.batch)});
  });
  c.setRaw(withBuffers({next}, loops));
  return Status::ok();
}

}  // namespace locution::ops

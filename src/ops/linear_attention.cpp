// Sequence models with a carried state: CausalConvWithState (stages) and LinearAttention (raw loops over time; the state is float32).
#include <cmath>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/raw.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;
using loop::Stmt;

// Inputs: input [N, C, L], weight [C, 1, K], bias [C], past_state [N, C, K - 1].
Status inferCausalConvWithState(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2, 3}));
  for (size_t i : {0, 1, 3}) LOCUTION_RETURN_IF_ERROR(needRank(c, i, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, 1));
  LOCUTION_RETURN_IF_ERROR(
      needOneOf("activation", c.node().stringAttr("activation", "none"), {"none", "silu", "swish"}));
  const Shape &x = c.input(0).shape, &w = c.input(1).shape;
  if (w.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(w[1], Dim(1), "second dim of the weights and 1"));
    if (w[2] == Dim(0)) return Status::error("the kernel is empty");
  }
  if (x.isRanked() && w.isRanked()) LOCUTION_RETURN_IF_ERROR(needSameDim(x[1], w[0], "channels of input and weights"));
  if (w.isRanked() && c.hasInput(2) && c.input(2).shape.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(c.input(2).shape[0], w[0], "elements of the bias and channels"));
  }
  Dim kept = w.isRanked() ? w[2] - Dim(1) : c.freshDim();
  if (c.hasInput(3) && c.input(3).shape.isRanked()) {
    const Shape& past = c.input(3).shape;
    LOCUTION_RETURN_IF_ERROR(needSameDim(past[2], kept, "length of past_state and kernel size - 1"));
    for (int64_t d : {0, 1}) {
      if (!x.isRanked()) break;
      LOCUTION_RETURN_IF_ERROR(needSameDim(past[d], x[d], "dim " + std::to_string(d) + " of past_state and input"));
    }
  }
  c.setOutput(0, c.input(0).dtype, x);
  c.setOutput(1, c.input(0).dtype, x.isRanked() ? Shape{x[0], x[1], kept} : Shape::unranked());
  return Status::ok();
}

Status computeCausalConvWithState(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0), w = c.inputExtents(1);
  int64_t kept = w[2] - 1;
  DType dtype = c.input(0).dtype, type = accumulatorType(dtype);
  loop::Stage whole;
  whole.out = c.temporary("padded", dtype, {x[0], x[1], kept + x[2]});
  whole.axes = makeAxes({x[0], x[1], kept + x[2]});
  std::vector<Expr> at = varsOf(whole.axes), fresh = at;
  fresh[2] = at[2] - kept;
  Expr before = c.hasInput(3) ? c.at(3, at) : loop::constant(dtype, 0);
  whole.body = kept == 0 ? c.at(0, at) : select(lt(at[2], loop::index(kept)), before, c.at(0, fresh));
  loop::BufferRef source = whole.out;
  c.addStage(std::move(whole));
  if (c.wantsOutput(0)) {
    loop::Stage stage;
    stage.out = c.outputBuffer(0);
    stage.axes = makeAxes(x);
    stage.reduce = {{loop::makeVar("k"), w[2]}};
    stage.combiner = loop::Combiner::Sum;
    std::vector<Expr> o = varsOf(stage.axes);
    Expr k = stage.reduce[0].var;
    stage.body = castTo(type, load(source, {o[0], o[1], o[2] + k})) * castTo(type, c.at(1, {o[1], loop::index(0), k}));
    stage.acc = loop::makeVar("acc", {type, 1});
    Expr sum = stage.acc;
    if (c.hasInput(2)) sum = sum + castTo(type, c.at(2, {o[1]}));
    if (c.node().stringAttr("activation", "none") != "none")
      sum = shared(sum, [](const Expr& v) { return v * loop::call("sigmoid", {v}); });
    stage.epilogue = castTo(dtype, sum);
    c.addStage(std::move(stage));
  }
  if (c.wantsOutput(1)) {
    loop::Stage state;
    state.out = c.outputBuffer(1);
    state.axes = makeAxes({x[0], x[1], kept});
    std::vector<Expr> o = varsOf(state.axes);
    state.body = load(source, {o[0], o[1], o[2] + x[2]});
    c.addStage(std::move(state));
  }
  return Status::ok();
}

namespace {

struct Rule {
  bool gated = false, delta = false;
};

Result<Rule> parseRule(const graph::Node& node) {
  std::string rule = node.stringAttr("update_rule", "gated_delta");
  LOCUTION_RETURN_IF_ERROR(needOneOf("update_rule", rule, {"linear", "gated", "delta", "gated_delta"}));
  return Rule{rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"};
}

enum : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

}  // namespace

Status inferLinearAttention(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, kQuery, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {kQuery, kKey, kValue, kDecay, kBeta}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, kPast, isFloat, "a float type"));
  for (size_t i : {kQuery, kKey, kValue, kDecay, kBeta}) LOCUTION_RETURN_IF_ERROR(needRank(c, i, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, kPast, 4));
  LOCUTION_ASSIGN_OR_RETURN(Rule rule, parseRule(c.node()));
  if (rule.gated != c.hasInput(kDecay))
    return Status::error(rule.gated ? "the update rule needs input 4 (decay)"
                                    : "the update rule takes no input 4 (decay)");
  if (rule.delta != c.hasInput(kBeta))
    return Status::error(rule.delta ? "the update rule needs input 5 (beta)"
                                    : "the update rule takes no input 5 (beta)");
  int64_t qHeads = c.node().intAttr("q_num_heads", 0), kvHeads = c.node().intAttr("kv_num_heads", 0);
  if (kvHeads < 1 || qHeads < 1 || qHeads % kvHeads != 0)
    return Status::error("attribute q_num_heads must be a multiple of kv_num_heads, both at least 1");
  const Shape &q = c.input(kQuery).shape, &k = c.input(kKey).shape, &v = c.input(kValue).shape;
  DType state = c.hasInput(kPast) ? c.input(kPast).dtype : c.input(kQuery).dtype;
  if (!q.isRanked() || !k.isRanked() || !v.isRanked()) {
    c.setOutput(0, c.input(kQuery).dtype, Shape::unranked());
    c.setOutput(1, state, Shape::unranked());
    return Status::ok();
  }
  for (int64_t i : {0, 1}) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(q[i], k[i], "dim " + std::to_string(i) + " of query and key"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(q[i], v[i], "dim " + std::to_string(i) + " of query and value"));
  }
  Dim keySize = floorDiv(q[2], Dim(qHeads)), valueSize = floorDiv(v[2], Dim(kvHeads));
  LOCUTION_RETURN_IF_ERROR(needSameDim(q[2], keySize * Dim(qHeads), "features of query and heads times size"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(k[2], keySize * Dim(kvHeads), "features of key and heads times size"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(v[2], valueSize * Dim(kvHeads), "features of value and heads times size"));
  auto needColumns = [&](size_t i, const Dim& wide, const Dim& narrow, const std::string& name) {
    if (!c.hasInput(i) || !c.input(i).shape.isRanked()) return Status::ok();
    const Shape& s = c.input(i).shape;
    LOCUTION_RETURN_IF_ERROR(needSameDim(s[0], q[0], "batches of " + name + " and query"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(s[1], q[1], "lengths of " + name + " and query"));
    return s[2] == narrow ? Status::ok() : needSameDim(s[2], wide, "features of " + name + " and those expected");
  };
  LOCUTION_RETURN_IF_ERROR(needColumns(kDecay, k[2], Dim(kvHeads), "decay"));
  LOCUTION_RETURN_IF_ERROR(needColumns(kBeta, Dim(kvHeads), Dim(1), "beta"));
  Shape stateShape{q[0], Dim(kvHeads), keySize, valueSize};
  if (c.hasInput(kPast) && c.input(kPast).shape.isRanked()) {
    for (int64_t i = 0; i < 4; ++i)
      LOCUTION_RETURN_IF_ERROR(
          needSameDim(c.input(kPast).shape[i], stateShape[i], "dim " + std::to_string(i) + " of past_state and state"));
  }
  c.setOutput(0, c.input(kQuery).dtype, Shape{q[0], q[1], valueSize * Dim(qHeads)});
  c.setOutput(1, state, stateShape);
  return Status::ok();
}

Status computeLinearAttention(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Rule rule, parseRule(c.node()));
  std::vector<int64_t> q = c.inputExtents(kQuery), v = c.inputExtents(kValue);
  int64_t qHeads = c.node().intAttr("q_num_heads", 1), kvHeads = c.node().intAttr("kv_num_heads", 1);
  int64_t keySize = q[2] / qHeads, valueSize = v[2] / kvHeads, group = qHeads / kvHeads;
  DType type = accumulatorType(c.input(kQuery).dtype);
  double scale = static_cast<float>(c.node().floatAttr("scale", 0));
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, keySize)));
  auto asType = [&](const Expr& e) { return castTo(type, e); };
  loop::BufferRef state = c.temporary("state", type, {keySize, valueSize}), row = c.temporary("row", type, {valueSize});
  loop::Axis b{loop::makeVar("b"), q[0]}, h{loop::makeVar("h"), kvHeads}, t{loop::makeVar("t"), q[1]},
      g{loop::makeVar("g"), group};
  auto keys = [&] { return loop::Axis{loop::makeVar("d"), keySize}; };
  auto columns = [&] { return loop::Axis{loop::makeVar("m"), valueSize}; };
  Expr zero = loop::constant(type, 0);
  std::vector<Stmt> step;

  loop::Axis d0 = keys(), m0 = columns();
  Expr start = c.hasInput(kPast) ? asType(c.at(kPast, {b.var, h.var, d0.var, m0.var})) : zero;
  Stmt init = nest({d0, m0}, store(state, {d0.var, m0.var}, start));

  auto keyAt = [&](const Expr& d) { return asType(c.at(kKey, {b.var, t.var, Expr(h.var) * keySize + d})); };
  if (rule.gated) {
    loop::Axis d = keys(), m = columns();
    bool perHead = c.inputExtents(kDecay)[2] == kvHeads;
    Expr column = perHead ? Expr(h.var) : Expr(h.var) * keySize + d.var;
    Lets lets;
    Expr factor = lets("factor", loop::call("exp", {asType(c.at(kDecay, {b.var, t.var, column}))}));
    step.push_back(
        nest({d}, lets.around(nest({m}, store(state, {d.var, m.var}, load(state, {d.var, m.var}) * factor)))));
  }
  // row = v, or with the delta rule beta * (v - S^T k)
  {
    loop::Axis m = columns(), n = columns(), d = keys(), last = columns();
    step.push_back(
        nest({m}, store(row, {m.var}, asType(c.at(kValue, {b.var, t.var, Expr(h.var) * valueSize + m.var})))));
    if (rule.delta) {
      step.push_back(
          nest({d, n}, store(row, {n.var}, load(row, {n.var}) - load(state, {d.var, n.var}) * keyAt(d.var))));
      Expr column = c.inputExtents(kBeta)[2] == 1 ? loop::index(0) : Expr(h.var);
      step.push_back(
          nest({last}, store(row, {last.var}, load(row, {last.var}) * asType(c.at(kBeta, {b.var, t.var, column})))));
    }
  }
  loop::Axis d1 = keys(), m1 = columns();
  step.push_back(nest(
      {d1, m1}, store(state, {d1.var, m1.var}, load(state, {d1.var, m1.var}) + keyAt(d1.var) * load(row, {m1.var}))));
  if (c.wantsOutput(0)) {
    // The row's buffer now takes S^T q, one query head of the group after another.
    loop::Axis m = columns(), d = keys(), n = columns(), last = columns();
    Expr head = Expr(h.var) * group + g.var;
    Stmt clear = nest({m}, store(row, {m.var}, zero));
    Stmt sum =
        nest({d, n}, store(row, {n.var},
                           load(row, {n.var}) + load(state, {d.var, n.var}) *
                                                    asType(c.at(kQuery, {b.var, t.var, head * keySize + d.var}))));
    Stmt write = nest({last}, store(c.outputBuffer(0), {b.var, t.var, head * valueSize + last.var},
                                    castTo(c.output(0).dtype, load(row, {last.var}) * loop::constant(type, scale))));
    step.push_back(nest({g}, loop::block({clear, sum, write})));
  }
  std::vector<Stmt> all{init, nest({t}, loop::block(step))};
  if (c.wantsOutput(1)) {
    loop::Axis d = keys(), m = columns();
    all.push_back(nest({d, m}, store(c.outputBuffer(1), {b.var, h.var, d.var, m.var},
                                     castTo(c.output(1).dtype, load(state, {d.var, m.var})))));
  }
  c.setRaw(withBuffers({state, row}, nest({b, h}, loop::block(all))));
  return Status::ok();
}

}  // namespace locution::ops

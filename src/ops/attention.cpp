// Attention as stages: the concatenated keys and values where there is a cache, scores = scale * q k^T with soft cap, mask and causal
// limit in the epilogue, their softmax unnormalised (max, exp, sum), and the product with the values divided by the sum at the end.
// Heads of 3-D inputs are cut out of the last dim by index; grouped queries share a head by division. A row that is masked throughout
// gives zeros.
#include <cmath>
#include <limits>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

// Inputs Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen; outputs Y, present_key, present_value, qk_matmul_output.
enum : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

struct HeadCounts {
  int64_t q = 0, kv = 0;
};

/// Heads of 3-D inputs come from attributes.
Result<HeadCounts> headCounts(const graph::Node& node) {
  HeadCounts h{node.intAttr("q_num_heads", 0), node.intAttr("kv_num_heads", 0)};
  if (h.q < 1 || h.kv < 1)
    return Status::error("3-D inputs need the attributes q_num_heads and kv_num_heads of at least 1");
  return h;
}

/// Batch, heads, length, size of an operand of either rank.
Result<std::vector<Dim>> operandDims(const Shape& s, int64_t heads, const char* name) {
  if (s.rank() == 4) return s.dims();
  if (s[2].isKnown() && s[2].value() % heads != 0) {
    return Status::error(std::string(name) + " has " + s[2].str() + " features, not divisible by " +
                         std::to_string(heads) + " heads");
  }
  return std::vector<Dim>{s[0], Dim(heads), s[1], floorDiv(s[2], Dim(heads))};
}

}  // namespace

Status inferAttention(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  for (size_t i : {kQ, kK, kV, kPastKey, kPastValue})
    LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {kQ, kK, kPastKey}));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {kV, kPastValue}));
  LOCUTION_RETURN_IF_ERROR(needDtype(
      c, kLengths, [](DType t) { return t == DType::I64; }, "int64"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, kPastKey, 4));
  LOCUTION_RETURN_IF_ERROR(needRank(c, kPastValue, 4));
  LOCUTION_RETURN_IF_ERROR(needRank(c, kLengths, 1));
  if (c.hasInput(kPastKey) != c.hasInput(kPastValue))
    return Status::error("past_key and past_value must be given together");
  int64_t mode = c.node().intAttr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return Status::error("attribute qk_matmul_output_mode is " + std::to_string(mode) + ", expected 0 to 3");
  const Shape &q = c.input(kQ).shape, &k = c.input(kK).shape, &v = c.input(kV).shape;
  DType type = c.input(kQ).dtype;
  if (!q.isRanked() || !k.isRanked() || !v.isRanked()) {
    for (size_t i = 0; i < c.outputCount(); ++i) c.setOutput(i, i == 2 ? c.input(kV).dtype : type, Shape::unranked());
    return Status::ok();
  }
  if (q.rank() != k.rank() || q.rank() != v.rank() || (q.rank() != 3 && q.rank() != 4)) {
    return Status::error("Q, K and V have the shapes " + q.str() + ", " + k.str() + ", " + v.str() +
                         ", expected 3 or 4 dims each");
  }
  HeadCounts heads;
  if (q.rank() == 3) {
    LOCUTION_ASSIGN_OR_RETURN(heads, headCounts(c.node()));
  }
  LOCUTION_ASSIGN_OR_RETURN(auto qd, operandDims(q, heads.q, "Q"));
  LOCUTION_ASSIGN_OR_RETURN(auto kd, operandDims(k, heads.kv, "K"));
  LOCUTION_ASSIGN_OR_RETURN(auto vd, operandDims(v, heads.kv, "V"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(qd[0], kd[0], "batches of Q and K"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(kd[0], vd[0], "batches of K and V"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(kd[1], vd[1], "heads of K and V"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(kd[2], vd[2], "lengths of K and V"));
  LOCUTION_RETURN_IF_ERROR(needSameDim(qd[3], kd[3], "head sizes of Q and K"));
  if (qd[1].isKnown() && kd[1].isKnown() && (kd[1].value() == 0 || qd[1].value() % kd[1].value() != 0)) {
    return Status::error("Q has " + qd[1].str() + " heads, not a multiple of the " + kd[1].str() + " of K and V");
  }
  Dim total = kd[2];
  if (c.hasInput(kPastKey)) {
    const Shape &pk = c.input(kPastKey).shape, &pv = c.input(kPastValue).shape;
    if (pk.isRanked()) {
      for (int64_t i : {0, 1, 3})
        LOCUTION_RETURN_IF_ERROR(
            needSameDim(pk[i], kd[static_cast<size_t>(i)], "dim " + std::to_string(i) + " of past_key and K"));
    }
    if (pv.isRanked()) {
      for (int64_t i : {0, 1, 3})
        LOCUTION_RETURN_IF_ERROR(
            needSameDim(pv[i], vd[static_cast<size_t>(i)], "dim " + std::to_string(i) + " of past_value and V"));
    }
    if (pk.isRanked() && pv.isRanked())
      LOCUTION_RETURN_IF_ERROR(needSameDim(pk[2], pv[2], "lengths of past_key and past_value"));
    total = pk.isRanked() ? pk[2] + kd[2] : pv.isRanked() ? pv[2] + kd[2] : c.freshDim();
  }
  if (c.hasInput(kMask) && c.input(kMask).shape.isRanked()) {
    const Shape& mask = c.input(kMask).shape;
    if (c.input(kMask).dtype != DType::Bool)
      LOCUTION_RETURN_IF_ERROR(needDtype(c, kMask, isFloat, "bool or a float type"));
    std::vector<Dim> full{qd[0], qd[1], qd[2], total};
    bool fits = mask.rank() >= 1 && mask.rank() <= 4;
    for (int64_t i = 0; fits && i < mask.rank(); ++i) {
      const Dim &have = mask[mask.rank() - 1 - i], &want = full[static_cast<size_t>(3 - i)];
      if (!have.isKnown() || !want.isKnown()) continue;
      fits = i == 0 ? have.value() <= want.value() : have == want || have == Dim(1);
    }
    if (!fits) return Status::error("attn_mask of shape " + mask.str() + " can't be broadcast to " + Shape(full).str());
  }
  if (c.hasInput(kLengths) && c.input(kLengths).shape.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(c.input(kLengths).shape[0], qd[0], "entries of nonpad_kv_seqlen and batches"));
  }
  c.setOutput(0, type, q.rank() == 4 ? Shape{qd[0], qd[1], qd[2], vd[3]} : Shape{qd[0], qd[2], qd[1] * vd[3]});
  c.setOutput(1, type, Shape{kd[0], kd[1], total, kd[3]});
  c.setOutput(2, c.input(kV).dtype, Shape{vd[0], vd[1], total, vd[3]});
  c.setOutput(3, type, Shape{qd[0], qd[1], qd[2], total});
  return Status::ok();
}

namespace {

/// Element (batch, head, position, feature) of an operand of either rank.
Expr element(ComputeContext& c, size_t i, const std::vector<Expr>& at, int64_t size) {
  if (c.input(i).shape.rank() == 4) return c.at(i, at);
  return c.at(i, {at[0], at[2], at[1] * size + at[3]});
}

/// Keys or values with the past in front: a stage into the output if it is wanted, a temporary if there is a past, else nothing (null).
loop::BufferRef present(ComputeContext& c, size_t input, size_t past, size_t output, const std::vector<int64_t>& dims) {
  if (!c.hasInput(past) && !c.wantsOutput(output)) return nullptr;
  loop::Stage stage;
  stage.out = c.wantsOutput(output) ? c.outputBuffer(output) : c.temporary("present", c.input(input).dtype, dims);
  stage.axes = makeAxes(dims);
  std::vector<Expr> at = varsOf(stage.axes);
  if (c.hasInput(past)) {
    int64_t length = c.inputExtents(past)[2];
    std::vector<Expr> fresh = at;
    fresh[2] = at[2] - length;
    stage.body = select(lt(at[2], loop::index(length)), c.at(past, at), element(c, input, fresh, dims[3]));
  } else {
    stage.body = element(c, input, at, dims[3]);
  }
  loop::BufferRef buffer = stage.out;
  c.addStage(std::move(stage));
  return buffer;
}

/// A stage that reads others point by point.
loop::BufferRef addPointwise(ComputeContext& c, loop::BufferRef out, const std::vector<int64_t>& dims,
                             const std::function<Expr(const std::vector<Expr>&)>& f) {
  loop::Stage stage;
  stage.out = std::move(out);
  stage.axes = makeAxes(dims);
  stage.body = f(varsOf(stage.axes));
  loop::BufferRef buffer = stage.out;
  c.addStage(std::move(stage));
  return buffer;
}

/// A reduction over the last dim of `source`.
loop::BufferRef addRowReduction(ComputeContext& c, const std::string& name, loop::Combiner combiner,
                                const loop::BufferRef& source, DType type) {
  std::vector<int64_t> dims = loop::extents(*source);
  loop::Stage stage;
  stage.reduce = {{loop::makeVar("j"), dims.back()}};
  dims.pop_back();
  stage.out = c.temporary(name, type, dims);
  stage.axes = makeAxes(dims);
  stage.combiner = combiner;
  std::vector<Expr> at = varsOf(stage.axes);
  at.push_back(stage.reduce[0].var);
  stage.body = load(source, at);
  loop::BufferRef buffer = stage.out;
  c.addStage(std::move(stage));
  return buffer;
}

}  // namespace

Status computeAttention(ComputeContext& c) {
  const graph::Node& node = c.node();
  HeadCounts heads;
  if (c.input(kQ).shape.rank() == 3) {
    LOCUTION_ASSIGN_OR_RETURN(heads, headCounts(node));
  }
  auto dimsOf = [&](size_t i, int64_t headCount) -> Result<std::vector<int64_t>> {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Dim> dims, operandDims(c.input(i).shape, headCount, "an operand"));
    return Shape(dims).extents();
  };
  LOCUTION_ASSIGN_OR_RETURN(auto q, dimsOf(kQ, heads.q));
  LOCUTION_ASSIGN_OR_RETURN(auto k, dimsOf(kK, heads.kv));
  LOCUTION_ASSIGN_OR_RETURN(auto v, dimsOf(kV, heads.kv));
  int64_t past = c.hasInput(kPastKey) ? c.inputExtents(kPastKey)[2] : 0, total = past + k[2];
  int64_t group = k[1] == 0 ? 1 : q[1] / k[1];
  DType dtype = c.input(kQ).dtype;
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> precision, dtypeAttr(node, "softmax_precision"));
  DType type = accumulatorType(c.input(kQ).dtype);
  if (precision == DType::F64) type = DType::F64;
  double scale = node.hasAttr("scale") ? static_cast<float>(node.floatAttr("scale", 1))
                                       : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, q[3])));
  double cap = node.floatAttr("softcap", 0);
  bool causal = node.intAttr("is_causal", 0) != 0;
  auto imm = [&](double value) { return loop::constant(type, value); };
  const Expr masked = imm(-std::numeric_limits<double>::infinity());

  loop::BufferRef keys = present(c, kK, kPastKey, 1, {k[0], k[1], total, k[3]}),
                  values = present(c, kV, kPastValue, 2, {v[0], v[1], total, v[3]});
  auto headOf = [&](const Expr& h) { return group == 1 ? h : floorDiv(h, loop::index(group)); };
  auto keyAt = [&](const std::vector<Expr>& at) { return keys ? load(keys, at) : element(c, kK, at, k[3]); };
  auto valueAt = [&](const std::vector<Expr>& at) { return values ? load(values, at) : element(c, kV, at, v[3]); };

  auto capped = [&](const Expr& s) { return cap > 0 ? loop::call("tanh", {s / imm(cap)}) * imm(cap) : s; };
  // Adds the mask, then cuts off what lies in the future or past a sequence's end.
  auto biased = [&](Expr s, const std::vector<Expr>& at) {
    if (c.hasInput(kMask)) {
      std::vector<int64_t> dims = c.inputExtents(kMask);
      std::vector<Expr> indices = broadcastIndices(dims, at);
      indices.back() = at[3];
      Expr m = c.at(kMask, indices);
      s = c.input(kMask).dtype == DType::Bool ? select(m, s, masked) : s + castTo(type, m);
      if (dims.back() < total) s = select(lt(at[3], loop::index(dims.back())), s, masked);
    }
    Expr visible;
    if (causal) visible = both(visible, le(at[3], at[2] + past));
    if (c.hasInput(kLengths)) visible = both(visible, lt(at[3], c.at(kLengths, {at[0]})));
    return visible ? select(visible, s, masked) : s;
  };

  std::vector<int64_t> scoreDims{q[0], q[1], q[2], total};
  LOCUTION_RETURN_IF_ERROR(checkElements(scoreDims, "the attention scores"));
  loop::Stage scores;
  scores.out = c.temporary("scores", type, scoreDims);
  scores.axes = makeAxes(scoreDims);
  scores.reduce = {{loop::makeVar("d"), q[3]}};
  scores.combiner = loop::Combiner::Sum;
  std::vector<Expr> at = varsOf(scores.axes);
  Expr d = scores.reduce[0].var;
  scores.body = castTo(type, element(c, kQ, {at[0], at[1], at[2], d}, q[3])) *
                castTo(type, keyAt({at[0], headOf(at[1]), at[3], d}));
  scores.acc = loop::makeVar("acc", {type, 1});
  loop::BufferRef table = scores.out;
  int64_t mode = node.intAttr("qk_matmul_output_mode", 0);
  bool inspected = c.wantsOutput(3) && mode != 3;
  Expr scaled = Expr(scores.acc) * imm(scale);
  scores.epilogue = inspected ? scaled : biased(capped(scaled), at);
  c.addStage(std::move(scores));
  if (inspected) {
    loop::BufferRef raw = table;
    addPointwise(c, c.outputBuffer(3), scoreDims, [&](const std::vector<Expr>& i) {
      Expr s = load(raw, i);
      if (mode >= 1) s = capped(s);
      return castTo(dtype, mode == 2 ? biased(s, i) : s);
    });
    table = addPointwise(c, c.temporary("biased", type, scoreDims), scoreDims,
                         [&](const std::vector<Expr>& i) { return biased(capped(load(raw, i)), i); });
  }
  loop::BufferRef largest = addRowReduction(c, "largest", loop::Combiner::Max, table, type);
  loop::BufferRef weights =
      addPointwise(c, c.temporary("weights", type, scoreDims), scoreDims, [&](const std::vector<Expr>& i) {
        // exp(-inf - -inf) would be NaN in a row that is masked throughout.
        Expr top = load(largest, {i[0], i[1], i[2]});
        return loop::call("exp", {load(table, i) - select(eq(top, masked), imm(0), top)});
      });
  loop::BufferRef sums = addRowReduction(c, "sums", loop::Combiner::Sum, weights, type);
  auto sumAt = [&](const Expr& b, const Expr& h, const Expr& i) {
    Expr sum = load(sums, {b, h, i});
    return select(eq(sum, imm(0)), imm(1), sum);
  };
  if (c.wantsOutput(3) && mode == 3) {
    addPointwise(c, c.outputBuffer(3), scoreDims,
                 [&](const std::vector<Expr>& i) { return castTo(dtype, load(weights, i) / sumAt(i[0], i[1], i[2])); });
  }
  if (!c.wantsOutput(0)) return Status::ok();
  loop::Stage out;
  out.out = c.outputBuffer(0);
  out.axes = makeAxes(c.outputExtents());
  out.reduce = {{loop::makeVar("j"), total}};
  out.combiner = loop::Combiner::Sum;
  std::vector<Expr> o = varsOf(out.axes);
  // 3-D: batch, position, heads times features.
  bool flat = o.size() == 3;
  Expr h = flat ? floorDiv(o[2], loop::index(std::max<int64_t>(1, v[3]))) : o[1], i = flat ? o[1] : o[2];
  Expr feature = flat ? floorMod(o[2], loop::index(std::max<int64_t>(1, v[3]))) : o[3], j = out.reduce[0].var;
  out.body = load(weights, {o[0], h, i, j}) * castTo(type, valueAt({o[0], headOf(h), j, feature}));
  out.acc = loop::makeVar("acc", {type, 1});
  out.epilogue = castTo(dtype, Expr(out.acc) / sumAt(o[0], h, i));
  c.addStage(std::move(out));
  return Status::ok();
}

}  // namespace locution::ops

// Attention in strips means the same as its naive loops: any extents, masks, shared heads, operands read through views.
#include <gtest/gtest.h>

#include <limits>

#include "generator/schedule_check.h"
#include "schedule/chain.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers

struct Attention {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, group = 1;
  int mask = 0;               // 0: none, 1: a row for all, 2: one for each query, 3: causal
  bool isTransposed = false;  // keys lie along the vector
  bool isMerged =
      false;  // query, key and value in one [batch, position, 3 * heads * size]; output [batch, query, head, size]
};

BufferRef buffer(const std::string& name, const std::vector<int64_t>& dims) {
  return makeBuffer(name, {DType::F32, 1}, dims);
}

Stage reduction(const BufferRef& out, const std::vector<int64_t>& dims, Combiner combiner, int64_t extent) {
  Stage s;
  s.out = out;
  s.axes = axesOf(dims, "i");
  s.reduce = axesOf({extent}, "r");
  s.combiner = combiner;
  return s;
}

Computation attention(const Attention& a) {
  Computation c;
  c.name = "attention";
  const std::vector<int64_t> table{a.batch, a.heads, a.queries, a.keys}, rows{a.batch, a.heads, a.queries};
  const int64_t width = a.heads * a.size;
  BufferRef q, k, v, merged;
  if (a.isMerged) {
    q = k = v = buffer("qkv", {a.batch, std::max(a.queries, a.keys), 3 * width});
    c.inputs = {q};
  } else {
    q = buffer("q", {a.batch, a.heads, a.queries, a.size});
    const int64_t shared = a.heads / a.group;
    k = a.isTransposed ? buffer("k", {a.batch, shared, a.size, a.keys})
                       : buffer("k", {a.batch, shared, a.keys, a.size});
    v = buffer("v", {a.batch, shared, a.keys, a.size});
    c.inputs = {q, k, v};
  }
  auto operand = [&](int which, const Expr& b, const Expr& h, const Expr& at, const Expr& d) {
    if (a.isMerged) return load(q, {b, at, h * a.size + d + which * width});
    Expr head = which > 0 && a.group > 1 ? floorDiv(h, index(a.group)) : h;
    if (which == 0) return load(q, {b, h, at, d});
    if (which == 1 && a.isTransposed) return load(k, {b, head, d, at});
    return load(which == 1 ? k : v, {b, head, at, d});
  };
  Stage scores = reduction(buffer("scores", table), table, Combiner::Sum, a.size);
  {
    auto i = vars(scores.axes);
    Expr r = scores.reduce[0].var;
    scores.body = operand(0, i[0], i[1], i[2], r) * operand(1, i[0], i[1], i[3], r);
    scores.acc = makeVar("acc", {DType::F32, 1});
    Expr x = Expr(scores.acc) * constant(DType::F32, 0.25);
    if (a.mask == 1 || a.mask == 2) {
      BufferRef m = a.mask == 1 ? buffer("mask", {a.batch, a.keys}) : buffer("mask", {a.queries, a.keys});
      c.inputs.push_back(m);
      x = x + load(m, {a.mask == 1 ? i[0] : i[2], i[3]});
    } else if (a.mask == 3) {
      x = select(le(i[3], i[2]), x, constant(DType::F32, -std::numeric_limits<double>::infinity()));
    }
    scores.epilogue = x;
  }
  Stage top = reduction(buffer("top", rows), rows, Combiner::Max, a.keys);
  auto inRow = [](const Stage& s) {
    auto at = vars(s.axes);
    at.push_back(s.reduce[0].var);
    return at;
  };
  top.body = load(scores.out, inRow(top));
  Stage sum = reduction(buffer("sum", rows), rows, Combiner::Sum, a.keys);
  sum.body = call("exp", {load(scores.out, inRow(sum)) - load(top.out, vars(sum.axes))});
  Stage weights;
  weights.out = buffer("weights", table);
  weights.axes = axesOf(table, "w");
  auto w = vars(weights.axes);
  weights.body =
      call("exp", {load(scores.out, w) - load(top.out, {w[0], w[1], w[2]})}) / load(sum.out, {w[0], w[1], w[2]});
  std::vector<int64_t> outDims{a.batch, a.heads, a.queries, a.size};
  if (a.isMerged) std::swap(outDims[1], outDims[2]);
  Stage out = reduction(buffer("out", outDims), outDims, Combiner::Sum, a.keys);
  auto o = vars(out.axes);
  if (a.isMerged) std::swap(o[1], o[2]);
  out.body = load(weights.out, {o[0], o[1], o[2], out.reduce[0].var}) * operand(2, o[0], o[1], out.reduce[0].var, o[3]);
  c.stages = {scores, top, sum, weights, out};
  c.outputs = {out.out};
  return c;
}

void expectChain(const Attention& a, const TargetSpec& target) {
  Computation c = attention(a);
  std::vector<Computation> kernels = schedule::cutKernels(schedule::fuseStages(c));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_TRUE(schedule::isChain(kernels[0]));
  expectSame(c, target, *makeAnalytic());
  expectSameAtRandom(c, target);
}

TEST(Chain, AnyExtents) {
  for (const TargetSpec& target : {wide(), narrow()})
    for (int64_t queries : {1, 3, 17, 67, 131})
      for (int64_t keys : {1, 2, 7, 37})
        for (int64_t size : {1, 5, 16})
          expectChain({.batch = 2, .heads = 2, .queries = queries, .keys = keys, .size = size}, target);
}

TEST(Chain, MasksAndSharedHeads) {
  for (const TargetSpec& target : {wide(), narrow()})
    for (int mask : {0, 1, 2, 3})
      for (int64_t group : {1, 3})
        for (bool transposed : {false, true})
          expectChain({.batch = 2,
                       .heads = 6,
                       .queries = 13,
                       .keys = 19,
                       .size = 8,
                       .group = group,
                       .mask = mask,
                       .isTransposed = transposed},
                      target);
}

TEST(Chain, OperandsOutOfOneBufferAndPermutedOutput) {
  for (const TargetSpec& target : {wide(), narrow()})
    for (int64_t batch : {1, 2})
      for (int64_t queries : {1, 5, 66, 97})
        for (int64_t heads : {1, 3})
          expectChain({.batch = batch, .heads = heads, .queries = queries, .keys = 23, .size = 8, .isMerged = true},
                      target);
}

TEST(Chain, ExponentialsAreComputedOnce) {
  Computation c =
      schedule::cutKernels(schedule::fuseStages(attention({.heads = 2, .queries = 5, .keys = 9, .size = 4})))[0];
  int calls = 0;
  for (const Stage& s : c.stages)
    visit(s.body, [&](const Expr& e) {
      calls += as<Call>(e) ? 1 : 0;
      return true;
    });
  EXPECT_EQ(calls, 1);
}

TEST(Chain, ScoresTooLongForTheCachesStayApart) {
  Computation c = schedule::fuseStages(attention({.heads = 2, .queries = 64, .keys = 1 << 18, .size = 4}));
  EXPECT_GT(schedule::cutKernels(c).size(), 1u);
}

}  // namespace
}  // namespace locution::generator

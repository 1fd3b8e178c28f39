// Every kernel that a scheduler schedules means the same as its naive loops.
#include <gtest/gtest.h>

#include <map>

#include "generator/rules.h"
#include "generator/schedule_check.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers

void expectSame(const Computation& whole, const TargetSpec& target) {
  for (const std::string& name : schedulerNames()) test::expectSame(whole, target, **makeScheduler(name));
  expectSameAtRandom(whole, target);
}

Computation matmul(int64_t m, int64_t n, int64_t k, bool constantB, bool transposed, bool bias) {
  Computation c;
  c.name = "matmul";
  auto a = makeBuffer("a", {DType::F32, 1}, {m, k});
  auto b = makeBuffer("b", {DType::F32, 1}, transposed ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n});
  auto out = makeBuffer("out", {DType::F32, 1}, {m, n});
  auto add = makeBuffer("bias", {DType::F32, 1}, {n});
  c.inputs = {a, b};
  if (constantB) c.constants = {b};
  Stage s;
  s.out = out;
  s.axes = axesOf({m, n}, "i");
  s.reduce = axesOf({k}, "r");
  s.combiner = Combiner::Sum;
  Expr i = s.axes[0].var, j = s.axes[1].var, r = s.reduce[0].var;
  s.body = load(a, {i, r}) * load(b, transposed ? std::vector<Expr>{j, r} : std::vector<Expr>{r, j});
  if (bias) {
    c.inputs.push_back(add);
    s.acc = makeVar("acc", {DType::F32, 1});
    s.epilogue = maxOf(s.acc + load(add, {j}), constant(DType::F32, 0));
  }
  c.stages = {s};
  c.outputs = {out};
  return c;
}

TEST(Baseline, MatmulsOfAnyExtent) {
  for (const TargetSpec& target : {wide(), narrow()})
    for (int64_t m : {1, 3, 7, 13})
      for (int64_t n : {4, 16, 24, 77})
        for (int64_t k : {1, 5, 8})
          for (int variant = 0; variant < 8; ++variant)
            expectSame(matmul(m, n, k, variant & 1, variant & 2, variant & 4), target);
}

// Caches so small that rows, columns and the reduction are all cut, with tails everywhere.
TEST(Analytic, BlockedMatmuls) {
  std::map<space::Decision, int64_t> most;
  for (TargetSpec target : {wide(), narrow()})
    for (int threads : {1, 2})
      for (int64_t m : {30, 201})
        for (int64_t n : {77, 131})
          for (int64_t k : {307}) {
            // Caches so small that these are large.
            target.l1Bytes = 2048;
            target.l2Bytes = 24 << 10;
            target.threads = threads;
            const Computation product = matmul(m, n, k, true, false, true);
            test::expectSame(product, target, *makeAnalytic());
            if (m == 30) expectSameAtRandom(product, target);
            const space::Space space(product, target);
            const space::Walk rules = analyticWalk(space);
            for (const space::Choice& c : rules.choices()) most[c.decision] = std::max(most[c.decision], c.value);
          }
  for (space::Decision d : {space::Decision::ReduceParts, space::Decision::RowBlocks, space::Decision::ColumnBlocks})
    EXPECT_GT(most[d], 1) << space::choiceText(d, most[d]);
}

TEST(Baseline, ConvolutionChannelsLastWithPaddingAndGroups) {
  for (int64_t groups : {1, 2, 6})
    for (int64_t stride : {1, 2}) {
      int64_t h = 9, w = 11, ic = 6, oc = 12, kk = 3, oh = (h + 2 - kk) / stride + 1, ow = (w + 2 - kk) / stride + 1;
      Computation c;
      c.name = "conv";
      auto x = makeBuffer("x", {DType::F32, 1}, {2, h, w, ic});
      auto weights = makeBuffer("w", {DType::F32, 1}, {oc, ic / groups, kk, kk});
      auto out = makeBuffer("out", {DType::F32, 1}, {2, oh, ow, oc});
      auto padded = makeBuffer("padded", {DType::F32, 1}, {2, h + 2, w + 2, ic});
      Stage pad;
      pad.out = padded;
      pad.axes = axesOf({2, h + 2, w + 2, ic}, "p");
      auto p = vars(pad.axes);
      Expr in = logicalAnd(logicalAnd(le(index(1), p[1]), lt(p[1], index(h + 1))),
                           logicalAnd(le(index(1), p[2]), lt(p[2], index(w + 1))));
      pad.body = select(in, load(x, {p[0], p[1] - 1, p[2] - 1, p[3]}), constant(DType::F32, 0));
      Stage s;
      s.out = out;
      s.axes = axesOf({2, oh, ow, oc}, "i");
      s.reduce = axesOf({kk, kk, ic / groups}, "r");
      s.combiner = Combiner::Sum;
      auto i = vars(s.axes), r = vars(s.reduce);
      Expr group = floorDiv(i[3], index(oc / groups));
      s.body = load(padded, {i[0], i[1] * stride + r[0], i[2] * stride + r[1], group * (ic / groups) + r[2]}) *
               load(weights, {i[3], r[2], r[0], r[1]});
      c.inputs = {x, weights};
      c.constants = {weights};
      c.outputs = {out};
      c.stages = {pad, s};
      expectSame(c, wide());
      expectSame(c, narrow());
    }
}

TEST(Baseline, SoftmaxRowsShareALoop) {
  for (int64_t n : {1, 3, 16, 37, 130}) {
    Computation c;
    c.name = "softmax";
    auto x = makeBuffer("x", {DType::F32, 1}, {3, 5, n});
    auto peak = makeBuffer("peak", {DType::F32, 1}, {3, 5});
    auto sum = makeBuffer("sum", {DType::F32, 1}, {3, 5});
    auto out = makeBuffer("out", {DType::F32, 1}, {3, 5, n});
    Stage a, b, o;
    a.out = peak;
    a.axes = axesOf({3, 5}, "a");
    a.reduce = axesOf({n}, "ar");
    a.combiner = Combiner::Max;
    a.body = load(x, {a.axes[0].var, a.axes[1].var, a.reduce[0].var});
    b.out = sum;
    b.axes = axesOf({3, 5}, "b");
    b.reduce = axesOf({n}, "br");
    b.combiner = Combiner::Sum;
    b.body = call("exp", {load(x, {b.axes[0].var, b.axes[1].var, b.reduce[0].var}) - load(peak, vars(b.axes))});
    o.out = out;
    o.axes = axesOf({3, 5, n}, "o");
    o.body = call("exp", {load(x, vars(o.axes)) - load(peak, {o.axes[0].var, o.axes[1].var})}) /
             load(sum, {o.axes[0].var, o.axes[1].var});
    c.inputs = {x};
    c.outputs = {out};
    c.stages = {a, b, o};
    EXPECT_EQ(schedule::cutKernels(schedule::fuseStages(c)).size(), 1u);
    expectSame(c, wide());
    expectSame(c, narrow());
  }
}

TEST(Baseline, PointsReductionsAndScans) {
  for (int64_t n : {1, 2, 5, 16, 67, 300}) {
    Computation c;
    c.name = "points";
    auto x = makeBuffer("x", {DType::F32, 1}, {2, 3, n});
    auto y = makeBuffer("y", {DType::F32, 1}, {n});
    auto out = makeBuffer("out", {DType::F32, 1}, {3, 2, n});
    Stage s;
    s.out = out;
    s.axes = axesOf({3, 2, n}, "i");
    s.body = load(x, {s.axes[1].var, s.axes[0].var, s.axes[2].var}) * load(y, {s.axes[2].var});
    c.inputs = {x, y};
    c.outputs = {out};
    c.stages = {s};
    expectSame(c, wide());

    for (Combiner combiner : {Combiner::Sum, Combiner::Max}) {
      Computation rows;
      rows.name = "columns";
      auto columns = makeBuffer("columns", {DType::F32, 1}, {2, n});
      Stage r;
      r.out = columns;
      r.axes = axesOf({2, n}, "i");
      r.reduce = axesOf({3}, "r");
      r.combiner = combiner;
      r.body = load(x, {r.axes[0].var, r.reduce[0].var, r.axes[1].var});
      rows.inputs = {x};
      rows.outputs = {columns};
      rows.stages = {r};
      expectSame(rows, wide());
      Computation all;
      all.name = "all";
      auto one = makeBuffer("one", {DType::F32, 1}, {});
      Stage t;
      t.out = one;
      t.reduce = axesOf({2, 3, n}, "r");
      t.combiner = combiner;
      t.body = load(x, vars(t.reduce));
      all.inputs = {x};
      all.outputs = {one};
      all.stages = {t};
      expectSame(all, wide());
    }
    Computation scan;
    scan.name = "scan";
    auto sums = makeBuffer("sums", {DType::F32, 1}, {2, 3, n});
    Stage v;
    v.out = sums;
    v.axes = axesOf({2, 3, n}, "i");
    v.body = load(x, vars(v.axes));
    v.combiner = Combiner::Sum;
    v.scan = true;
    scan.inputs = {x};
    scan.outputs = {sums};
    for (int flags = 0; flags < 4; ++flags) {
      v.scanExclusive = flags & 1;
      v.scanReverse = flags & 2;
      scan.stages = {v};
      expectSame(scan, wide());
    }
  }
}

}  // namespace
}  // namespace locution::generator

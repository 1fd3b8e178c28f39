// Streams mean the same as their naive loops, at any vector width, and take the form they are meant to take.
#include <gtest/gtest.h>

#include "generator/schedule_check.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers

constexpr DType kType = DType::F32;

TargetSpec middle() {
  TargetSpec t = narrow();
  t.vectorBytes = 32;
  return t;
}

void expectSameEverywhere(const Computation& c) {
  for (const TargetSpec& target : {wide(), middle(), narrow()}) {
    expectSame(c, target, *makeAnalytic());
    expectSameAtRandom(c, target);
  }
}

BufferRef buffer(const char* name, const std::vector<int64_t>& dims) { return makeBuffer(name, {kType, 1}, dims); }

Stage stageOf(BufferRef out, const std::vector<int64_t>& axes, const std::vector<int64_t>& reduce = {},
              Combiner combiner = Combiner::None) {
  Stage s;
  s.out = std::move(out);
  s.axes = axesOf(axes, "i");
  s.reduce = axesOf(reduce, "r");
  s.combiner = combiner;
  return s;
}

Computation computation(std::vector<BufferRef> inputs, std::vector<Stage> stages) {
  Computation c;
  c.name = "stream";
  c.inputs = std::move(inputs);
  c.outputs = {stages.back().out};
  c.stages = std::move(stages);
  return c;
}

std::vector<Expr> joined(std::vector<Expr> a, const std::vector<Expr>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Stream, NormalisationsRunRowByRow) {
  for (int64_t n : {1, 5, 16, 37, 130, 257}) {
    auto x = buffer("x", {3, 5, n}), peak = buffer("peak", {3, 5}), scale = buffer("scale", {3, 5});
    auto out = buffer("out", {3, 5, n});
    Stage a = stageOf(peak, {3, 5}, {n}, Combiner::Max), b = stageOf(scale, {3, 5}, {n}, Combiner::Sum);
    Stage c = stageOf(out, {3, 5, n});
    auto power = [&](const std::vector<Expr>& at) {
      return call("exp", {minOf(load(x, at) - load(peak, {at[0], at[1]}), constant(kType, 0))});
    };
    a.body = load(x, joined(vars(a.axes), vars(a.reduce)));
    b.body = power(joined(vars(b.axes), vars(b.reduce)));
    b.acc = makeVar("acc", {kType, 1});
    b.epilogue = constant(kType, 1) / b.acc;
    auto at = vars(c.axes);
    c.body = power(at) * load(scale, {at[0], at[1]});
    Computation softmax = computation({x}, {a, b, c});
    std::vector<Computation> kernels = schedule::cutKernels(schedule::fuseStages(softmax));
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].stages.size(), 4u);  // the powers are kept
    expectSameEverywhere(softmax);
  }
}

TEST(Stream, ReductionsOfRowsAndColumns) {
  for (int64_t n : {1, 4, 7, 33, 150})
    for (Combiner combiner : {Combiner::Sum, Combiner::Max})
      for (int64_t m : {1, 3, 21}) {
        auto x = buffer("x", {2, m, 3, n});
        auto columns = buffer("columns", {2, n}), rows = buffer("rows", {2, m}), all = buffer("all", {1});
        Stage s = stageOf(columns, {2, n}, {m, 3}, combiner);
        auto i = vars(s.axes), r = vars(s.reduce);
        s.body = load(x, {i[0], r[0], r[1], i[1]});
        s.acc = makeVar("acc", {kType, 1});
        s.epilogue = s.acc * constant(kType, 0.25);
        expectSameEverywhere(computation({x}, {s}));
        s = stageOf(rows, {2, m}, {3, n}, combiner);
        i = vars(s.axes), r = vars(s.reduce);
        s.body = load(x, {i[0], i[1], r[0], r[1]});
        expectSameEverywhere(computation({x}, {s}));
        s = stageOf(all, {1}, {2, m, 3, n}, combiner);
        s.body = load(x, vars(s.reduce));
        expectSameEverywhere(computation({x}, {s}));
      }
}

TEST(Stream, PoolingOfPaddedChannelsLastImages) {
  for (int64_t channels : {1, 3, 8, 20, 64, 96})
    for (int64_t stride : {1, 2}) {
      int64_t h = 7, w = 6, oh = (h + 2 - 3) / stride + 1, ow = (w + 2 - 3) / stride + 1;
      auto x = buffer("x", {2, h, w, channels}), out = buffer("out", {2, oh, ow, channels});
      Stage s = stageOf(out, {2, oh, ow, channels}, {3, 3}, Combiner::Max);
      auto i = vars(s.axes), r = vars(s.reduce);
      Expr y = i[1] * stride + r[0] - 1, z = i[2] * stride + r[1] - 1;
      Expr in = logicalAnd(logicalAnd(le(index(0), y), lt(y, index(h))), logicalAnd(le(index(0), z), lt(z, index(w))));
      s.body = select(in, load(x, {i[0], y, z, i[3]}), identity(Combiner::Max, kType));
      expectSameEverywhere(computation({x}, {s}));
    }
}

TEST(Stream, PointsBroadcastAndMove) {
  for (int64_t n : {1, 2, 5, 8, 19, 64, 300}) {
    auto x = buffer("x", {2, 11, n}), scale = buffer("scale", {2, n}), out = buffer("out", {2, 11, n});
    Stage s = stageOf(out, {2, 11, n});
    auto i = vars(s.axes);
    s.body = load(x, i) * load(scale, {i[0], i[2]});
    expectSameEverywhere(computation({x, scale}, {s}));

    auto bias = buffer("bias", {n}), turned = buffer("turned", {2, n, 11});
    auto back = buffer("back", {2, 11, n});
    s = stageOf(back, {2, 11, n});
    i = vars(s.axes);
    s.body = load(turned, {i[0], i[2], i[1]}) + load(bias, {i[2]});
    expectSameEverywhere(computation({turned, bias}, {s}));
  }
}

TEST(Stream, StridedLoadsBecomeSquareTiles) {
  auto x = buffer("x", {100, 80}), out = buffer("out", {80, 100});
  Stage s = stageOf(out, {80, 100});
  auto i = vars(s.axes);
  s.body = load(x, {i[1], i[0]});
  std::string plan = makeAnalytic()->propose(computation({x}, {s}), middle()).str();
  EXPECT_NE(plan.find("unroll s0 i0.i"), std::string::npos) << plan;
  EXPECT_NE(plan.find("vectorise s0 i1.i"), std::string::npos) << plan;
}

}  // namespace
}  // namespace locution::generator

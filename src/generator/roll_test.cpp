// Convolutions row by row mean the same as their naive loops: any extents, windows, strides, paddings, numbers of tasks.
#include <gtest/gtest.h>

#include "generator/random.h"
#include "generator/schedule_check.h"
#include "schedule/roll.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers

struct Block {
  int64_t batch = 1, height = 9, width = 8, in = 3, wide = 16, out = 5;
  int64_t first = 1;                                      // window of the first convolution
  int64_t window = 3, stride = 1, pad = 1, dilation = 1;  // of the depthwise one
  bool hasProjection = true, isResidual = false;
};

BufferRef buffer(const std::string& name, const std::vector<int64_t>& dims) {
  return makeBuffer(name, {DType::F32, 1}, dims);
}

Stage sum(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& reduce) {
  Stage s;
  s.out = buffer(name, dims);
  s.axes = axesOf(dims, "i");
  s.reduce = axesOf(reduce, "r");
  s.combiner = Combiner::Sum;
  return s;
}

// data[n, y * stride + dy - pad, x * stride + dx - pad, c], zero outside.
Expr padded(const BufferRef& data, const Expr& n, Expr y, Expr x, const Expr& c, int64_t pad) {
  if (pad == 0) return load(data, {n, y, x, c});
  const std::vector<int64_t> dims = extents(*data);
  auto inside = [&](const Expr& e, int64_t extent) {
    return logicalAnd(le(index(pad), e), lt(e, index(extent + pad)));
  };
  return select(logicalAnd(inside(y, dims[1]), inside(x, dims[2])), load(data, {n, y - pad, x - pad, c}),
                constant(DType::F32, 0));
}

Computation block(const Block& b) {
  Computation c;
  c.name = "block";
  BufferRef data = buffer("data", {b.batch, b.height, b.width, b.in});
  BufferRef w0 = buffer("w0", {b.wide, b.first, b.first, b.in}), bias = buffer("bias", {b.wide});
  BufferRef w1 = buffer("w1", {b.wide, b.window, b.window}), w2 = buffer("w2", {b.out, b.wide});
  c.inputs = {data, w0, bias, w1};
  Stage expand = sum("expanded", {b.batch, b.height, b.width, b.wide}, {b.first, b.first, b.in});
  {
    auto i = vars(expand.axes), r = vars(expand.reduce);
    expand.body = padded(data, i[0], i[1] + r[0], i[2] + r[1], r[2], b.first / 2) * load(w0, {i[3], r[0], r[1], r[2]});
    expand.acc = makeVar("acc", {DType::F32, 1});
    expand.epilogue = maxOf(Expr(expand.acc) + load(bias, {i[3]}), constant(DType::F32, 0));
  }
  auto shrunk = [&](int64_t n) { return (n + 2 * b.pad - (b.window - 1) * b.dilation - 1) / b.stride + 1; };
  const int64_t height = shrunk(b.height), width = shrunk(b.width);
  Stage depthwise = sum("filtered", {b.batch, height, width, b.wide}, {b.window, b.window});
  {
    auto i = vars(depthwise.axes), r = vars(depthwise.reduce);
    depthwise.body = padded(expand.out, i[0], i[1] * b.stride + r[0] * b.dilation, i[2] * b.stride + r[1] * b.dilation,
                            i[3], b.pad) *
                     load(w1, {i[3], r[0], r[1]});
  }
  c.stages = {expand, depthwise};
  c.outputs = {depthwise.out};
  if (b.hasProjection) {
    Stage project = sum("projected", {b.batch, height, width, b.out}, {b.wide});
    auto i = vars(project.axes);
    project.body =
        load(depthwise.out, {i[0], i[1], i[2], project.reduce[0].var}) * load(w2, {i[3], project.reduce[0].var});
    c.inputs.push_back(w2);
    if (b.isResidual) {
      project.acc = makeVar("acc", {DType::F32, 1});
      project.epilogue = load(data, {i[0], i[1], i[2], i[3]}) + Expr(project.acc);
    }
    c.stages.push_back(project);
    c.outputs = {project.out};
  }
  c.constants = {c.inputs.begin() + 1, c.inputs.end()};
  return c;
}

// Caches so small that these shapes are large.
TargetSpec tiny(TargetSpec t, int threads) {
  t.l2Bytes = 32 << 10;
  t.l1Bytes = 64 << 10;
  t.threads = threads;
  return t;
}

void expectRolled(const Block& b, const TargetSpec& target) {
  Computation c = block(b);
  std::vector<Computation> kernels = schedule::cutKernels(schedule::fuseStages(c), target);
  ASSERT_LE(kernels.size(), 2u);  // what the projection reads may be small
  ASSERT_TRUE(schedule::isRoll(makeAnalytic()->propose(kernels[0], target)));
  expectSame(c, target, *makeAnalytic());
}

TEST(Roll, WindowsStridesAndTasks) {
  int threads = 0;
  for (const TargetSpec& target : {wide(), narrow()})
    for (int64_t window : {2, 3, 5})
      for (int64_t stride : {1, 2})
        for (int64_t pad : {0, 1, 2})
          expectRolled({.height = 23, .width = 13, .wide = 40, .window = window, .stride = stride, .pad = pad},
                       tiny(target, ++threads % 3 + 1));
}

TEST(Roll, BatchesDilationAndResiduals) {
  for (int64_t batch : {1, 3})
    for (int64_t dilation : {1, 2})
      for (bool hasProjection : {false, true})
        expectRolled({.batch = batch,
                      .height = 18,
                      .width = 10,
                      .wide = 48,
                      .pad = dilation,
                      .dilation = dilation,
                      .hasProjection = hasProjection},
                     tiny(narrow(), 2));
  expectRolled({.height = 17, .width = 11, .in = 6, .wide = 36, .out = 6, .isResidual = true}, tiny(narrow(), 1));
  expectRolled({.height = 17, .width = 11, .in = 6, .wide = 36, .out = 6, .isResidual = true}, tiny(wide(), 4));
}

TEST(Roll, AFirstConvolutionWithAWindowOfItsOwn) {
  for (int threads : {1, 2})
    expectRolled({.height = 21, .width = 12, .wide = 24, .first = 3, .stride = 2}, tiny(narrow(), threads));
}

// A stride longer than the window leaves rows out.
TEST(Roll, RowsThatNobodyReads) {
  expectRolled({.height = 31, .width = 9, .wide = 40, .window = 2, .stride = 4, .pad = 0}, tiny(narrow(), 2));
}

TEST(Roll, EveryWalkOfTheSpace) {
  for (uint64_t seed = 0; seed < 12; ++seed)
    expectSame(block({.batch = 2, .height = 19, .width = 11, .wide = 40, .stride = 1 + static_cast<int64_t>(seed % 2)}),
               tiny(seed % 3 ? narrow() : wide(), 2), *makeRandomWalks(seed));
}

TEST(Roll, NotWhereItGainsNothing) {
  auto kernels = [](const Computation& c, const TargetSpec& target) {
    return schedule::cutKernels(schedule::fuseStages(c), target).size();
  };
  const Computation c = block({.height = 23, .width = 13, .wide = 40});
  EXPECT_EQ(kernels(c, tiny(wide(), 1)), 1u);
  EXPECT_EQ(kernels(c, wide()), 3u) << "what lies between fits the second cache";
  Computation seen = c;
  seen.outputs.push_back(seen.stages[0].out);
  EXPECT_GT(kernels(seen, tiny(wide(), 1)), 1u) << "what lies between is asked for";
  EXPECT_GT(kernels(block({.height = 12, .width = 60, .wide = 80}), tiny(wide(), 1)), 1u) << "rows are too long";
}

TEST(Roll, IllegalPlansAreRefused) {
  const TargetSpec target = tiny(narrow(), 1);
  const Computation c =
      schedule::cutKernels(schedule::fuseStages(block({.height = 23, .width = 13, .wide = 40})), target)[0];
  auto reasonOf = [](const Computation& kernel, const std::string& text) {
    auto lowered = schedule::apply(kernel, *schedule::parsePlan(text));
    auto* error = std::get_if<schedule::ApplyError>(&lowered);
    return error ? std::string(schedule::reasonText(error->reason)) : "legal";
  };
  EXPECT_EQ(reasonOf(c, "roll shared 4"), "legal");
  EXPECT_EQ(reasonOf(c, "roll shared 0"), "a factor below one");
  EXPECT_EQ(reasonOf(c, "roll shared 4; split s7 i2 4 peel"), "no such stage");
  EXPECT_EQ(reasonOf(c, "roll shared 4; parallel s0 i0"), "the parallel loop is not the outermost");
  EXPECT_EQ(reasonOf(c, "roll shared 4; pack s1 0"), "the operand changes from strip to strip");
  Computation single = c;
  single.stages.resize(1);
  EXPECT_EQ(reasonOf(single, "roll shared 4"), "not products that read each other through a window of rows");
}

}  // namespace
}  // namespace locution::generator

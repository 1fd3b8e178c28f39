#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ops/node_case.h"
#include "ops/one_node.h"

namespace locution::ops {
namespace {

const Tensor kMatrix = f32({2, 3}, {1, 2, 3, -4, 5, 6});

void expectReduced(const std::string& op, const Tensor& x, const std::vector<int64_t>& axes, bool keep,
                   const std::vector<int64_t>& dims, const std::vector<double>& want) {
  OneNode node(op);
  SCOPED_TRACE(op);
  node.attr("keepdims", int64_t{keep}).in(x).constant(i64({static_cast<int64_t>(axes.size())}, axes));
  expectRun(node, dims, want);
}

TEST(Reduce, AgainstNumpy) {
  expectReduced("ReduceSum", kMatrix, {1}, true, {2, 1}, {6, 7});
  expectReduced("ReduceSum", kMatrix, {-2}, false, {3}, {-3, 7, 9});
  expectReduced("ReduceMean", kMatrix, {0, 1}, false, {}, {13.0 / 6});
  expectReduced("ReduceProd", kMatrix, {1}, false, {2}, {6, -120});
  expectReduced("ReduceMax", kMatrix, {1}, false, {2}, {3, 6});
  expectReduced("ReduceMin", kMatrix, {0}, true, {1, 3}, {-4, 2, 3});
  expectReduced("ReduceL1", kMatrix, {1}, false, {2}, {6, 15});
  expectReduced("ReduceL2", kMatrix, {1}, false, {2}, {std::sqrt(14.0), std::sqrt(77.0)});
  expectReduced("ReduceSumSquare", kMatrix, {1}, false, {2}, {14, 77});
  expectReduced("ReduceLogSum", kMatrix, {1}, false, {2}, {std::log(6.0), std::log(7.0)});
  expectReduced("ReduceLogSumExp", kMatrix, {1}, false, {2}, {3.40760596, 6.3132937});
  expectReduced("ReduceMean", i32({4}, {-3, -2, 0, 2}), {0}, false, {}, {0});
  expectReduced("ReduceL2", i32({2}, {100000, 0}), {0}, false, {}, {100000});
}

// A float32 accumulator would be off by 1e-3 here, and by half at 10^8 elements.
TEST(Reduce, LongSumsStayExact) {
  constexpr int64_t kCount = 1 << 20;
  Tensor x(DType::F32, {kCount});
  std::fill_n(x.data<float>(), kCount, 0.1F);
  double tenth = 0.1F;
  for (auto [op, want] : {std::pair("ReduceSum", tenth * kCount), std::pair("ReduceMean", tenth)}) {
    OneNode node(op);
    node.attr("keepdims", int64_t{0}).in(x);
    expectRun(node, {}, {want}, 1e-7);
  }
}

TEST(Reduce, NoAxesIsAllOrNone) {
  OneNode all("ReduceSum");
  expectRun(all.attr("keepdims", int64_t{0}).in(kMatrix), {}, {13});
  OneNode none("ReduceSumSquare");
  expectRun(none.attr("noop_with_empty_axes", int64_t{1}).in(kMatrix), {2, 3}, {1, 4, 9, 16, 25, 36});
  OneNode scalar("ReduceMax");
  expectRun(scalar.in(f32({}, {4})), {}, {4});
  EXPECT_EQ(OneNode("ReduceSum").type({DType::F32, {2, 3}}).constant(i64({1}, {2})).inferred(),
            "axis 2 is out of range for 2 dimensions");
}

TEST(Reduce, EmptySetsGiveTheIdentity) {
  Tensor empty = f32({2, 0}, {});
  for (const auto& [op, want] : std::vector<std::pair<std::string, double>>{{"ReduceSum", 0},
                                                                            {"ReduceProd", 1},
                                                                            {"ReduceMax", -kInf},
                                                                            {"ReduceMin", kInf},
                                                                            {"ReduceMean", kNaN},
                                                                            {"ReduceLogSum", -kInf},
                                                                            {"ReduceLogSumExp", -kInf},
                                                                            {"ReduceL2", 0}})
    expectReduced(op, empty, {1}, true, {2, 1}, {want, want});
  expectReduced("ReduceMax", i32({0}, {}), {0}, false, {}, {-2147483648.0});
  expectReduced("ReduceMax", ofType(DType::Bool, {0}, {}), {0}, false, {}, {0});
}

TEST(Reduce, SpecialValues) {
  expectReduced("ReduceMax", f32({3}, {1, kNaN, 3}), {0}, false, {}, {kNaN});
  expectReduced("ReduceMin", f32({3}, {1, kNaN, 3}), {0}, false, {}, {kNaN});
  expectReduced("ReduceLogSumExp", f32({2}, {1000, 1000}), {0}, false, {}, {1000.6931471805599});
  expectReduced("ReduceLogSumExp", f32({2}, {-kInf, -kInf}), {0}, false, {}, {-kInf});
  expectReduced("ReduceLogSumExp", f32({2}, {kInf, 1}), {0}, false, {}, {kInf});
  // float16: the sum of 4,096 ones isn't stuck at 2,048.
  expectReduced("ReduceSum", ofType(DType::F16, {4096}, std::vector<double>(4096, 1)), {0}, false, {}, {4096});
}

TEST(Reduce, AxesKnownFromShapesOnly) {
  // The axes are data, but only one choice of them gives the output that is declared.
  auto parsed = graph::parseGraph(
      "graph \"g\" {\n input %x: float32[2x3]\n input %a: int64[1]\n %y: float32[3] = ReduceSum(%x, %a) {keepdims = "
      "0}\n output %y\n}");
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  auto made = computeNode(*parsed, parsed->main().nodes[0]);
  ASSERT_TRUE(made.isOk()) << made.status().message();
  std::vector<Tensor> params{kMatrix, Tensor(DType::F32, {3})};
  ASSERT_TRUE(loop::interpret(loop::naiveLoops(*made), params).isOk());
  expectTensor(params[1], {3}, {-3, 7, 9});
}

TEST(Arg, TiesAndNaN) {
  auto arg = [](const std::string& op, const Tensor& x, int64_t last) {
    OneNode node(op);
    auto got = node.attr("axis", int64_t{-1}).attr("keepdims", int64_t{0}).attr("select_last_index", last).in(x).run();
    EXPECT_TRUE(got.isOk()) << got.status().message();
    return got->front().toInts();
  };
  using V = std::vector<int64_t>;
  Tensor ties = f32({2, 4}, {1, 3, 3, 0, -1, -1, 5, 5});
  EXPECT_EQ(arg("ArgMax", ties, 0), (V{1, 2}));
  EXPECT_EQ(arg("ArgMax", ties, 1), (V{2, 3}));
  EXPECT_EQ(arg("ArgMin", ties, 0), (V{3, 0}));
  EXPECT_EQ(arg("ArgMin", ties, 1), (V{3, 1}));
  EXPECT_EQ(arg("ArgMax", f32({4}, {1, kNaN, kInf, kNaN}), 0), (V{1}));
  EXPECT_EQ(arg("ArgMin", f32({2}, {-kInf, -kInf}), 1), (V{1}));
  OneNode empty("ArgMax");
  EXPECT_EQ(failure(empty.in(f32({0, 2}, {}))), "axis 0 of 0x2 is empty: there is no index to give");
  OneNode hard("Hardmax");
  expectRun(hard.in(f32({2, 3}, {1, 3, 3, 2, 0, 1})), {2, 3}, {0, 1, 0, 1, 0, 0});
}

TEST(Softmax, AnyAxisStable) {
  OneNode last("Softmax");
  expectRun(last.in(f32({2, 2}, {1000, 1001, -kInf, 0})), {2, 2}, {0.26894142, 0.73105858, 0, 1});
  OneNode first("Softmax");
  expectRun(first.attr("axis", int64_t{0}).in(f32({2, 2}, {0, 1, 0, 2})), {2, 2}, {0.5, 0.26894142, 0.5, 0.73105858});
  OneNode log("LogSoftmax");
  expectRun(log.in(f32({1, 2}, {1000, 1001})), {1, 2}, {-1.31326169, -0.31326169});
  OneNode halves("Softmax");
  expectRun(halves.in(ofType(DType::F16, {2}, {0, 0})), {2}, {0.5, 0.5});
  OneNode empty("Softmax");
  expectRun(empty.in(f32({2, 0}, {})), {2, 0}, {});
  // Stages share the names of the dims that stay.
  auto parsed = graph::parseGraph(
      "graph \"g\" {\n input %x: float32[2x3x4]\n %y: float32[2x3x4] = Softmax(%x) {axis = 1}\n output %y\n}");
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  auto made = computeNode(*parsed, parsed->main().nodes[0]);
  ASSERT_TRUE(made.isOk()) << made.status().message();
  ASSERT_EQ(made->stages.size(), 3U);
  EXPECT_EQ(made->stages[0].axes[0].var->name, "i0");
  EXPECT_EQ(made->stages[0].axes[1].var->name, "i2");
  EXPECT_EQ(made->stages[0].reduce[0].var->name, "r1");
  EXPECT_EQ(loop::extents(*made->stages[1].out), (std::vector<int64_t>{2, 4}));
}

TEST(Normalisation, LayerAndRms) {
  OneNode layer("LayerNormalization");
  auto got = layer.in(f32({2, 2}, {1, 3, 10, 20}))
                 .in(f32({2}, {1, 2}))
                 .in(f32({2}, {0, 1}))
                 .attr("epsilon", 0.0)
                 .outputs(3)
                 .run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {2, 2}, {-1, 3, -1, 3});
  expectTensor((*got)[1], {2, 1}, {2, 15});
  expectTensor((*got)[2], {2, 1}, {1, 0.2});
  OneNode far("LayerNormalization");  // a large mean costs no digits
  expectRun(far.attr("epsilon", 0.0).in(f32({2}, {100000, 100002})).in(f32({}, {1})), {2}, {-1, 1});
  OneNode rms("RMSNormalization");
  expectRun(rms.attr("epsilon", 0.0).in(f32({1, 2}, {3, 4})).in(f32({2}, {1, 2})), {1, 2}, {0.84852814, 2.2627417});
  EXPECT_EQ(OneNode("LayerNormalization").type({DType::F32, {2, 3}}).type({DType::F32, {2}}).inferred(),
            "the scale of shape 2 can't be broadcast to 2x3");
}

TEST(Normalisation, ByChannel) {
  Tensor x = f32({1, 2, 2}, {1, 3, 10, 20});
  Tensor one = f32({2}, {1, 2}), bias = f32({2}, {0, 1});
  OneNode batch("BatchNormalization");
  expectRun(batch.attr("epsilon", 0.0).in(x).in(one).in(bias).in(f32({2}, {1, 10})).in(f32({2}, {4, 25})), {1, 2, 2},
            {0, 1, 1, 5});
  OneNode instance("InstanceNormalization");
  expectRun(instance.attr("epsilon", 0.0).in(x).in(one).in(bias), {1, 2, 2}, {-1, 1, -1, 3});
  OneNode last("InstanceNormalization");
  expectRun(
      last.attr("epsilon", 0.0).attr("channels_last", int64_t{1}).in(f32({1, 2, 2}, {1, 10, 3, 20})).in(one).in(bias),
      {1, 2, 2}, {-1, -1, 1, 3});
  OneNode group("GroupNormalization");
  expectRun(group.attr("epsilon", 0.0).attr("num_groups", int64_t{1}).in(f32({1, 2, 1}, {1, 3})).in(one).in(bias),
            {1, 2, 1}, {-1, 3});
  OneNode lrn("LRN");
  expectRun(lrn.attr("size", int64_t{3}).attr("alpha", 3.0).attr("beta", 1.0).in(f32({1, 3, 1}, {1, 2, 3})), {1, 3, 1},
            {1.0 / 6, 2.0 / 15, 3.0 / 14});
  EXPECT_EQ(OneNode("BatchNormalization").type({DType::F32, {1, 3, 4}}).in(one).in(bias).in(one).in(one).inferred(),
            "input 1: expected 3 elements (the channels of 1x3x4), got 2");
}

TEST(Normalisation, BatchNormalizationInTraining) {
  OneNode node("BatchNormalization");
  node.attr("epsilon", 0.0).attr("momentum", 0.75).attr("training_mode", int64_t{1}).outputs(3);
  auto got = node.in(f32({2, 2, 1}, {1, 10, 3, 30}))
                 .in(f32({2}, {1, 2}))
                 .in(f32({2}, {0, 1}))
                 .in(f32({2}, {4, 0}))
                 .in(f32({2}, {8, 8}))
                 .run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {2, 2, 1}, {-1, -1, 1, 3});
  expectTensor((*got)[1], {2}, {3.5, 5});
  expectTensor((*got)[2], {2}, {6.25, 31});
  // Nobody reads what is normalised.
  auto moved = outputsOf(NodeCase("BatchNormalization",
                                  {f32({2, 1, 1}, {1, 3}), f32({1}, {1}), f32({1}, {0}), f32({1}, {4}), f32({1}, {8})},
                                  {{"momentum", number(0.75)}, {"training_mode", integer(1)}}, {false, true, false}));
  ASSERT_EQ(moved.size(), 1U);
  expectTensor(moved[0], {1}, {3.5});
  EXPECT_EQ(OneNode("BatchNormalization")
                .outputs(2)
                .type({DType::F32, {1, 1, 4}})
                .in(f32({1}, {1}))
                .in(f32({1}, {1}))
                .in(f32({1}, {1}))
                .in(f32({1}, {1}))
                .inferred(),
            "running statistics are asked for, but training_mode isn't set");
}

TEST(Normalisation, OverAxes) {
  OneNode lp("LpNormalization");
  expectRun(lp.attr("p", int64_t{1}).in(f32({2, 2}, {1, -3, 0, 0})), {2, 2}, {0.25, -0.75, 0, 0});
  OneNode moments("MeanVarianceNormalization");
  expectRun(moments.attr("axes", std::vector<int64_t>{1}).in(f32({1, 2}, {1, 3})), {1, 2}, {-1, 1});
}

TEST(GlobalPool, BothLayouts) {
  OneNode average("GlobalAveragePool");
  expectRun(average.in(f32({1, 2, 2}, {1, 3, 10, 20})), {1, 2, 1}, {2, 15});
  OneNode last("GlobalAveragePool");
  expectRun(last.attr("channels_last", int64_t{1}).in(f32({1, 2, 2}, {1, 10, 3, 20})), {1, 1, 2}, {2, 15});
  OneNode max("GlobalMaxPool");
  expectRun(max.in(f32({1, 1, 3}, {1, kNaN, 2})), {1, 1, 1}, {kNaN});
  OneNode lp("GlobalLpPool");
  expectRun(lp.attr("p", int64_t{3}).in(f32({1, 1, 2}, {1, -2})), {1, 1, 1}, {2.0800838});
}

}  // namespace
}  // namespace locution::ops

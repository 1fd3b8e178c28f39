// Pooling and its inverses against values of ONNX Runtime.
#include <limits>

#include "ops/node_case.h"

namespace locution::ops {
namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();
ValueType f32(Shape s) { return typeOf(DType::F32, std::move(s)); }

TEST(MaxPool, CeilModePadsAndIndices) {
  NodeCase node("MaxPool", {pattern({1, 1, 4, 5})},
                {{"kernel_shape", ints({2, 3})},
                 {"strides", ints({2, 2})},
                 {"ceil_mode", integer(1)},
                 {"pads", ints({1, 0, 0, 1})},
                 {"storage_order", integer(1)}},
                {true, true});
  auto out = outputsOf(std::move(node));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {1, 1, 3, 3}, {1, 2.5, 0.5, 2, 2.5, 2.5, 2, 2, -2});
  expectValues(out[1], {1, 1, 3, 3}, {4, 12, 16, 5, 18, 18, 11, 11, 19});
}

TEST(MaxPool, NaNPropagatesAndTiesGoToTheFirst) {
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 4}, {1, 1, std::numeric_limits<float>::quiet_NaN(), 3});
  auto out = outputsOf(NodeCase("MaxPool", {x}, {{"kernel_shape", ints({2})}}, {true, true}));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {1, 1, 3}, {1, kNaN, kNaN});
  expectValues(out[1], {1, 1, 3}, {0, 2, 2});
}

TEST(MaxPool, IndicesAlone) {
  Tensor x = Tensor::of<int8_t>(DType::I8, {1, 2, 2}, {-128, -128, 5, 7});
  auto out = outputsOf(NodeCase("MaxPool", {x}, {{"kernel_shape", ints({2})}}, {false, true}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2, 1}, {0, 3});
}

TEST(MaxPool, ChannelsLast) {
  Tensor x = pattern({1, 3, 5, 4}, 29, 31, -15);
  graph::Attrs attrs{{"kernel_shape", ints({2, 2})}, {"pads", ints({1, 1, 0, 0})}, {"dilations", ints({2, 1})}};
  auto first = outputsOf(NodeCase("MaxPool", {x}, attrs));
  attrs["channels_last"] = integer(1);
  auto last = outputsOf(NodeCase("MaxPool", {permuted(x, {0, 2, 3, 1})}, attrs));
  ASSERT_TRUE(first.size() == 1 && last.size() == 1);
  EXPECT_TRUE(permuted(first[0], {0, 2, 3, 1}).identical(last[0]));
}

TEST(AveragePool, CountsWhatIsInside) {
  auto pool = [](int64_t includePad) {
    auto out = outputsOf(NodeCase("AveragePool", {pattern({1, 1, 4, 5})},
                                  {{"kernel_shape", ints({3, 2})},
                                   {"strides", ints({2, 2})},
                                   {"ceil_mode", integer(1)},
                                   {"pads", ints({1, 1, 0, 0})},
                                   {"count_include_pad", integer(includePad)}}));
    return out.empty() ? Tensor() : out[0];
  };
  expectValues(pool(1), {1, 1, 2, 3}, {-2. / 3, 1. / 3, 5. / 12, -0.25, 1. / 6, -1. / 6});
  expectValues(pool(0), {1, 1, 2, 3}, {-2, 0.5, 0.625, -0.5, 1. / 6, -1. / 6});
}

TEST(AveragePool, DilatedWindowsAtTheEdge) {
  // Windows (-1, 1), (0, 2), (1, 3) over three elements: the first and last have one element each.
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 3}, {1, 2, 4});
  auto out = outputsOf(
      NodeCase("AveragePool", {x}, {{"kernel_shape", ints({2})}, {"dilations", ints({2})}, {"pads", ints({1, 1})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 3}, {2, 2.5, 2});
}

TEST(LpPool, Cubes) {
  auto out = outputsOf(NodeCase("LpPool", {pattern({1, 1, 5})}, {{"kernel_shape", ints({2})}, {"p", integer(3)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 4}, {2.55223, 1.25992, 2.55223, 2.50665});
}

TEST(Pooling, Infers) {
  Dim w = Dim::symbol("w");
  graph::Attrs attrs{
      {"kernel_shape", ints({3})}, {"strides", ints({2})}, {"ceil_mode", integer(1)}, {"pads", ints({1, 1})}};
  // ceil would give 4 windows, of which the last starts in the end padding.
  EXPECT_EQ(inferredText(NodeCase("MaxPool", {f32({1, 2, 5})}, attrs)), "float32[1x2x3]");
  EXPECT_EQ(inferredText(NodeCase("AveragePool", {f32({1, 2, 6})}, attrs)), "float32[1x2x4]");
  NodeCase symbolic("MaxPool", {f32({1, 2, w})}, attrs);
  ASSERT_TRUE(symbolic.infer().isOk());
  EXPECT_EQ(symbolic.output().shape.substitute({{"w", 6}}).str(), "1x2x4");
  EXPECT_EQ(inferredText(NodeCase("MaxPool", {f32({1, 2, 5})})), "error: attribute kernel_shape is missing");
  EXPECT_EQ(inferredText(NodeCase("LpPool", {f32({1, 2, 5})}, {{"kernel_shape", ints({2})}, {"p", integer(0)}})),
            "error: attribute p is 0, expected at least 1");
  EXPECT_EQ(inferredText(NodeCase("MaxPool", {f32({1, 2, 5})},
                                  {{"kernel_shape", ints({int64_t{1} << 62})}, {"auto_pad", text("SAME_UPPER")}}))
                .substr(0, 6),
            "error:");
}

TEST(MaxUnpool, ScattersByIndex) {
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 2, 2}, {1, 2, 3, 4});
  Tensor at = Tensor::of<int64_t>(DType::I64, {1, 1, 2, 2}, {5, 7, 13, 15});
  graph::Attrs attrs{{"kernel_shape", ints({2, 2})}, {"strides", ints({2, 2})}};
  auto plain = outputsOf(NodeCase("MaxUnpool", {x, at}, attrs));
  ASSERT_EQ(plain.size(), 1u);
  expectValues(plain[0], {1, 1, 4, 4}, {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4});
  auto larger = outputsOf(NodeCase("MaxUnpool", {x, at, Tensor::vectorI64({1, 1, 5, 4})}, attrs, {true}, {2}));
  ASSERT_EQ(larger.size(), 1u);
  expectValues(larger[0], {1, 1, 5, 4}, {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0});
}

TEST(MaxUnpool, ChecksIndices) {
  NodeCase node("MaxUnpool", {pattern({1, 1, 1, 1}), Tensor::of<int64_t>(DType::I64, {1, 1, 1, 1}, {4})},
                {{"kernel_shape", ints({2, 2})}}, {true}, {1});
  Result<std::vector<Tensor>> out = node.run();
  ASSERT_FALSE(out.isOk());
}

TEST(Col2Im, SumsOverlaps) {
  // Blocks of two pixels, stride 1, over a row of three: the middle one is in both.
  Tensor x = Tensor::of<float>(DType::F32, {1, 2, 2}, {1, 2, 10, 20});
  auto out =
      outputsOf(NodeCase("Col2Im", {x, Tensor::vectorI64({1, 3}), Tensor::vectorI64({1, 2})}, {}, {true}, {1, 2}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 1, 3}, {1, 12, 20});
}

}  // namespace
}  // namespace locution::ops

// Products of quantised tensors: exact sums, rounding, values of ONNX Runtime.
#include "ops/node_case.h"

namespace locution::ops {
namespace {

Tensor u8(std::vector<int64_t> dims, const std::vector<uint8_t>& v) {
  return Tensor::of<uint8_t>(DType::U8, std::move(dims), v);
}
Tensor i8(std::vector<int64_t> dims, const std::vector<int8_t>& v) {
  return Tensor::of<int8_t>(DType::I8, std::move(dims), v);
}
Tensor scale(float v) { return Tensor::scalarF32(v); }

TEST(MatMulInteger, NothingSaturatesOnTheWay) {
  // u8 x s8 in pairs of 16 bits would stop at 32767.
  Tensor a(DType::U8, {1, 64}), b(DType::I8, {64, 2});
  for (int64_t i = 0; i < 64; ++i) {
    a.setElementInt(i, 255);
    b.setElementInt(2 * i, 127);
    b.setElementInt(2 * i + 1, -128);
  }
  auto out = outputsOf(NodeCase("MatMulInteger", {a, b}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2}, {255. * 127 * 64, -255. * 128 * 64});
}

TEST(MatMulInteger, ZeroPointsOfRowsAndColumns) {
  Tensor a = u8({2, 2}, {1, 2, 3, 4}), b = i8({2, 2}, {5, -6, 7, 8});
  auto out = outputsOf(NodeCase("MatMulInteger", {a, b, u8({2}, {1, 2}), i8({2}, {-1, 3})}));
  ASSERT_EQ(out.size(), 1u);
  // (0 1; 1 2) * (6 -9; 8 5)
  expectValues(out[0], {2, 2}, {8, 5, 22, 1});
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  auto out = outputsOf(NodeCase("ConvInteger", {u8({1, 1, 2}, {10, 20}), i8({1, 1, 2}, {3, -4}), u8({}, {7})},
                                {{"pads", ints({1, 1})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 3}, {-12, 9 - 52, 39});
}

TEST(QLinearMatMul, RoundsHalfToEvenAndClamps) {
  Tensor a = u8({1, 1}, {1}), b = u8({1, 4}, {1, 3, 5, 255});
  auto out = outputsOf(
      NodeCase("QLinearMatMul", {a, scale(1), u8({}, {0}), b, scale(1), u8({}, {0}), scale(2), u8({}, {200})}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 4}, {200, 202, 202, 255});  // 0.5, 1.5, 2.5, 127.5
}

TEST(QLinearMatMul, ScalesOfColumns) {
  Tensor a = u8({1, 2}, {3, 4}), b = i8({2, 2}, {1, -2, 5, 6});
  Tensor scales = Tensor::of<float>(DType::F32, {2}, {0.5, 2});
  auto out = outputsOf(
      NodeCase("QLinearMatMul", {a, scale(1), u8({}, {0}), b, scales, i8({2}, {0, 0}), scale(1), i8({}, {-1})}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2}, {11, 35});  // 11.5 - 1 = 12 - 1, 36 - 1
}

TEST(QLinearConv, ScalesOfChannels) {
  Tensor scales = Tensor::of<float>(DType::F32, {2}, {0.2F, 0.3F}),
         bias = Tensor::of<int32_t>(DType::I32, {2}, {7, -9});
  auto out = outputsOf(NodeCase(
      "QLinearConv",
      {pattern({1, 1, 3, 3}, 31, 97, 60, 1, DType::U8), scale(0.1F), u8({}, {100}),
       pattern({2, 1, 2, 2}, 5, 11, -5, 1, DType::I8), scales, i8({2}, {0, 0}), scale(0.5F), u8({}, {120}), bias},
      {{"pads", ints({1, 1, 0, 0})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2, 3, 3},
               {122, 113, 118, 118, 139, 119, 118, 120, 119, 127, 114, 114, 115, 123, 109, 104, 146, 109});
}

TEST(Quantised, Errors) {
  EXPECT_EQ(inferredText(NodeCase("MatMulInteger", {pattern({1, 2}), i8({2, 1}, {1, 2})})).substr(0, 6), "error:");
  EXPECT_EQ(inferredText(NodeCase("ConvInteger", {u8({1, 1, 2}, {1, 2}), i8({1, 1, 2}, {3, -4}), u8({2}, {7, 8})}))
                .substr(0, 6),
            "error:");
  EXPECT_EQ(
      inferredText(NodeCase("ConvInteger", {u8({1, 1, 2}, {1, 2}), i8({1, 1, 2}, {3, -4}), {}, i8({3}, {7, 8, 9})})),
      "error: elements of w_zero_point and output channels: 3 and 1 differ");
  NodeCase bad("MatMulInteger", {u8({2, 2}, {1, 2, 3, 4}), i8({2, 2}, {5, -6, 7, 8}), u8({3}, {1, 2, 3})});
  EXPECT_FALSE(bad.run().isOk());
}

}  // namespace
}  // namespace locution::ops

// Resize and the other samplers against values of ONNX Runtime.
#include "ops/resize.h"
#include "ops/node_case.h"

namespace locution::ops {
namespace {

ValueType f32(Shape s) { return typeOf(DType::F32, std::move(s)); }
Tensor floats(const std::vector<float>& v) {
  return Tensor::of<float>(DType::F32, {static_cast<int64_t>(v.size())}, v);
}

Tensor bySizes(const Tensor& x, const std::vector<int64_t>& sizes, graph::Attrs attrs) {
  auto out = outputsOf(NodeCase("Resize", {x, {}, {}, Tensor::vectorI64(sizes)}, std::move(attrs), {true}, {3}));
  return out.empty() ? Tensor() : out[0];
}
Tensor byScales(const Tensor& x, const std::vector<float>& scales, graph::Attrs attrs) {
  auto out = outputsOf(NodeCase("Resize", {x, {}, floats(scales)}, std::move(attrs), {true}, {2}));
  return out.empty() ? Tensor() : out[0];
}

TEST(Resize, Nearest) {
  Tensor x = pattern({1, 1, 3, 4});
  expectValues(bySizes(x, {1, 1, 5, 3}, {{"mode", text("nearest")}, {"nearest_mode", text("round_prefer_ceil")}}),
               {1, 1, 5, 3}, {-2.5, -1, 2.5, -2.5, -1, 2.5, 0.5, 2, 0, -2, -0.5, -2.5, -2, -0.5, -2.5});
}

TEST(Resize, NearestUpsamplingByTwoIsADivision) {
  NodeCase node("Resize", {pattern({1, 2, 3, 4}), {}, floats({1, 1, 2, 2})},
                {{"coordinate_transformation_mode", text("asymmetric")}, {"nearest_mode", text("floor")}}, {true}, {2});
  auto c = node.computation();
  ASSERT_TRUE(c.isOk()) << c.status().message();
  ASSERT_EQ(c->stages.size(), 1u);  // no table of positions
  EXPECT_EQ(loop::print(c->stages[0].body).find("f32"), std::string::npos);
}

TEST(Resize, Linear) {
  expectValues(
      byScales(pattern({1, 1, 3, 4}), {1, 1, 2, 1.5}, {{"mode", text("linear")}}), {1, 1, 6, 6},
      {-2.5,   -0.75,   0.666667,  -0.666667, 0.75,   2.5,    -1.75,  -0.6875, 0.270833,  -0.145833, 0.8125, 1.875,
       -0.25,  -0.5625, -0.520833, 0.895833,  0.9375, 0.625,  -0.125, -0.4375, -0.395833, 1.02083,   0.375,  -0.625,
       -1.375, -0.3125, 0.645833,  0.229167,  -0.875, -1.875, -2,     -0.25,   1.16667,   -0.166667, -1.5,   -2.5});
}

TEST(Resize, CubicExcludingOutside) {
  expectValues(bySizes(pattern({1, 1, 3, 4}), {1, 1, 4, 3}, {{"mode", text("cubic")}, {"exclude_outside", integer(1)}}),
               {1, 1, 4, 3},
               {-2.18106, -0.0200382, 2.14098, -0.520398, 0.0711106, 1.26093, -0.268909, 0.581947, -0.888643, -1.64098,
                1.07699, -2.47526});
}

TEST(Resize, Antialias) {
  expectValues(bySizes(pattern({1, 1, 4, 6}), {1, 1, 2, 3}, {{"mode", text("linear")}, {"antialias", integer(1)}}),
               {1, 1, 2, 3}, {-0.164062, 0.382812, -0.53125, -0.0234375, 0.179688, -0.21875});
}

TEST(Resize, PlainBytesStayPlain) {
  // Weights that sum to a little less than one would make 254 of 255.
  Tensor x(DType::U8, {1, 1, 3, 3});
  for (int64_t i = 0; i < 9; ++i) x.setElementInt(i, 255);
  for (const char* mode : {"linear", "cubic"}) {
    Tensor y = bySizes(x, {1, 1, 7, 5}, {{"mode", text(mode)}});
    for (int64_t i = 0; i < y.elements(); ++i) EXPECT_EQ(y.elementAsInt(i), 255) << mode << " " << i;
  }
}

TEST(Resize, CropsAndExtrapolates) {
  graph::Attrs attrs{{"mode", text("linear")},
                     {"coordinate_transformation_mode", text("tf_crop_and_resize")},
                     {"extrapolation_value", number(9)},
                     {"axes", ints({0})}};
  auto out = outputsOf(
      NodeCase("Resize", {floats({0, 1, 2}), floats({0.5, 1.5}), {}, Tensor::vectorI64({3})}, attrs, {true}, {1, 3}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {3}, {1, 2, 9});
}

TEST(Resize, ChannelsLastKeepsTheOrderOfSizes) {
  Tensor x = pattern({1, 2, 3, 4});
  Tensor first = bySizes(x, {1, 2, 5, 7}, {{"mode", text("linear")}});
  Tensor last =
      bySizes(permuted(x, {0, 2, 3, 1}), {1, 2, 5, 7}, {{"mode", text("linear")}, {"channels_last", integer(1)}});
  ASSERT_TRUE(first.isValid() && last.isValid());
  EXPECT_TRUE(permuted(first, {0, 2, 3, 1}).identical(last));
}

TEST(Resize, Infers) {
  Dim h = Dim::symbol("h");
  auto infer = [](NodeInput x, NodeInput scales, NodeInput sizes, graph::Attrs attrs = {}) {
    return inferredText(
        NodeCase("Resize", {std::move(x), {}, std::move(scales), std::move(sizes)}, std::move(attrs), {true}, {2, 3}));
  };
  EXPECT_EQ(infer(f32({1, 3, h, 8}), floats({1, 1, 2, 2}), {}),
            inferredText(NodeCase("Identity", {f32({1, 3, h * Dim(2), 16})})));
  EXPECT_EQ(infer(f32({1, 3, h, 8}), floats({1, 1, 0.5, 0.5}), {}),
            inferredText(NodeCase("Identity", {f32({1, 3, floorDiv(h, Dim(2)), 4})})));
  graph::Attrs attrs{{"axes", ints({2, 3})}, {"keep_aspect_ratio_policy", text("not_larger")}};
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), {}, Tensor::vectorI64({6, 10}), attrs), "float32[1x3x5x10]");
  attrs["keep_aspect_ratio_policy"] = text("not_smaller");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), {}, Tensor::vectorI64({6, 10}), attrs), "float32[1x3x6x12]");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), {}, {}), "error: neither scales nor sizes is given");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), floats({1, 1, 2, 2}), Tensor::vectorI64({1, 3, 8, 8})),
            "error: scales and sizes are both given");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), floats({}), Tensor::vectorI64({1, 3, 8, 8})), "float32[1x3x8x8]");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), floats({2, 2}), {}), "error: scales has 2 entries, expected 4 floats");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), floats({1, 1, 0, 2}), {}).substr(0, 6), "error:");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), {}, Tensor::vectorI64({1, 3, -8, 8})), "error: sizes has the entry -8");
  EXPECT_EQ(infer(f32({1, 3, 4, 8}), {}, Tensor::vectorI64({1, 3, 8, 8}), {{"mode", text("linearish")}}).substr(0, 6),
            "error:");
}

TEST(Resize, AffineFit) {
  AffineIndex fit;
  ASSERT_TRUE(fitAffine({0, 0, 1, 1, 2, 2}, 1, 2, &fit));
  EXPECT_EQ(fit.offset, 0);
  ASSERT_TRUE(fitAffine({1, 3, 5}, 2, 1, &fit));
  EXPECT_EQ(fit.offset, 1);
  EXPECT_FALSE(fitAffine({0, 0, 0, 1}, 1, 2, &fit));
}

TEST(GridSample, LinearAtTheBorder) {
  auto out = outputsOf(NodeCase("GridSample", {pattern({1, 1, 3, 4}), pattern({1, 2, 2, 2}, 5, 11, -5, 4)},
                                {{"mode", text("linear")}, {"padding_mode", text("border")}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 2, 2}, {0.5, 0.9375, 1.875, 2.5});
}

TEST(GridSample, WildPositionsStayInside) {
  Tensor grid = Tensor::of<float>(DType::F32, {1, 1, 3, 2}, {1e30F, -1e30F, std::nanf(""), 0, 3, -7});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (int64_t align : {0, 1}) {
        auto out = outputsOf(
            NodeCase("GridSample", {pattern({1, 1, 3, 1}), grid},
                     {{"mode", text(mode)}, {"padding_mode", text(padding)}, {"align_corners", integer(align)}}));
        EXPECT_EQ(out.size(), 1u) << mode << " " << padding;
      }
    }
  }
}

TEST(GridSample, AnInfinitePlaceIsOutside) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 1, 3}, {1, 2, 3});
  Tensor grid = Tensor::of<float>(DType::F32, {1, 1, 2, 2}, {kInf, 0, -kInf, 0});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    auto sampled = [&](const char* padding) {
      auto out = outputsOf(NodeCase("GridSample", {x, grid}, {{"mode", text(mode)}, {"padding_mode", text(padding)}}));
      return out.empty() ? Tensor() : out[0];
    };
    expectValues(sampled("zeros"), {1, 1, 1, 2}, {0, 0});
    expectValues(sampled("border"), {1, 1, 1, 2}, {3, 1});
  }
}

TEST(AffineGrid, Identity) {
  Tensor theta = Tensor::of<float>(DType::F32, {1, 2, 3}, {1, 0, 0, 0, 1, 0});
  auto out = outputsOf(
      NodeCase("AffineGrid", {theta, Tensor::vectorI64({1, 1, 2, 2})}, {{"align_corners", integer(1)}}, {true}, {1}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2, 2, 2}, {-1, -1, 1, -1, -1, 1, 1, 1});
}

TEST(AffineGrid, ThetaFitsTheSize) {
  auto grid = [](const Shape& theta, const std::vector<int64_t>& size) {
    return inferredText(NodeCase("AffineGrid", {f32(theta), Tensor::vectorI64(size)}, {}, {true}, {1}));
  };
  EXPECT_EQ(grid({2, 2, 3}, {2, 1, 4, 5}), "float32[2x4x5x2]");
  EXPECT_EQ(grid({1, 2, 3}, {2, 1, 4, 5}), "error: batches of theta and size: 1 and 2 differ");
  EXPECT_EQ(grid({2, 3, 4}, {1, 1, 4, 5, 6}), "error: batches of theta and size: 2 and 1 differ");
  EXPECT_EQ(grid({1, 3, 4}, {1, 1, 4, 5}), "error: rows of theta and spatial dims: 3 and 2 differ");
}

TEST(RoiAlign, Float64KeepsItsDigits) {
  // One sample in the middle of four pixels of 1 + 1e-12.
  Tensor x(DType::F64, {1, 1, 2, 2}), roi(DType::F64, {1, 4});
  for (int64_t i = 0; i < 4; ++i) x.setElement(i, 1 + 1e-12);
  roi.setElement(2, 2);
  roi.setElement(3, 2);
  auto out = outputsOf(NodeCase("RoiAlign", {x, roi, Tensor::vectorI64({0})}, {{"sampling_ratio", integer(1)}}));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_DOUBLE_EQ(out[0].elementAsDouble(0), 1 + 1e-12);
}
TEST(RoiAlign, AdaptiveSamples) {
  Tensor roi = Tensor::of<float>(DType::F32, {1, 4}, {0, 0, 3, 2});
  auto out = outputsOf(NodeCase("RoiAlign", {pattern({1, 1, 3, 4}), roi, Tensor::vectorI64({0})},
                                {{"output_height", integer(2)}, {"output_width", integer(2)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 2, 2}, {-1.40625, -0.15625, -0.125, 0.78125});
}

TEST(MaxRoiPool, EmptyBinsAreZero) {
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 2, 2}, {-1, -2, -3, -4}),
         roi = Tensor::of<float>(DType::F32, {2, 5}, {0, 0, 0, 1, 1, 0, 9, 9, 9, 9});
  auto out = outputsOf(NodeCase("MaxRoiPool", {x, roi}, {{"pooled_shape", ints({1, 1})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {2, 1, 1, 1}, {-1, 0});
}

}  // namespace
}  // namespace locution::ops

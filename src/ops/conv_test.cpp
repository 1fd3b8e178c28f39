// Conv and ConvTranspose: values of ONNX Runtime, random cases against sums written out, and the form of the stages.
#include <limits>
#include <random>

#include "ops/node_case.h"

namespace locution::ops {
namespace {

ValueType f32(Shape s) { return typeOf(DType::F32, std::move(s)); }

TEST(Conv, GroupsStridesDilationsPads) {
  auto out = outputsOf(NodeCase(
      "Conv", {pattern({1, 4, 4, 3}), pattern({4, 2, 2, 3}, 5), pattern({4}, 3)},
      {{"group", integer(2)}, {"strides", ints({2, 1})}, {"dilations", ints({2, 1})}, {"pads", ints({1, 0, 0, 1})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 4, 2, 2},
               {-8, -1.75, -9.5, -8.25, 5.25, -4.25, 0.5, -2.75, -5, -1.5, 6, 9.5, -2.25, 0, -2.25, 9.25});
}

TEST(Conv, AutoPad) {
  auto conv = [](const std::string& pad) {
    auto out = outputsOf(NodeCase("Conv", {pattern({1, 1, 5}), pattern({1, 1, 4}, 5)},
                                  {{"auto_pad", text(pad)}, {"strides", ints({2})}}));
    return out.empty() ? Tensor() : out[0];
  };
  expectValues(conv("SAME_UPPER"), {1, 1, 3}, {3, 3.5, -6.25});
  expectValues(conv("SAME_LOWER"), {1, 1, 3}, {-6.75, 2.5, 3.75});
}

TEST(ConvTranspose, StridesPadsOutputPadding) {
  auto out =
      outputsOf(NodeCase("ConvTranspose", {pattern({1, 2, 2, 3}), pattern({2, 1, 3, 2}, 5), pattern({1}, 3)},
                         {{"strides", ints({2, 2})}, {"pads", ints({1, 0, 0, 0})}, {"output_padding", ints({1, 0})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 5, 6},
               {-6.75, -5.25, 0,    -3,   -7,    2,     -10.5, -7.25, -2.5, -2.75, -5.5, 7.25, 5.25, -6.75, -1.75,
                -1.75, -8.75, 3.25, 3.25, -8.75, -1.75, -1.75, -6.75, 5.25, -2.5,  -2.5, -2.5, -2.5, -2.5,  -2.5});
}

TEST(ConvTranspose, StrideAndDilation) {
  auto out = outputsOf(NodeCase("ConvTranspose", {pattern({1, 1, 3}), pattern({1, 2, 2}, 5)},
                                {{"strides", ints({2})}, {"dilations", ints({3})}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2, 8}, {6.25, 0, -2.5, 0, 2.5, 0, 0, 0, -6.25, 0, 2.5, 1.25, -2.5, -0.5, 0, 0.5});
}

/// A random two-dimensional case, its sum written out.
struct Case {
  int64_t group, perGroup, outPerGroup, in[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
  explicit Case(std::mt19937& random) {
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    group = pick(1, 3);
    perGroup = pick(1, 2);
    outPerGroup = pick(1, 2);
    for (int i = 0; i < 2; ++i) {
      kernel[i] = pick(1, 3);
      stride[i] = pick(1, 3);
      dilation[i] = pick(1, 2);
      begin[i] = pick(0, 2);
      end[i] = pick(0, 2);
      in[i] = pick(5, 7);
    }
  }
  graph::Attrs attrs(bool channelsLast) const {
    return {{"group", integer(group)},
            {"strides", ints({stride[0], stride[1]})},
            {"dilations", ints({dilation[0], dilation[1]})},
            {"pads", ints({begin[0], begin[1], end[0], end[1]})},
            {"channels_last", integer(channelsLast)}};
  }
};

Tensor toChannelsLast(const Tensor& t) { return permuted(t, {0, 2, 3, 1}); }

TEST(Conv, RandomAgainstItsDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    Case k(random);
    int64_t ic = k.group * k.perGroup, oc = k.group * k.outPerGroup, out[2];
    for (int i = 0; i < 2; ++i)
      out[i] = (k.in[i] + k.begin[i] + k.end[i] - (k.kernel[i] - 1) * k.dilation[i] - 1) / k.stride[i] + 1;
    Tensor x = pattern({2, ic, k.in[0], k.in[1]}, 29, 31, -15),
           w = pattern({oc, k.perGroup, k.kernel[0], k.kernel[1]}, 17, 23, -11);
    std::vector<double> want;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t o = 0; o < oc; ++o) {
        for (int64_t y = 0; y < out[0]; ++y) {
          for (int64_t xx = 0; xx < out[1]; ++xx) {
            double sum = 0;
            for (int64_t c = 0; c < k.perGroup; ++c) {
              for (int64_t ky = 0; ky < k.kernel[0]; ++ky) {
                for (int64_t kx = 0; kx < k.kernel[1]; ++kx) {
                  int64_t py = y * k.stride[0] + ky * k.dilation[0] - k.begin[0],
                          px = xx * k.stride[1] + kx * k.dilation[1] - k.begin[1];
                  if (py < 0 || px < 0 || py >= k.in[0] || px >= k.in[1]) continue;
                  int64_t channel = o / k.outPerGroup * k.perGroup + c;
                  sum += x.elementAsDouble(((n * ic + channel) * k.in[0] + py) * k.in[1] + px) *
                         w.elementAsDouble(((o * k.perGroup + c) * k.kernel[0] + ky) * k.kernel[1] + kx);
                }
              }
            }
            want.push_back(sum);
          }
        }
      }
    }
    auto plain = outputsOf(NodeCase("Conv", {x, w}, k.attrs(false)));
    auto last = outputsOf(NodeCase("Conv", {toChannelsLast(x), w}, k.attrs(true)));
    ASSERT_TRUE(plain.size() == 1 && last.size() == 1);
    expectValues(plain[0], {2, oc, out[0], out[1]}, want);
    EXPECT_TRUE(toChannelsLast(plain[0]).identical(last[0])) << "round " << round;
  }
}

TEST(ConvTranspose, RandomAgainstItsDefinition) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    Case k(random);
    int64_t ic = k.group * k.perGroup, oc = k.group * k.outPerGroup, out[2];
    for (int i = 0; i < 2; ++i)
      out[i] = (k.in[i] - 1) * k.stride[i] + (k.kernel[i] - 1) * k.dilation[i] + 1 - k.begin[i] - k.end[i];
    Tensor x = pattern({2, ic, k.in[0], k.in[1]}, 29, 31, -15),
           w = pattern({ic, k.outPerGroup, k.kernel[0], k.kernel[1]}, 17, 23, -11);
    std::vector<double> want(static_cast<size_t>(2 * oc * out[0] * out[1]), 0);
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t c = 0; c < ic; ++c) {
        for (int64_t o = 0; o < k.outPerGroup; ++o) {
          for (int64_t y = 0; y < k.in[0]; ++y) {
            for (int64_t xx = 0; xx < k.in[1]; ++xx) {
              for (int64_t ky = 0; ky < k.kernel[0]; ++ky) {
                for (int64_t kx = 0; kx < k.kernel[1]; ++kx) {
                  int64_t py = y * k.stride[0] + ky * k.dilation[0] - k.begin[0],
                          px = xx * k.stride[1] + kx * k.dilation[1] - k.begin[1];
                  if (py < 0 || px < 0 || py >= out[0] || px >= out[1]) continue;
                  int64_t channel = c / k.perGroup * k.outPerGroup + o;
                  want[static_cast<size_t>(((n * oc + channel) * out[0] + py) * out[1] + px)] +=
                      x.elementAsDouble(((n * ic + c) * k.in[0] + y) * k.in[1] + xx) *
                      w.elementAsDouble(((c * k.outPerGroup + o) * k.kernel[0] + ky) * k.kernel[1] + kx);
                }
              }
            }
          }
        }
      }
    }
    auto plain = outputsOf(NodeCase("ConvTranspose", {x, w}, k.attrs(false)));
    auto last = outputsOf(NodeCase("ConvTranspose", {toChannelsLast(x), w}, k.attrs(true)));
    ASSERT_TRUE(plain.size() == 1 && last.size() == 1);
    expectValues(plain[0], {2, oc, out[0], out[1]}, want);
    EXPECT_TRUE(toChannelsLast(plain[0]).identical(last[0])) << "round " << round;
  }
}

bool containsSelect(const loop::Expr& e) {
  bool found = false;
  loop::visit(e, [&](const loop::Expr& node) {
    found = found || node->kind == loop::ExprKind::Select;
    return true;
  });
  return found;
}

TEST(Conv, PadsInAStageOfTheirOwn) {
  auto stagesOf = [](graph::Attrs attrs) {
    NodeCase node("Conv", {pattern({1, 3, 8, 8}), pattern({4, 3, 3, 3})}, std::move(attrs));
    auto c = node.computation();
    EXPECT_TRUE(c.isOk()) << c.status().message();
    return c.isOk() ? c->stages : std::vector<loop::Stage>{};
  };
  EXPECT_EQ(stagesOf({}).size(), 1u);
  std::vector<loop::Stage> stages = stagesOf({{"pads", ints({1, 1, 1, 1})}});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_TRUE(containsSelect(stages[0].body));
  EXPECT_FALSE(containsSelect(stages[1].body));
  EXPECT_EQ(loop::extents(*stages[0].out), (std::vector<int64_t>{1, 3, 10, 10}));
  // Stride 2: the last row and column of the padding are never read.
  stages = stagesOf({{"pads", ints({1, 1, 1, 1})}, {"strides", ints({2, 2})}});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(loop::extents(*stages[0].out), (std::vector<int64_t>{1, 3, 9, 9}));
}

TEST(Conv, DepthwiseHasNoDivision) {
  NodeCase node("Conv", {pattern({1, 4, 6, 6}), pattern({4, 1, 3, 3})}, {{"group", integer(4)}});
  auto c = node.computation();
  ASSERT_TRUE(c.isOk()) << c.status().message();
  ASSERT_EQ(c->stages.size(), 1u);
  EXPECT_EQ(c->stages[0].reduce.size(), 2u);
  loop::visit(c->stages[0].body, [](const loop::Expr& e) {
    const auto* b = loop::as<loop::Binary>(e);
    EXPECT_TRUE(!b || b->op == loop::BinaryOp::Add || b->op == loop::BinaryOp::Mul);
    return true;
  });
}

TEST(Conv, ChannelsLastReducesChannelsInnermost) {
  NodeCase node("Conv", {pattern({1, 6, 6, 4}), pattern({8, 4, 3, 3})}, {{"channels_last", integer(1)}});
  auto c = node.computation();
  ASSERT_TRUE(c.isOk()) << c.status().message();
  ASSERT_EQ(c->stages[0].reduce.size(), 3u);
  EXPECT_EQ(c->stages[0].reduce[2].extent, 4);
  EXPECT_EQ(c->stages[0].axes[3].extent, 8);
}

TEST(Conv, Infers) {
  Dim n = Dim::symbol("n"), h = Dim::symbol("h");
  EXPECT_EQ(inferredText(NodeCase("Conv", {f32({n, 3, h, 224}), f32({64, 3, 7, 7})},
                                  {{"strides", ints({2, 2})}, {"pads", ints({3, 3, 3, 3})}})),
            inferredText(NodeCase("Identity", {f32({n, 64, floorDiv(h - Dim(1), Dim(2)) + Dim(1), 112})})));
  EXPECT_EQ(inferredText(NodeCase("Conv", {f32(Shape::unranked()), f32({4, 3, 3, 3})})), "float32[?]");
  EXPECT_EQ(
      inferredText(NodeCase("Conv", {f32({1, 3, 8, 8}), f32(Shape::unranked())}, {{"kernel_shape", ints({3, 3})}}))
          .substr(0, 9),
      "float32[1");
  EXPECT_EQ(inferredText(NodeCase("Conv", {f32({0, 3, 8, 8}), f32({4, 3, 3, 3})})), "float32[0x4x6x6]");
}

TEST(Conv, Errors) {
  auto conv = [](Shape x, Shape w, graph::Attrs attrs = {}) {
    return inferredText(NodeCase("Conv", {f32(std::move(x)), f32(std::move(w))}, std::move(attrs)));
  };
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 4, 3, 3}), "error: input has 3 channels, weights want 4 (group 1)");
  EXPECT_EQ(conv({1, 4, 8, 8}, {3, 2, 3, 3}, {{"group", integer(2)}}),
            "error: weights have 3 output channels, not divisible by group 2");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"group", integer(0)}}),
            "error: attribute group is 0, expected at least 1");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"strides", ints({0, 1})}}),
            "error: attribute strides is [0, 1], entries must be at least 1");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"dilations", ints({1, -1})}}),
            "error: attribute dilations is [1, -1], entries must be at least 1");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"pads", ints({1, 1})}}),
            "error: attribute pads has 2 entries, expected 4");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"kernel_shape", ints({3, 2})}}),
            "error: attribute kernel_shape is [3, 2], but the weights' kernel is [3, 3]");
  EXPECT_EQ(conv({1, 3, 2, 8}, {4, 3, 3, 3}),
            "error: the window of spatial dim 0 spans 3 elements, the padded input has only 2");
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"auto_pad", text("SOME")}}),
            "error: attribute auto_pad is \"SOME\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  EXPECT_EQ(conv({1, 3}, {4, 3}), "error: the input has no spatial dims (its rank must be at least 3)");
  EXPECT_EQ(conv({1, 3, 8}, {4, 3, 0}), "error: the weights' kernel is empty: [0]");
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const char* key : {"strides", "dilations", "kernel_shape"}) {
    EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{key, ints({kHuge, kHuge})}}).substr(0, 6), "error:") << key;
  }
  EXPECT_EQ(conv({1, 3, 8, 8}, {4, 3, 3, 3}, {{"pads", ints({kHuge, 0, kHuge, 0})}}).substr(0, 6), "error:");
}

TEST(ConvTranspose, InfersAndErrors) {
  auto conv = [](Shape x, Shape w, graph::Attrs attrs = {}) {
    return inferredText(NodeCase("ConvTranspose", {f32(std::move(x)), f32(std::move(w))}, std::move(attrs)));
  };
  EXPECT_EQ(conv({1, 4, 5, 5}, {4, 2, 3, 3}, {{"output_shape", ints({10, 8})}, {"strides", ints({2, 2})}}),
            "float32[1x2x10x8]");
  EXPECT_EQ(conv({1, 4, 5, 5}, {4, 2, 3, 3}, {{"auto_pad", text("SAME_UPPER")}, {"strides", ints({2, 3})}}),
            "float32[1x2x10x15]");
  EXPECT_EQ(conv({1, 4, 5, 5}, {3, 2, 3, 3}), "error: channels of the input: 4 and 3 differ");
  EXPECT_EQ(conv({1, 4, 1, 1}, {4, 2, 1, 1}, {{"pads", ints({2, 2, 2, 2})}}),
            "error: the output would have -3 elements in spatial dim 0");
  EXPECT_EQ(conv({1, 4, 5, 5}, {4, 2, 3, 3}, {{"output_padding", ints({1})}}),
            "error: attribute output_padding has 1 entries, expected 2");
}

TEST(DeformConv, AnInfiniteOffsetIsOutside) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor offset = Tensor::of<float>(DType::F32, {1, 2, 1, 3}, {0, kInf, -kInf, 0, 0, 0.5});
  auto out = outputsOf(NodeCase("DeformConv", {Tensor::of<float>(DType::F32, {1, 1, 1, 3}, {1, 2, 3}),
                                               Tensor::of<float>(DType::F32, {1, 1, 1, 1}, {4}), offset}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 1, 3}, {4, 0, 0});
}

}  // namespace
}  // namespace locution::ops

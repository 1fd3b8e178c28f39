// Windows, Fourier transforms, mel weights and losses.
#include <numbers>

#include "ops/node_case.h"

namespace locution::ops {
namespace {

Tensor window(const std::string& op, int64_t size, int64_t periodic) {
  auto out = outputsOf(NodeCase(op, {Tensor::scalarI64(size)}, {{"periodic", integer(periodic)}}, {true}, {0}));
  return out.empty() ? Tensor() : out[0];
}

TEST(Window, Cosines) {
  expectValues(window("HannWindow", 4, 1), {4}, {0, 0.5, 1, 0.5});
  expectValues(window("HannWindow", 3, 0), {3}, {0, 1, 0});
  expectValues(window("HammingWindow", 4, 1), {4}, {4. / 46, 25. / 46, 1, 25. / 46});
  expectValues(window("BlackmanWindow", 4, 1), {4}, {0, 0.34, 1, 0.34});
  expectValues(window("HannWindow", 0, 1), {0}, {});
}

Tensor dft(const Tensor& x, std::optional<int64_t> length, int64_t axis, graph::Attrs attrs) {
  NodeInput lengthInput;
  if (length) lengthInput = Tensor::scalarI64(*length);
  auto out = outputsOf(NodeCase("DFT", {x, lengthInput, Tensor::scalarI64(axis)}, std::move(attrs), {true}, {1, 2}));
  return out.empty() ? Tensor() : out[0];
}

TEST(DFT, ForwardOfARamp) {
  Tensor x = Tensor::of<float>(DType::F32, {4, 1}, {0, 1, 2, 3});
  expectValues(dft(x, {}, 0, {}), {4, 2}, {6, 0, -2, 2, -2, 0, -2, -2});
  expectValues(dft(x, {}, -2, {{"onesided", integer(1)}}), {3, 2}, {6, 0, -2, 2, -2, 0});
  expectValues(dft(x, 2, 0, {}), {2, 2}, {1, 0, -1, 0});
  expectValues(dft(x, 5, 0, {{"onesided", integer(1)}}).reshaped({6}), {6},
               {6, 0,
                1 * std::cos(0.4 * std::numbers::pi) + 2 * std::cos(0.8 * std::numbers::pi) +
                    3 * std::cos(1.2 * std::numbers::pi),
                -(1 * std::sin(0.4 * std::numbers::pi) + 2 * std::sin(0.8 * std::numbers::pi) +
                  3 * std::sin(1.2 * std::numbers::pi)),
                1 * std::cos(0.8 * std::numbers::pi) + 2 * std::cos(1.6 * std::numbers::pi) +
                    3 * std::cos(2.4 * std::numbers::pi),
                -(1 * std::sin(0.8 * std::numbers::pi) + 2 * std::sin(1.6 * std::numbers::pi) +
                  3 * std::sin(2.4 * std::numbers::pi))});
}

TEST(DFT, InverseGoesBack) {
  for (int64_t length : {5, 8}) {
    Tensor x = pattern({2, length, 1});
    Tensor there = dft(x, {}, 1, {}), back = dft(there, {}, 1, {{"inverse", integer(1)}});
    for (int64_t i = 0; i < x.elements(); ++i) EXPECT_NEAR(back.elementAsDouble(2 * i), x.elementAsDouble(i), 1e-5);
    Tensor half = dft(x, {}, 1, {{"onesided", integer(1)}});
    Tensor real = dft(half, length, 1, {{"onesided", integer(1)}, {"inverse", integer(1)}});
    ASSERT_EQ(real.dims(), x.dims());
    for (int64_t i = 0; i < x.elements(); ++i) EXPECT_NEAR(real.elementAsDouble(i), x.elementAsDouble(i), 1e-5);
  }
}

TEST(STFT, FramesTimesWindow) {
  Tensor x = Tensor::of<float>(DType::F32, {1, 5, 1}, {1, 2, 3, 4, 5}),
         w = Tensor::of<float>(DType::F32, {2}, {1, 0.5});
  auto out = outputsOf(NodeCase("STFT", {x, Tensor::scalarI64(3), w}, {}, {true}, {1}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 2, 2, 2}, {2, 0, 0, 0, 6.5, 0, 1.5, 0});
}

TEST(MelWeightMatrix, Triangles) {
  auto out = outputsOf(NodeCase("MelWeightMatrix",
                                {Tensor::scalarI64(3), Tensor::scalarI64(16), Tensor::scalarI64(8192),
                                 Tensor::scalarF32(0), Tensor::scalarF32(4096)},
                                {}, {true}, {0, 1, 2, 3, 4}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {9, 3},
               {1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0.5, 0.5, 0, 0, 1, 0, 0, 2. / 3, 0, 0, 1. / 3, 0, 0, 0, 0, 0, 0}, 1);
}

TEST(Loss, WeightedMeanIgnoresLabels) {
  // Scores [2, 2, 2], labels with one to be ignored, out of range.
  Tensor x = pattern({2, 2, 2}), labels = Tensor::of<int64_t>(DType::I64, {2, 2}, {0, 1, -1, 1}),
         w = Tensor::of<float>(DType::F32, {2}, {0.25, 2});
  auto score = [&](int64_t n, int64_t c, int64_t d) { return x.elementAsDouble((n * 2 + c) * 2 + d); };
  auto out = outputsOf(NodeCase("NegativeLogLikelihoodLoss", {x, labels, w}, {{"ignore_index", integer(-1)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {}, {-(0.25 * score(0, 0, 0) + 2 * score(0, 1, 1) + 2 * score(1, 1, 1)) / 4.25});

  auto logp = [&](int64_t n, int64_t c, int64_t d) {
    return score(n, c, d) - std::log(std::exp(score(n, 0, d)) + std::exp(score(n, 1, d)));
  };
  auto both = outputsOf(NodeCase("SoftmaxCrossEntropyLoss", {x, labels},
                                 {{"ignore_index", integer(-1)}, {"reduction", text("none")}}, {true, true}));
  ASSERT_EQ(both.size(), 2u);
  expectValues(both[0], {2, 2}, {-logp(0, 0, 0), -logp(0, 1, 1), 0, -logp(1, 1, 1)});
  expectValues(both[1], {2, 2, 2},
               {logp(0, 0, 0), logp(0, 0, 1), logp(0, 1, 0), logp(0, 1, 1), logp(1, 0, 0), logp(1, 0, 1), logp(1, 1, 0),
                logp(1, 1, 1)});
  auto mean =
      outputsOf(NodeCase("SoftmaxCrossEntropyLoss", {x, Tensor::of<int64_t>(DType::I64, {2, 2}, {0, 1, 0, 1})}));
  ASSERT_EQ(mean.size(), 1u);
  expectValues(mean[0], {}, {-(logp(0, 0, 0) + logp(0, 1, 1) + logp(1, 0, 0) + logp(1, 1, 1)) / 4});
}

TEST(Signal, Errors) {
  auto f = [](Shape s) { return typeOf(DType::F32, std::move(s)); };
  auto infer = [](const std::string& op, std::vector<NodeInput> inputs, graph::Attrs attrs = {}) {
    return inferredText(NodeCase(op, std::move(inputs), std::move(attrs), {true}, {0, 1, 2, 3}));
  };
  EXPECT_EQ(infer("DFT", {f({4, 3})}), "error: the last dim of the input is 3, expected 1 (real) or 2 (complex)");
  EXPECT_EQ(infer("DFT", {f({4, 1}), {}, Tensor::scalarI64(1)}),
            "error: axis 1 is the one of real and imaginary parts");
  EXPECT_EQ(infer("DFT", {f({4, 2})}, {{"onesided", integer(1)}}), "error: a one-sided transform takes a real input");
  EXPECT_EQ(infer("DFT", {f({4, 1}), Tensor::scalarI64(0)}), "error: the transform's length is 0, expected at least 1");
  EXPECT_EQ(infer("STFT", {f({1, 5, 1}), Tensor::scalarI64(0), f({2})}), "error: frame_step is 0, expected at least 1");
  EXPECT_EQ(infer("STFT", {f({1, 5, 1}), Tensor::scalarI64(1), f({7})}),
            "error: the frame of 7 is longer than the signal of 5");
  EXPECT_EQ(infer("HannWindow", {Tensor::scalarI64(-1)}), "error: size is -1");
  EXPECT_EQ(infer("NegativeLogLikelihoodLoss", {f({2, 3, 4}), typeOf(DType::I64, {2, 5})}),
            "error: dim 1 of the labels and the scores: 5 and 4 differ");
}

}  // namespace
}  // namespace locution::ops

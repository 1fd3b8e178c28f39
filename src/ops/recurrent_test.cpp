// RNN, GRU, LSTM and LinearAttention against values of ONNX Runtime and of sums written out.
#include "ops/node_case.h"

namespace locution::ops {
namespace {

graph::Attr texts(std::vector<std::string> v) { return graph::Attr(std::move(v)); }

TEST(LSTM, ReverseRaggedWithPeepholesAndClip) {
  Tensor lengths = Tensor::of<int32_t>(DType::I32, {2}, {3, 2});
  auto out = outputsOf(NodeCase("LSTM",
                                {pattern({3, 2, 2}), pattern({1, 8, 2}, 5), pattern({1, 8, 2}, 3), pattern({1, 16}, 9),
                                 lengths, pattern({1, 2, 2}), pattern({1, 2, 2}, 5), pattern({1, 6}, 3)},
                                {{"hidden_size", integer(2)}, {"direction", text("reverse")}, {"clip", number(2)}},
                                {true, true, true}));
  ASSERT_EQ(out.size(), 3u);
  expectValues(out[0], {3, 1, 2, 2},
               {-0.042781, 0.000194642, 0.0281982, 0.000785955, -0.744736, -0.130729, 0.691594, -0.634627, -0.104271,
                -0.0136382, 0, 0});
  expectValues(out[1], {1, 2, 2}, {-0.042781, 0.000194642, 0.0281982, 0.000785955});
  expectValues(out[2], {1, 2, 2}, {-0.375614, 0.00163286, 0.241123, 0.00659352});
}

TEST(GRU, BidirectionalLinearBeforeReset) {
  auto out = outputsOf(
      NodeCase("GRU", {pattern({2, 1, 3}), pattern({2, 6, 3}, 5), pattern({2, 6, 2}, 3), pattern({2, 12}, 9)},
               {{"hidden_size", integer(2)}, {"direction", text("bidirectional")}, {"linear_before_reset", integer(1)}},
               {true, true}));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {2, 2, 1, 2},
               {0.0221297, -0.000430584, -0.0373025, 0.853969, -0.427918, -0.00216485, -0.0372666, -0.182425});
  expectValues(out[1], {2, 1, 2}, {-0.427918, -0.00216485, -0.0373025, 0.853969});
}

TEST(RNN, ActivationWithParameterAndVectorSums) {
  // Nine inputs: a vector of eight and a tail.
  auto out = outputsOf(NodeCase("RNN", {pattern({2, 1, 9}), pattern({1, 2, 9}, 5), pattern({1, 2, 2}, 3)},
                                {{"hidden_size", integer(2)},
                                 {"activations", texts({"LeakyRelu"})},
                                 {"activation_alpha", graph::Attr(std::vector<double>{0.25})}},
                                {true, true}));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {2, 1, 1, 2}, {6, 11, -9, 29.75});
  expectValues(out[1], {1, 1, 2}, {-9, 29.75});
}

TEST(RNN, BatchFirst) {
  Tensor x = pattern({2, 3, 4}), w = pattern({1, 2, 4}, 5), r = pattern({1, 2, 2}, 3), h = pattern({1, 3, 2}, 5);
  auto timeFirst = outputsOf(NodeCase("RNN", {x, w, r, {}, {}, h}, {}, {true, true}));
  auto batchFirst = outputsOf(NodeCase("RNN", {permuted(x, {1, 0, 2}), w, r, {}, {}, permuted(h, {1, 0, 2})},
                                       {{"layout", integer(1)}}, {true, true}));
  ASSERT_TRUE(timeFirst.size() == 2 && batchFirst.size() == 2);
  EXPECT_TRUE(permuted(timeFirst[0], {2, 0, 1, 3}).identical(batchFirst[0]));
  EXPECT_TRUE(permuted(timeFirst[1], {1, 0, 2}).identical(batchFirst[1]));
}

TEST(Recurrent, EveryActivation) {
  // One step of one unit with weight 1: the output is f(x).
  auto f = [](const std::string& name, float x) {
    Tensor one = Tensor::of<float>(DType::F32, {1, 1, 1}, {1}), zero = Tensor(DType::F32, {1, 1, 1});
    auto out = outputsOf(
        NodeCase("RNN", {Tensor::of<float>(DType::F32, {1, 1, 1}, {x}), one, zero}, {{"activations", texts({name})}}));
    return out.empty() ? 0 : out[0].elementAsDouble(0);
  };
  EXPECT_EQ(f("Relu", -2), 0);
  EXPECT_NEAR(f("tanh", 1), std::tanh(1), 1e-6);
  EXPECT_NEAR(f("SIGMOID", 1), 1 / (1 + std::exp(-1)), 1e-6);
  EXPECT_EQ(f("Affine", 3), 3);
  EXPECT_NEAR(f("LeakyRelu", -2), -0.02, 1e-7);
  EXPECT_EQ(f("ThresholdedRelu", 0.5), 0);
  EXPECT_EQ(f("ThresholdedRelu", 1.5), 1.5);
  EXPECT_NEAR(f("ScaledTanh", 1), std::tanh(1), 1e-6);
  EXPECT_NEAR(f("HardSigmoid", 1), 0.7, 1e-6);
  EXPECT_NEAR(f("Elu", -1), std::expm1(-1), 1e-6);
  EXPECT_NEAR(f("Softsign", -3), -0.75, 1e-6);
  EXPECT_NEAR(f("Softplus", 100), 100, 1e-4);
  EXPECT_NEAR(f("Softplus", -1), std::log1p(std::exp(-1)), 1e-6);
}

TEST(Recurrent, InfersAndErrors) {
  auto f = [](Shape s) { return typeOf(DType::F32, std::move(s)); };
  Dim t = Dim::symbol("t");
  NodeCase lstm("LSTM", {f({t, 2, 3}), f({2, 16, 3}), f({2, 16, 4})}, {{"direction", text("bidirectional")}},
                {true, true, true});
  ASSERT_TRUE(lstm.infer().isOk());
  EXPECT_EQ(lstm.output(0).str(), "float32[tx2x2x4]");
  EXPECT_EQ(lstm.output(2).str(), "float32[2x2x4]");
  EXPECT_EQ(inferredText(NodeCase("LSTM", {f({5, 2, 3}), f({1, 16, 4}), f({1, 16, 4})})),
            "error: input 1 (W) has the shape 1x16x4, expected 1x16x3");
  EXPECT_EQ(inferredText(NodeCase("GRU", {f({5, 2, 3}), f({1, 12, 3}), f({1, 12, 4})}, {{"hidden_size", integer(5)}})),
            "error: hidden units of R and attribute hidden_size: 4 and 5 differ");
  EXPECT_EQ(
      inferredText(NodeCase("RNN", {f({5, 2, 3}), f({1, 4, 3}), f({1, 4, 4})}, {{"activations", texts({"Tan"})}})),
      "error: attribute activations names \"Tan\", which is none of ONNX's functions");
  EXPECT_EQ(inferredText(NodeCase("RNN", {f({5, 2, 3}), f({1, 4, 3}), f({1, 4, 4})},
                                  {{"activations", texts({"Tanh", "Tanh"})}})),
            "error: attribute activations has 2 entries, expected 1");
}

TEST(LinearAttention, GatedDeltaByHand) {
  // One head of size one: S = g S + beta * k * (v - g S k), o = q S.
  auto t = [](const std::vector<float>& v) {
    return Tensor::of<float>(DType::F32, {1, static_cast<int64_t>(v.size()), 1}, v);
  };
  auto out = outputsOf(NodeCase(
      "LinearAttention",
      {t({2, 3}), t({1, 0.5}), t({4, 8}), Tensor::of<float>(DType::F32, {1, 1, 1, 1}, {10}), t({-0.5, 0}), t({0.5, 1})},
      {{"q_num_heads", integer(1)}, {"kv_num_heads", integer(1)}, {"scale", number(1)}}, {true, true}));
  ASSERT_EQ(out.size(), 2u);
  double s = 10 * std::exp(-0.5);
  s += 0.5 * (4 - s);
  double first = 2 * s;
  s += 0.5 * (8 - 0.5 * s);
  expectValues(out[0], {1, 2, 1}, {first, 3 * s});
  expectValues(out[1], {1, 1, 1, 1}, {s});
}

TEST(CausalConvWithState, CarriesTheEnd) {
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 2}, {1, 2}),
         w = Tensor::of<float>(DType::F32, {1, 1, 3}, {1, 10, 100});
  Tensor past = Tensor::of<float>(DType::F32, {1, 1, 2}, {5, 7});
  auto out = outputsOf(NodeCase("CausalConvWithState", {x, w, {}, past}, {}, {true, true}));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {1, 1, 2}, {5 + 70 + 100, 7 + 10 + 200});
  expectValues(out[1], {1, 1, 2}, {1, 2});
}

}  // namespace
}  // namespace locution::ops

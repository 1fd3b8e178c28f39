// Attention and RotaryEmbedding against sums written out.
#include <functional>

#include "ops/node_case.h"

namespace locution::ops {
namespace {

/// softmax(scale q k^T + bias) v for [batch, heads, length, size] tensors; kv heads are shared by consecutive query heads.
std::vector<double> attention(
    const Tensor& q, const Tensor& k, const Tensor& v, double scale,
    const std::function<double(int64_t b, int64_t h, int64_t i, int64_t j, double s)>& biased) {
  int64_t heads = q.dims()[1], group = heads / k.dims()[1], length = q.dims()[2], size = q.dims()[3],
          total = k.dims()[2], features = v.dims()[3];
  std::vector<double> out;
  for (int64_t b = 0; b < q.dims()[0]; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      int64_t kv = b * k.dims()[1] + h / group;
      for (int64_t i = 0; i < length; ++i) {
        std::vector<double> p(static_cast<size_t>(total));
        double sum = 0;
        for (int64_t j = 0; j < total; ++j) {
          double s = 0;
          for (int64_t d = 0; d < size; ++d) {
            s += q.elementAsDouble(((b * heads + h) * length + i) * size + d) *
                 k.elementAsDouble((kv * total + j) * size + d);
          }
          p[static_cast<size_t>(j)] = std::exp(biased(b, h, i, j, s * scale));
          sum += p[static_cast<size_t>(j)];
        }
        for (int64_t f = 0; f < features; ++f) {
          double o = 0;
          for (int64_t j = 0; j < total; ++j)
            o += p[static_cast<size_t>(j)] * v.elementAsDouble((kv * total + j) * features + f);
          out.push_back(sum == 0 ? 0 : o / sum);
        }
      }
    }
  }
  return out;
}

const double kInfinity = std::numeric_limits<double>::infinity();

TEST(Attention, GroupedQueriesCausalSoftcap) {
  Tensor q = pattern({2, 4, 3, 2}), k = pattern({2, 2, 3, 2}, 5), v = pattern({2, 2, 3, 5}, 3);
  auto out = outputsOf(
      NodeCase("Attention", {q, k, v}, {{"is_causal", integer(1)}, {"softcap", number(2)}, {"scale", number(0.5)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {2, 4, 3, 5}, attention(q, k, v, 0.5, [](int64_t, int64_t, int64_t i, int64_t j, double s) {
                 return j > i ? -kInfinity : 2 * std::tanh(s / 2);
               }));
}

TEST(Attention, ThreeDimsAreHeadsSideBySide) {
  Tensor q = pattern({2, 2, 3, 4}), k = pattern({2, 2, 5, 4}, 5), v = pattern({2, 2, 5, 3}, 3);
  auto flat = [](const Tensor& t) {
    return permuted(t, {0, 2, 1, 3}).reshaped({t.dims()[0], t.dims()[2], t.dims()[1] * t.dims()[3]});
  };
  auto wide = outputsOf(NodeCase("Attention", {q, k, v}));
  auto narrow = outputsOf(
      NodeCase("Attention", {flat(q), flat(k), flat(v)}, {{"q_num_heads", integer(2)}, {"kv_num_heads", integer(2)}}));
  ASSERT_TRUE(wide.size() == 1 && narrow.size() == 1);
  EXPECT_TRUE(flat(wide[0]).identical(narrow[0]));
}

TEST(Attention, CacheMaskAndFullyMaskedRow) {
  Tensor q = pattern({1, 1, 2, 2}), k = pattern({1, 1, 2, 2}, 5), v = pattern({1, 1, 2, 2}, 3),
         pk = pattern({1, 1, 1, 2}, 9), pv = pattern({1, 1, 1, 2}, 2);
  // Shorter than the keys by one, which is masked; the second row is masked throughout.
  Tensor mask = Tensor::of<uint8_t>(DType::Bool, {2, 2}, {1, 1, 0, 0});
  auto out = outputsOf(NodeCase("Attention", {q, k, v, mask, pk, pv}, {{"is_causal", integer(1)}}, {true, true, true}));
  ASSERT_EQ(out.size(), 3u);
  Tensor keys(DType::F32, {1, 1, 3, 2}), values(DType::F32, {1, 1, 3, 2});
  for (int64_t i = 0; i < 6; ++i) {
    keys.setElement(i, i < 2 ? pk.elementAsDouble(i) : k.elementAsDouble(i - 2));
    values.setElement(i, i < 2 ? pv.elementAsDouble(i) : v.elementAsDouble(i - 2));
  }
  EXPECT_TRUE(out[1].identical(keys));
  EXPECT_TRUE(out[2].identical(values));
  expectValues(out[0], {1, 1, 2, 2},
               attention(q, keys, values, 1 / std::sqrt(2.), [](int64_t, int64_t, int64_t i, int64_t j, double s) {
                 return i == 0 && j < 2 ? s : -kInfinity;
               }));
  EXPECT_EQ(out[0].elementAsDouble(2), 0);
}

TEST(Attention, LengthsOfABatchAndScores) {
  Tensor q = pattern({2, 1, 1, 2}), k = pattern({2, 1, 3, 2}, 5), v = pattern({2, 1, 3, 1}, 3);
  auto out = outputsOf(NodeCase("Attention", {q, k, v, {}, {}, {}, Tensor::vectorI64({2, 1})},
                                {{"qk_matmul_output_mode", integer(3)}}, {true, false, false, true}));
  ASSERT_EQ(out.size(), 2u);
  expectValues(out[0], {2, 1, 1, 1},
               attention(q, k, v, 1 / std::sqrt(2.), [](int64_t b, int64_t, int64_t, int64_t j, double s) {
                 return j < (b == 0 ? 2 : 1) ? s : -kInfinity;
               }));
  EXPECT_EQ(out[1].elementAsDouble(2), 0);
  EXPECT_NEAR(out[1].elementAsDouble(0) + out[1].elementAsDouble(1), 1, 1e-6);
  EXPECT_EQ(out[1].elementAsDouble(3), 1);
}

TEST(Attention, TheFirstOutputLeftOut) {
  Tensor q = pattern({1, 1, 2, 2}), k = pattern({1, 1, 2, 2}, 5), v = pattern({1, 1, 2, 2}, 3);
  auto out = outputsOf(NodeCase("Attention", {q, k, v, {}, k, v}, {}, {false, true, true}));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].dims(), (std::vector<int64_t>{1, 1, 4, 2}));
}
TEST(Attention, InfersAndErrors) {
  auto f = [](Shape s) { return typeOf(DType::F32, std::move(s)); };
  Dim t = Dim::symbol("t"), p = Dim::symbol("p");
  NodeCase node("Attention",
                {f({1, 8, t, 64}), f({1, 2, t, 64}), f({1, 2, t, 32}), {}, f({1, 2, p, 64}), f({1, 2, p, 32})}, {},
                {true, true});
  ASSERT_TRUE(node.infer().isOk());
  EXPECT_EQ(node.output(0).str(), "float32[1x8xtx32]");
  EXPECT_EQ(node.output(1).shape[2], p + t);
  EXPECT_EQ(inferredText(NodeCase("Attention", {f({1, 3, 4, 8}), f({1, 2, 4, 8}), f({1, 2, 4, 8})})),
            "error: Q has 3 heads, not a multiple of the 2 of K and V");
  EXPECT_EQ(inferredText(NodeCase("Attention", {f({1, 4, 8}), f({1, 4, 8}), f({1, 4, 8})})),
            "error: 3-D inputs need the attributes q_num_heads and kv_num_heads of at least 1");
  EXPECT_EQ(inferredText(NodeCase("Attention", {f({1, 2, 4, 8}), f({1, 2, 4, 8}), f({1, 2, 4, 8}), f({4, 5})})),
            "error: attn_mask of shape 4x5 can't be broadcast to 1x2x4x4");
  EXPECT_EQ(
      inferredText(NodeCase("Attention", {f({1, 2, 4, 8}), f({1, 2, 4, 8}), f({1, 2, 4, 8}), {}, f({1, 2, 1, 8})})),
      "error: past_key and past_value must be given together");
}

TEST(RotaryEmbedding, TurnsPairs) {
  Tensor cosine = Tensor::of<float>(DType::F32, {2, 1}, {1, 0}), sine = Tensor::of<float>(DType::F32, {2, 1}, {0, 1});
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  graph::Attrs attrs{{"rotary_embedding_dim", integer(2)}};
  // The second token is turned by a right angle, the third feature not at all.
  auto out =
      outputsOf(NodeCase("RotaryEmbedding", {x, cosine, sine, Tensor::of<int64_t>(DType::I64, {1, 2}, {0, 1})}, attrs));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1, 2, 3}, {1, 2, 3, -5, 4, 6});
}

TEST(RotaryEmbedding, InterleavedAndFlat) {
  Tensor cosine = Tensor::of<float>(DType::F32, {1, 1, 2}, {0, 1}),
         sine = Tensor::of<float>(DType::F32, {1, 1, 2}, {1, 0});
  Tensor x = Tensor::of<float>(DType::F32, {1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto halves = outputsOf(NodeCase("RotaryEmbedding", {x, cosine, sine}, {{"num_heads", integer(2)}}));
  auto pairs = outputsOf(
      NodeCase("RotaryEmbedding", {x, cosine, sine}, {{"num_heads", integer(2)}, {"interleaved", integer(1)}}));
  ASSERT_TRUE(halves.size() == 1 && pairs.size() == 1);
  expectValues(halves[0], {1, 1, 8}, {-3, 2, 1, 4, -7, 6, 5, 8});
  expectValues(pairs[0], {1, 1, 8}, {-2, 1, 3, 4, -6, 5, 7, 8});
}

}  // namespace
}  // namespace locution::ops

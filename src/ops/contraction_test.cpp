// MatMul, Gemm and Einsum against values of ONNX Runtime.
#include "ops/node_case.h"

namespace locution::ops {
namespace {

TEST(MatMul, BroadcastsBatches) {
  auto out = outputsOf(NodeCase("MatMul", {pattern({2, 1, 2, 3}), pattern({3, 3, 2}, 5)}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {2, 3, 2, 2}, {6.75, 0.5, -8,  1.25, -3.25, 4.25, 3.5, -1, 0.5, -5.75, 1.25, 5,
                                      -9,   2,   -10, 2.75, 2,     2,    0.5, 5,  2,   2,     2.75, -1});
}

TEST(MatMul, VectorsLoseTheirDim) {
  Tensor v = Tensor::of<float>(DType::F32, {3}, {1, 2, 3}),
         m = Tensor::of<float>(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  auto left = outputsOf(NodeCase("MatMul", {v, m})), dot = outputsOf(NodeCase("MatMul", {v, v}));
  ASSERT_TRUE(left.size() == 1 && dot.size() == 1);
  expectValues(left[0], {2}, {22, 28});
  expectValues(dot[0], {}, {14});
}

TEST(MatMul, EmptySumIsZero) {
  auto out = outputsOf(NodeCase("MatMul", {Tensor(DType::F32, {2, 0}), Tensor(DType::F32, {0, 2})}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {2, 2}, {0, 0, 0, 0});
}

TEST(MatMul, HalfAccumulatesInFloat) {
  // A float16 sum of ones stops at 2048.
  Tensor a(DType::F16, {1, 4096}), b(DType::F16, {4096, 1});
  for (int64_t i = 0; i < 4096; ++i) {
    a.setElement(i, 1);
    b.setElement(i, 1);
  }
  auto out = outputsOf(NodeCase("MatMul", {a, b}));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].elementAsDouble(0), 4096);
}

TEST(MatMul, IsOneContraction) {
  NodeCase node("MatMul", {pattern({2, 4, 3}), pattern({3, 5})});
  auto c = node.computation();
  ASSERT_TRUE(c.isOk()) << c.status().message();
  ASSERT_EQ(c->stages.size(), 1u);
  EXPECT_EQ(c->stages[0].combiner, loop::Combiner::Sum);
  EXPECT_EQ(c->stages[0].axes.size(), 3u);
  EXPECT_EQ(c->stages[0].reduce.size(), 1u);
  EXPECT_EQ(c->stages[0].epilogue, nullptr);
}

TEST(MatMul, Infers) {
  Dim b = Dim::symbol("b");
  EXPECT_EQ(inferredText(NodeCase("MatMul", {typeOf(DType::F32, {b, 1, 4}), typeOf(DType::F32, {4, 5})})),
            "float32[bx1x5]");
  EXPECT_EQ(inferredText(NodeCase("MatMul", {typeOf(DType::F32, Shape::unranked()), typeOf(DType::F32, {4, 5})})),
            "float32[?]");
  EXPECT_EQ(inferredText(NodeCase("MatMul", {typeOf(DType::F32, {2, 3}), typeOf(DType::F32, {4, 5})})),
            "error: shapes 2x3 and 4x5 don't fit: the inner dims are 3 and 4");
  EXPECT_EQ(inferredText(NodeCase("MatMul", {typeOf(DType::F32, Shape{}), typeOf(DType::F32, {4, 5})})).substr(0, 6),
            "error:");
  EXPECT_EQ(inferredText(NodeCase("MatMul", {typeOf(DType::F32, {2, 3})})).substr(0, 6), "error:");
}

TEST(Gemm, TransposedScaledAndBroadcast) {
  auto out = outputsOf(
      NodeCase("Gemm", {pattern({3, 2}), pattern({4, 3}, 5), pattern({4}, 3)},
               {{"transA", integer(1)}, {"transB", integer(1)}, {"alpha", number(0.5)}, {"beta", number(2)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {2, 4}, {-1.25, -2.625, 0.125, 5.625, -8.125, 1, -0.875, 5.5});
}

TEST(Gemm, Integers) {
  Tensor a = Tensor::of<int32_t>(DType::I32, {1, 2}, {3, 5}), b = Tensor::of<int32_t>(DType::I32, {2, 1}, {7, -2});
  auto out = outputsOf(NodeCase("Gemm", {a, b}, {{"alpha", number(0.5)}}));
  ASSERT_EQ(out.size(), 1u);
  expectValues(out[0], {1, 1}, {5});  // 5.5 truncated
}

TEST(Gemm, Errors) {
  auto f = [](Shape s) { return typeOf(DType::F32, std::move(s)); };
  EXPECT_EQ(inferredText(NodeCase("Gemm", {f({2, 3}), f({3, 4}), f({3})})),
            "error: C of shape 3 can't be broadcast to 2x4");
  EXPECT_EQ(inferredText(NodeCase("Gemm", {f({2, 3}), f({3, 4}), f({1, 2, 4})})),
            "error: C of shape 1x2x4 can't be broadcast to 2x4");
  EXPECT_EQ(inferredText(NodeCase("Gemm", {f({2, 3}), f({4, 3})})),
            "error: shapes 2x3 (transA 0) and 4x3 (transB 0) don't fit: the inner dims are 3 and 4");
}

Tensor einsum(const std::string& equation, std::vector<NodeInput> inputs) {
  auto out = outputsOf(NodeCase("Einsum", std::move(inputs), {{"equation", text(equation)}}));
  return out.empty() ? Tensor() : out[0];
}

TEST(Einsum, Forms) {
  Tensor a = Tensor::of<float>(DType::F32, {2, 2}, {1, 2, 3, 4}), v = Tensor::of<float>(DType::F32, {2}, {10, 100});
  expectValues(einsum("ii->i", {a}), {2}, {1, 4});
  expectValues(einsum("ii", {a}), {}, {5});
  expectValues(einsum("ji", {a}), {2, 2}, {1, 3, 2, 4});
  expectValues(einsum(" i , j -> i j ", {v, v}), {2, 2}, {100, 1000, 1000, 10000});
  expectValues(einsum("ij,j", {a, v}), {2}, {210, 430});
  expectValues(einsum("...j,j->...", {a, v}), {2}, {210, 430});
  expectValues(einsum("ij,jk,kl->il", {a, a, a}), {2, 2}, {37, 54, 81, 118});
  expectValues(einsum("i,ij,ij->", {v, a, a}), {}, {10 * 5 + 100 * 25});
  expectValues(einsum("...i->...", {a}), {2}, {3, 7});
}

TEST(Einsum, BroadcastsOnes) {
  Tensor column = Tensor::of<float>(DType::F32, {2, 1}, {1, 2}),
         a = Tensor::of<float>(DType::F32, {2, 2}, {1, 2, 3, 4});
  expectValues(einsum("ij,jk->ik", {column, a}), {2, 2}, {4, 6, 8, 12});
}

TEST(Einsum, Errors) {
  auto f = [](Shape s) { return typeOf(DType::F32, std::move(s)); };
  auto infer = [](const std::string& equation, std::vector<NodeInput> inputs) {
    return inferredText(NodeCase("Einsum", std::move(inputs), {{"equation", text(equation)}}));
  };
  EXPECT_EQ(infer("ij,jk->ik", {f({2, 3})}), "error: the equation has 2 terms, there are 1 operands");
  EXPECT_EQ(infer("ijk->ik", {f({2, 3})}), "error: the term \"ijk\" doesn't fit operand 0 of rank 2");
  EXPECT_EQ(infer("ij->ii", {f({2, 3})}), "error: the output repeats 'i'");
  EXPECT_EQ(infer("ij->k", {f({2, 3})}), "error: the output names 'k', which no operand has");
  EXPECT_EQ(infer("i.j->i", {f({2, 3})}), "error: a misplaced '.' in the term \"i.j\"");
  EXPECT_EQ(infer("i1->i", {f({2, 3})}), "error: the character \"1\" in the term \"i1\"");
  EXPECT_EQ(infer("ij,jk->ik", {f({2, 3}), f({4, 5})}), "error: operand 1 has 4 elements at 'j', another has 3");
  EXPECT_EQ(infer("...ij->...", {f({7, 2, 3})}), "float32[7]");
}

}  // namespace
}  // namespace locution::ops

// Sequences, optionals, random numbers, determinants.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hostops/test_calls.h"

namespace locution::hostops {
namespace {

HostValue numbers(int n) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < n; ++i) tensors.push_back(f32({2}, {static_cast<float>(i), static_cast<float>(i) + 0.5F}));
  return HostValue::ofSequence(DType::F32, tensors);
}

TEST(Sequence, InsertEraseAtLength) {
  HostValue three = numbers(3);
  Tensor x = f32({1}, {9});
  auto at = [&](int64_t p) { return call("SequenceInsert", {three, x, Tensor::scalarI64(p)}).outputs[0].sequence; };
  expectTensor(at(0)[0], x);
  expectTensor(at(-1)[2], x);
  expectTensor(at(3)[3], x);
  expectTensor(call("SequenceInsert", {three, x}).outputs[0].sequence[3], x);
  EXPECT_EQ(call("SequenceInsert", {three, x, Tensor::scalarI64(4)}).message(),
            "position 4 is out of range for a sequence of 3");
  EXPECT_EQ(call("SequenceInsert", {three, i64({1}, {1})}).message(), "a tensor of int64 in a sequence of float32");
  expectTensor(call("SequenceAt", {three, Tensor::scalarI64(-1)}).tensor(), three.sequence[2]);
  EXPECT_EQ(call("SequenceAt", {three, Tensor::scalarI64(3)}).message(),
            "position 3 is out of range for a sequence of 3");
  EXPECT_EQ(call("SequenceErase", {three}).outputs[0].sequence.size(), 2U);
  expectTensor(call("SequenceErase", {three, Tensor::scalarI64(0)}).outputs[0].sequence[0], three.sequence[1]);
  EXPECT_FALSE(call("SequenceErase", {numbers(0)}).status.isOk());
  expectTensor(call("SequenceLength", {three}).tensor(), i64({}, {3}));
  EXPECT_EQ(call("SequenceLength", {x}).message(), "input 0 must be a sequence, but is a tensor");
}

TEST(Sequence, ConstructAndConcat) {
  auto built = call("SequenceConstruct", {f32({1, 2}, {1, 2}), f32({2, 2}, {3, 4, 5, 6})}).outputs[0];
  expectTensor(call("ConcatFromSequence", {built}, {{"axis", int64_t{0}}}).tensor(), f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  expectTensor(call("ConcatFromSequence", {numbers(2)}, {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}}).tensor(),
               f32({2, 2}, {0, 1, 0.5F, 1.5F}));
  EXPECT_FALSE(call("ConcatFromSequence", {numbers(0)}, {{"axis", int64_t{0}}}).status.isOk());
  auto empty = call("SequenceEmpty", {}, {{"dtype", std::string("int64")}}).outputs[0];
  EXPECT_TRUE(empty.isSequence() && empty.sequence.empty());
  EXPECT_EQ(empty.dtype, DType::I64);
}

TEST(Sequence, Split) {
  Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  auto parts = call("SplitToSequence", {x}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}).outputs[0].sequence;
  ASSERT_EQ(parts.size(), 3U);
  expectTensor(parts[1], f32({2}, {3, 4}));
  parts = call("SplitToSequence", {x, Tensor::scalarI64(2)}).outputs[0].sequence;
  ASSERT_EQ(parts.size(), 2U);
  expectTensor(parts[1], f32({1, 2}, {5, 6}));
  parts = call("SplitToSequence", {x, i64({2}, {1, 2})}).outputs[0].sequence;
  expectTensor(parts[0], f32({1, 2}, {1, 2}));
  EXPECT_EQ(call("SplitToSequence", {x, i64({2}, {1, 1})}).message(), "the parts hold 2 of the 3 elements of axis 0");
  EXPECT_FALSE(call("SplitToSequence", {x, Tensor::scalarI64(0)}).status.isOk());
}

TEST(Optional, HasAndGet) {
  auto has = [](const std::vector<HostValue>& in) { return call("OptionalHasElement", in).tensor().elementAsInt(0); };
  EXPECT_EQ(has({}), 0);
  EXPECT_EQ(has({HostValue()}), 0);
  EXPECT_EQ(has({HostValue::emptyOptional()}), 0);
  EXPECT_EQ(has({f32({1}, {0})}), 1);
  EXPECT_EQ(has({numbers(0)}), 1);
  EXPECT_EQ(call("Optional", {}).outputs[0].form, HostValue::Form::EmptyOptional);
  expectTensor(call("OptionalGetElement", {call("Optional", {f32({1}, {3})}).outputs[0]}).tensor(), f32({1}, {3}));
  EXPECT_EQ(call("OptionalGetElement", {HostValue::emptyOptional()}).message(), "the optional is empty");
}

TEST(Random, SeededAndSpread) {
  Attrs attrs = {{"shape", std::vector<int64_t>{10000}}, {"seed", 5.0}, {"mean", 2.0}, {"scale", 3.0}};
  Tensor a = call("RandomNormal", {}, attrs).tensor(), b = call("RandomNormal", {}, attrs).tensor();
  EXPECT_TRUE(a.identical(b));
  attrs["seed"] = 6.0;
  EXPECT_FALSE(a.identical(call("RandomNormal", {}, attrs).tensor()));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    sum += a.data<float>()[i];
    squares += static_cast<double>(a.data<float>()[i]) * static_cast<double>(a.data<float>()[i]);
  }
  double mean = sum / 10000, deviation = std::sqrt(squares / 10000 - mean * mean);
  EXPECT_NEAR(mean, 2, 0.1);
  EXPECT_NEAR(deviation, 3, 0.1);
  Tensor u = call("RandomUniformLike", {Tensor(DType::F64, {1000})}, {{"low", -1.0}, {"high", 1.0}}).tensor();
  EXPECT_EQ(u.dtype(), DType::F64);
  std::set<double> distinct;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(u.data<double>()[i] >= -1 && u.data<double>()[i] < 1);
    distinct.insert(u.data<double>()[i]);
  }
  EXPECT_EQ(distinct.size(), 1000U);
}

TEST(Random, BernoulliAndMultinomial) {
  Tensor p(DType::F32, {4000});
  for (int64_t i = 0; i < 4000; ++i) p.data<float>()[i] = i < 2000 ? 0.25F : static_cast<float>(i % 2);
  Tensor y = call("Bernoulli", {p}, {{"dtype", std::string("int32")}}).tensor();
  int64_t ones = 0;
  for (int64_t i = 0; i < 2000; ++i) ones += y.elementAsInt(i);
  EXPECT_NEAR(static_cast<double>(ones), 500, 80);
  for (int64_t i = 2000; i < 4000; ++i) EXPECT_EQ(y.elementAsInt(i), i % 2);
  Tensor draws =
      call("Multinomial", {f32({2, 3}, {-1e30F, 0, -1e30F, 0, 0, -1e30F})}, {{"sample_size", int64_t{1000}}}).tensor();
  EXPECT_EQ(draws.dtype(), DType::I32);
  int64_t first = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(draws.elementAsInt(i), 1);
    EXPECT_LT(draws.elementAsInt(1000 + i), 2);
    first += draws.elementAsInt(1000 + i);
  }
  EXPECT_NEAR(static_cast<double>(first), 500, 80);
}

TEST(Det, Matrices) {
  expectTensor(call("Det", {f32({2, 2}, {0, 1, 2, 3})}).tensor(), f32({}, {-2}));
  expectTensor(call("Det", {f32({3, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1})}).tensor(), f32({3}, {-2, -3, -8}));
  expectTensor(call("Det", {f32({1, 3, 3}, {1, 2, 3, 2, 4, 6, 1, 1, 1})}).tensor(), f32({1}, {0}));
  EXPECT_EQ(call("Det", {f32({2, 1}, {0, 1})}).message(), "the input must be square matrices, but is 2x1");
}

}  // namespace
}  // namespace locution::hostops

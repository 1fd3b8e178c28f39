// Operators that move elements, on strings, on packed types and on numbers.
#include <gtest/gtest.h>

#include <limits>

#include "hostops/test_calls.h"

namespace locution::hostops {
namespace {

const Tensor kLetters = text({2, 3}, {"a", "b", "c", "d", "e", "f"});

TEST(Movement, TransposeExpandTile) {
  expectTensor(call("Transpose", {kLetters}).tensor(), text({3, 2}, {"a", "d", "b", "e", "c", "f"}));
  expectTensor(call("Transpose", {f32({1, 2, 2}, {1, 2, 3, 4})}, {{"perm", ints({2, 0, 1})}}).tensor(),
               f32({2, 1, 2}, {1, 3, 2, 4}));
  EXPECT_FALSE(call("Transpose", {kLetters}, {{"perm", ints({0, 0})}}).status.isOk());
  EXPECT_FALSE(call("Transpose", {kLetters}, {{"perm", ints({0})}}).status.isOk());
  expectTensor(call("Expand", {text({2, 1}, {"a", "b"}), i64({3}, {2, 1, 2})}).tensor(),
               text({2, 2, 2}, {"a", "a", "b", "b", "a", "a", "b", "b"}));
  expectTensor(call("Tile", {text({2}, {"a", "b"}), i64({1}, {2})}).tensor(), text({4}, {"a", "b", "a", "b"}));
  expectTensor(call("Tile", {f32({1, 2}, {1, 2}), i64({2}, {2, 1})}).tensor(), f32({2, 2}, {1, 2, 1, 2}));
  EXPECT_FALSE(call("Tile", {f32({1}, {1}), i64({1}, {std::numeric_limits<int64_t>::max()})}).status.isOk());
}

TEST(Movement, Slice) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  expectTensor(call("Slice", {kLetters, i64({1}, {1}), i64({1}, {kMax}), i64({1}, {1})}).tensor(),
               text({2, 2}, {"b", "c", "e", "f"}));
  expectTensor(call("Slice", {kLetters, i64({1}, {-1}), i64({1}, {kMin}), i64({1}, {-1}), i64({1}, {-2})}).tensor(),
               text({2, 2}, {"c", "a", "f", "d"}));
  expectTensor(call("Slice", {kLetters, i64({1}, {5}), i64({1}, {9})}).tensor(), text({0, 3}, {}));
  expectTensor(
      call("Slice", {f32({3}, {1, 2, 3}), i64({1}, {0}), i64({1}, {3}), i64({1}, {0}), i64({1}, {kMax})}).tensor(),
      f32({1}, {1}));
  expectTensor(
      call("Slice", {f32({3}, {1, 2, 3}), i64({1}, {2}), i64({1}, {-4}), i64({1}, {0}), i64({1}, {kMin})}).tensor(),
      f32({1}, {3}));
  EXPECT_EQ(call("Slice", {kLetters, i64({1}, {0}), i64({1}, {1}), i64({1}, {0}), i64({1}, {0})}).message(),
            "a step of 0 along axis 0");
}

TEST(Movement, ConcatSplit) {
  expectTensor(call("Concat", {kLetters, text({2, 1}, {"x", "y"})}, {{"axis", int64_t{1}}}).tensor(),
               text({2, 4}, {"a", "b", "c", "x", "d", "e", "f", "y"}));
  EXPECT_EQ(call("Concat", {kLetters, text({1, 1}, {"x"})}, {{"axis", int64_t{1}}}).message(),
            "string[2x3] and string[1x1] can't be joined along axis 1");
  auto halves = call("Split", {f32({5}, {1, 2, 3, 4, 5})}, {{"num_outputs", int64_t{2}}}, 2);
  expectTensor(halves.tensor(0), f32({3}, {1, 2, 3}));
  expectTensor(halves.tensor(1), f32({2}, {4, 5}));
  expectTensor(call("Split", {kLetters, i64({2}, {1, 2})}, {{"axis", int64_t{-1}}}, 2).tensor(1),
               text({2, 2}, {"b", "c", "e", "f"}));
  EXPECT_FALSE(call("Split", {kLetters, i64({2}, {1, 3})}, {{"axis", int64_t{-1}}}, 2).status.isOk());
  EXPECT_FALSE(call("Split", {kLetters, i64({2}, {-1, 4})}, {{"axis", int64_t{-1}}}, 2).status.isOk());
}

TEST(Movement, WhereEqual) {
  expectTensor(call("Where", {boolean({2, 1}, {1, 0}), text({2}, {"a", "b"}), text({}, {"z"})}).tensor(),
               text({2, 2}, {"a", "b", "z", "z"}));
  expectTensor(call("Equal", {text({2, 1}, {"a", "b"}), text({2}, {"a", "b"})}).tensor(),
               boolean({2, 2}, {1, 0, 0, 1}));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  expectTensor(call("Equal", {f32({3}, {0, kNan, 1}), f32({3}, {-0.0F, kNan, 2})}).tensor(), boolean({3}, {1, 0, 0}));
}

TEST(Movement, Reshape) {
  expectTensor(call("Reshape", {kLetters, i64({2}, {-1, 2})}).tensor(), text({3, 2}, {"a", "b", "c", "d", "e", "f"}));
  expectTensor(call("Reshape", {kLetters, i64({2}, {0, -1})}).tensor(), kLetters);
  expectTensor(call("Reshape", {Tensor(DType::F32, {0, 3}), i64({2}, {3, 0})}, {{"allowzero", int64_t{1}}}).tensor(),
               Tensor(DType::F32, {3, 0}));
  EXPECT_EQ(call("Reshape", {kLetters, i64({2}, {4, -1})}).message(), "2x3 can't be reshaped to 4x-1");
  EXPECT_FALSE(call("Reshape", {kLetters, i64({2}, {-1, -1})}).status.isOk());
  EXPECT_FALSE(call("Reshape", {kLetters, i64({3}, {2, 3, 0})}).status.isOk());
  expectTensor(call("Flatten", {kLetters}, {{"axis", int64_t{0}}}).tensor(),
               text({1, 6}, {"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(call("Squeeze", {f32({1, 2, 1}, {1, 2})}).tensor().dims(), std::vector<int64_t>{2});
  EXPECT_EQ(call("Squeeze", {f32({1, 2, 1}, {1, 2}), i64({1}, {-1})}).tensor().dims(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(call("Squeeze", {kLetters, i64({1}, {0})}).message(), "axis 0 has 2 elements, not 1");
  EXPECT_EQ(call("Unsqueeze", {kLetters, i64({2}, {0, -1})}).tensor().dims(), (std::vector<int64_t>{1, 2, 3, 1}));
  EXPECT_FALSE(call("Unsqueeze", {kLetters, i64({2}, {0, 0})}).status.isOk());
  expectTensor(call("Shape", {kLetters}, {{"start", int64_t{-1}}}).tensor(), i64({1}, {3}));
  expectTensor(call("Size", {kLetters}).tensor(), i64({}, {6}));
}

TEST(Movement, Gather) {
  expectTensor(call("Gather", {kLetters, i64({2}, {-1, 0})}, {{"axis", int64_t{1}}}).tensor(),
               text({2, 2}, {"c", "a", "f", "d"}));
  expectTensor(call("Gather", {kLetters, i64({}, {1})}).tensor(), text({3}, {"d", "e", "f"}));
  EXPECT_EQ(call("Gather", {kLetters, i64({1}, {2})}).message(), "index 2 is out of range for 2 elements");
  expectTensor(call("GatherElements", {kLetters, i64({1, 3}, {1, 0, -1})}).tensor(), text({1, 3}, {"d", "b", "f"}));
  expectTensor(call("GatherND", {kLetters, i64({2, 2}, {0, 0, 1, -1})}).tensor(), text({2}, {"a", "f"}));
  expectTensor(call("GatherND", {kLetters, i64({1, 1}, {1})}).tensor(), text({1, 3}, {"d", "e", "f"}));
  expectTensor(
      call("GatherND", {f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), i64({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}})
          .tensor(),
      f32({2, 2}, {2, 3, 4, 5}));
  EXPECT_FALSE(call("GatherND", {kLetters, i64({1, 2}, {0, 3})}).status.isOk());
}

TEST(Movement, TuplesOfIndicesByComponent) {
  const Attrs attrs{{"value", std::string("i")}, {"low", ints({-4, -2})}, {"high", ints({3, 1})}};
  auto message = [&](const Tensor& t) { return call("CheckIndexTuples", {t}, attrs, 0).message(); };
  EXPECT_TRUE(call("CheckIndexTuples", {i64({2, 2}, {3, 1, -4, -2})}, attrs, 0).status.isOk());
  EXPECT_EQ(message(i64({2, 2}, {3, 1, -5, 0})), "element 2 of \"i\" (component 0) is -5, outside [-4, 3]");
  EXPECT_EQ(message(i64({2, 2}, {3, 1, 3, 2})), "element 3 of \"i\" (component 1) is 2, outside [-2, 1]");
  EXPECT_EQ(message(i64({1, 3}, {0, 0, 0})), "ranges of 2 components for indices of 1x3");
}

TEST(Movement, PackedTypes) {
  Tensor x(DType::I4, {5});
  for (int64_t i = 0; i < 5; ++i) x.setElementInt(i, i - 2);
  Tensor y = call("Slice", {x, i64({1}, {1}), i64({1}, {5})}).tensor();
  ASSERT_EQ(y.elements(), 4);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.elementAsInt(i), i - 1);
  Tensor z = call("Concat", {y, x}, {{"axis", int64_t{0}}}).tensor();
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(z.elementAsInt(i), i < 4 ? i - 1 : i - 6);
}

TEST(Table, EveryOperatorIsFound) {
  for (const HostOp& op : allHostOps()) EXPECT_EQ(findHostOp(op.name), &op);
  EXPECT_EQ(findHostOp("Conv"), nullptr);
}

}  // namespace
}  // namespace locution::hostops

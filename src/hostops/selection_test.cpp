// NonZero, Compress, TopK, Unique, NonMaxSuppression against values that numpy and ONNX's examples give.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hostops/test_calls.h"

namespace locution::hostops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NonZero, Positions) {
  expectTensor(call("NonZero", {f32({2, 2}, {1, 0, 1, 1})}).tensor(), i64({2, 3}, {0, 1, 1, 0, 0, 1}));
  expectTensor(call("NonZero", {f32({3}, {kNan, -0.0F, 2})}).tensor(), i64({1, 2}, {0, 2}));
  expectTensor(call("NonZero", {f32({}, {3})}).tensor(), i64({0, 1}, {}));
  expectTensor(call("NonZero", {boolean({4}, {0, 0, 0, 0})}).tensor(), i64({1, 0}, {}));
  expectTensor(call("NonZero", {text({3}, {"", "a", ""})}).tensor(), i64({1, 1}, {1}));
  expectTensor(call("NonZero", {Tensor(DType::F32, {2, 0, 3})}).tensor(), i64({3, 0}, {}));
}

TEST(Compress, AlongAxes) {
  Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  expectTensor(call("Compress", {x, boolean({3}, {0, 1, 1})}, {{"axis", int64_t{0}}}).tensor(),
               f32({2, 2}, {3, 4, 5, 6}));
  expectTensor(call("Compress", {x, boolean({2}, {0, 1})}, {{"axis", int64_t{1}}}).tensor(), f32({3, 1}, {2, 4, 6}));
  expectTensor(call("Compress", {x, boolean({2}, {0, 1})}, {{"axis", int64_t{-1}}}).tensor(), f32({3, 1}, {2, 4, 6}));
  expectTensor(call("Compress", {x, boolean({5}, {0, 1, 0, 0, 1})}).tensor(), f32({2}, {2, 5}));
  expectTensor(call("Compress", {x, boolean({1}, {1})}, {{"axis", int64_t{0}}}).tensor(), f32({1, 2}, {1, 2}));
  EXPECT_EQ(call("Compress", {x, boolean({1}, {1})}, {{"axis", int64_t{2}}}).message(),
            "axis 2 is out of range for rank 2");
}

TEST(TopK, LargestAndSmallest) {
  Tensor x = f32({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto top = call("TopK", {x, i64({1}, {3})}, {{"axis", int64_t{1}}}, 2);
  expectTensor(top.tensor(0), f32({3, 3}, {3, 2, 1, 7, 6, 5, 11, 10, 9}));
  expectTensor(top.tensor(1), i64({3, 3}, {3, 2, 1, 3, 2, 1, 3, 2, 1}));
  auto bottom = call("TopK", {x, i64({1}, {2})}, {{"axis", int64_t{0}}, {"largest", int64_t{0}}}, 2);
  expectTensor(bottom.tensor(1), i64({2, 4}, {0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(TopK, TiesGoToTheLowerIndex) {
  for (int64_t largest : {0, 1}) {
    auto top = call("TopK", {f32({5}, {1, 1, 1, 1, 1}), i64({1}, {3})}, {{"largest", largest}}, 2);
    expectTensor(top.tensor(1), i64({3}, {0, 1, 2}));
  }
}

TEST(TopK, NanIsTheLargest) {
  auto top = call("TopK", {f32({4}, {1, kNan, 3, kNan}), i64({1}, {3})}, {}, 2);
  expectTensor(top.tensor(1), i64({3}, {1, 3, 2}));
  auto bottom = call("TopK", {f32({4}, {1, kNan, 3, kNan}), i64({1}, {3})}, {{"largest", int64_t{0}}}, 2);
  expectTensor(bottom.tensor(1), i64({3}, {0, 2, 1}));
}

TEST(TopK, LargeUnsigned) {
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  Tensor x = Tensor::of<uint64_t>(DType::U64, {3}, {kTop - 1, 5, kTop});
  expectTensor(call("TopK", {x, i64({1}, {2})}, {}, 2).tensor(1), i64({2}, {2, 0}));
}

TEST(TopK, Errors) {
  EXPECT_EQ(call("TopK", {f32({2}, {1, 2}), i64({1}, {3})}, {}, 2).message(), "K is 3, but axis 0 has 2 elements");
  EXPECT_EQ(call("TopK", {f32({2}, {1, 2}), i64({1}, {-1})}, {}, 2).message(), "K is -1, but axis 0 has 2 elements");
  expectTensor(call("TopK", {f32({2}, {1, 2}), i64({1}, {0})}, {}, 2).tensor(0), f32({0}, {}));
  EXPECT_EQ(call("TopK", {f32({2}, {1, 2})}, {}, 2).message(), "takes 2 to 2 inputs, not 1");
}

TEST(Unique, Flattened) {
  auto r = call("Unique", {f32({6}, {2, 1, 1, 3, 4, 3})}, {}, 4);
  expectTensor(r.tensor(0), f32({4}, {1, 2, 3, 4}));
  expectTensor(r.tensor(1), i64({4}, {1, 0, 3, 4}));
  expectTensor(r.tensor(2), i64({6}, {1, 0, 0, 2, 3, 2}));
  expectTensor(r.tensor(3), i64({4}, {2, 1, 2, 1}));
  r = call("Unique", {f32({6}, {2, 1, 1, 3, 4, 3})}, {{"sorted", int64_t{0}}}, 4);
  expectTensor(r.tensor(0), f32({4}, {2, 1, 3, 4}));
  expectTensor(r.tensor(1), i64({4}, {0, 1, 3, 4}));
  expectTensor(r.tensor(2), i64({6}, {0, 1, 1, 2, 3, 2}));
  expectTensor(r.tensor(3), i64({4}, {1, 2, 2, 1}));
}

TEST(Unique, AlongAnAxis) {
  auto r = call("Unique", {f32({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4})}, {{"axis", int64_t{0}}}, 4);
  expectTensor(r.tensor(0), f32({2, 3}, {1, 0, 0, 2, 3, 4}));
  expectTensor(r.tensor(1), i64({2}, {0, 2}));
  expectTensor(r.tensor(2), i64({3}, {0, 0, 1}));
  expectTensor(r.tensor(3), i64({2}, {2, 1}));
  r = call("Unique", {f32({2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1})}, {{"axis", int64_t{1}}}, 4);
  expectTensor(r.tensor(0), f32({2, 3, 2}, {0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}));
  expectTensor(r.tensor(1), i64({3}, {1, 0, 2}));
  expectTensor(r.tensor(2), i64({4}, {1, 0, 2, 0}));
  expectTensor(r.tensor(3), i64({3}, {2, 1, 1}));
}

TEST(Unique, NanStringsAndNothing) {
  expectTensor(call("Unique", {f32({4}, {kNan, 1, kNan, 1})}).tensor(), f32({2}, {1, kNan}));
  expectTensor(call("Unique", {text({3}, {"b", "a", "b"})}).tensor(), text({2}, {"a", "b"}));
  expectTensor(call("Unique", {Tensor(DType::F32, {0})}, {}, 4).tensor(3), i64({0}, {}));
  EXPECT_EQ(call("Unique", {Tensor(DType::C64, {2})}).message(), "complex64 has no order");
}

const std::vector<float> kBoxes = {0, 0,  1, 1,  0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                                   0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100,   1, 101};
const std::vector<float> kScores = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};

CallResult suppress(std::vector<float> boxes, std::vector<float> scores, int64_t most, float iou, float least) {
  auto n = static_cast<int64_t>(scores.size());
  return call("NonMaxSuppression",
              {f32({1, n, 4}, boxes), f32({1, 1, n}, scores), i64({1}, {most}), f32({1}, {iou}), f32({1}, {least})});
}

TEST(NonMaxSuppression, Examples) {
  expectTensor(suppress(kBoxes, kScores, 3, 0.5F, 0).tensor(), i64({3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5}));
  expectTensor(suppress(kBoxes, kScores, 2, 0.5F, 0).tensor(), i64({2, 3}, {0, 0, 3, 0, 0, 0}));
  expectTensor(suppress(kBoxes, kScores, 3, 0.5F, 0.4F).tensor(), i64({2, 3}, {0, 0, 3, 0, 0, 0}));
  expectTensor(suppress(kBoxes, kScores, 0, 0.5F, 0).tensor(), i64({0, 3}, {}));
  // Corners may come in any order.
  expectTensor(suppress({1, 1, 0, 0, 0, 0.1F, 1, 1.1F}, {0.9F, 0.8F}, 3, 0.5F, 0).tensor(), i64({1, 3}, {0, 0, 0}));
  // Exactly the threshold is kept: halves of one box overlap it by 0.5.
  expectTensor(suppress({0, 0, 1, 1, 0, 0, 1, 0.5F}, {0.9F, 0.8F}, 3, 0.5F, 0).tensor(),
               i64({2, 3}, {0, 0, 0, 0, 0, 1}));
  // Equal scores: the lower index; NaN is never chosen.
  expectTensor(suppress({0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6}, {0.9F, 0.9F, kNan}, 3, 0.5F, 0).tensor(),
               i64({1, 3}, {0, 0, 0}));
}

TEST(NonMaxSuppression, Centres) {
  auto r = call("NonMaxSuppression",
                {f32({1, 3, 4}, {0.5F, 0.5F, 1, 1, 0.5F, 0.6F, 1, 1, 0.5F, 10.5F, 1, 1}),
                 f32({1, 1, 3}, {0.9F, 0.75F, 0.95F}), i64({}, {3}), f32({}, {0.5F})},
                {{"center_point_box", int64_t{1}}});
  expectTensor(r.tensor(), i64({2, 3}, {0, 0, 2, 0, 0, 0}));
}

TEST(NonMaxSuppression, Errors) {
  EXPECT_EQ(suppress(kBoxes, kScores, 3, 1.5F, 0).message(), "iou_threshold is 1.500000, outside [0, 1]");
  EXPECT_EQ(call("NonMaxSuppression", {f32({1, 1, 4}, {0, 0, 1, 1}), f32({1, 1, 2}, {1, 1})}).message(),
            "scores must be [batches, classes, boxes] for boxes of 1x1x4, but are 1x1x2");
}

}  // namespace
}  // namespace locution::hostops

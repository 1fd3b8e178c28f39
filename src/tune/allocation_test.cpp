#include "tune/allocation.h"

#include <gtest/gtest.h>

#include <numeric>

namespace locution::tune {
namespace {

// Batches of 8, `total` trials; the kernel's time after t trials is given by `curve`.
template <typename Curve>
std::vector<int64_t> shares(Allocation& allocation, size_t kernels, int64_t total, const Curve& curve) {
  std::vector<int64_t> tried(kernels, 0);
  for (int64_t done = 0; done < total; done += 8) {
    const auto k = allocation.next();
    if (!k) break;
    tried[*k] += 8;
    allocation.tried(*k, 8, curve(*k, tried[*k]));
  }
  return tried;
}

TEST(Allocation, StartsWithWhatTakesLongest) {
  Allocation allocation({{1, 1e-3}, {10, 2e-4}, {1, 1.5e-3}});
  EXPECT_EQ(allocation.next(), 1u);
  EXPECT_DOUBLE_EQ(allocation.seconds(), 4.5e-3);
}

TEST(Allocation, EqualKernelsGetEqualShares) {
  Allocation allocation({{2, 1e-3}, {2, 1e-3}, {4, 5e-4}});
  const auto tried = shares(allocation, 3, 240, [](size_t k, int64_t) { return k == 2 ? 5e-4 : 1e-3; });
  for (int64_t t : tried) EXPECT_NEAR(static_cast<double>(t), 80, 8);
}

TEST(Allocation, TrialsGoWhereTheyPay) {
  // One falls to half within 160 trials, the other never.
  Allocation allocation({{1, 1e-3}, {1, 1e-3}});
  const auto tried = shares(allocation, 2, 160, [](size_t k, int64_t t) {
    return k == 0 ? 1e-3 : 1e-3 * (1 - 0.5 * static_cast<double>(std::min<int64_t>(t, 160)) / 160);
  });
  EXPECT_GT(tried[1], tried[0]);
}

TEST(Allocation, SmallKernelsGetTheirShareInTheEndOnly) {
  Allocation allocation({{1, 1e-2}, {1, 1e-4}});
  const auto tried = shares(allocation, 2, 400, [](size_t k, int64_t) { return k == 0 ? 1e-2 : 1e-4; });
  EXPECT_LE(tried[1], 16);
}

TEST(Allocation, WhatIsFinishedGetsNothing) {
  Allocation allocation({{1, 1e-2}, {1, 1e-4}});
  allocation.finish(0);
  EXPECT_EQ(allocation.next(), 1u);
  allocation.finish(1);
  EXPECT_EQ(allocation.next(), std::nullopt);
}

}  // namespace
}  // namespace locution::tune

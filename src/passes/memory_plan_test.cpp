#include "passes/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace locution::passes {
namespace {

TEST(MemoryPlan, BuffersApartInTimeShareAPlace) {
  MemoryPlan plan = planMemory({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}});
  EXPECT_EQ(plan.arenaBytes, 256);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(MemoryPlan, InPlaceTakesNoSpace) {
  MemoryPlan plan = planMemory({{1000, 0, 1}, {1000, 1, 2, 0}, {1000, 2, 3, 1}});
  EXPECT_EQ(plan.arenaBytes, 1024);
}

TEST(MemoryPlan, OnlyOneBufferTakesAPlace) {
  MemoryPlan plan = planMemory({{1000, 0, 1}, {1000, 1, 2, 0}, {1000, 1, 2, 0}});
  EXPECT_EQ(plan.arenaBytes, 2048);
  EXPECT_NE(plan.offsets[1], plan.offsets[2]);
}

TEST(MemoryPlan, InPlaceOfALongerLifeIsRefused) {
  MemoryPlan plan = planMemory({{1000, 0, 5}, {1000, 1, 2, 0}});
  EXPECT_EQ(plan.arenaBytes, 2048);
}

TEST(MemoryPlan, EmptyBuffersAndNoBuffers) {
  EXPECT_EQ(planMemory({}).arenaBytes, 0);
  EXPECT_EQ(planMemory({{0, 0, 3}, {64, 0, 1}}).arenaBytes, 64);
}

TEST(MemoryPlan, RandomLifetimesNeverCollide) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives;
    int n = 1 + static_cast<int>(random() % 40);
    int64_t lowerBound = 0;
    for (int i = 0; i < n; ++i) {
      int32_t first = static_cast<int32_t>(random() % 30);
      Lifetime life{static_cast<int64_t>(random() % 5000), first, first + static_cast<int32_t>(random() % 6)};
      if (i > 0 && random() % 2 == 0) life.inPlaceOf = static_cast<int32_t>(random() % static_cast<unsigned>(i));
      lives.push_back(life);
    }
    MemoryPlan plan = planMemory(lives);
    for (int32_t t = 0; t < 40; ++t) {
      int64_t alive = 0;
      for (const Lifetime& life : lives)
        if (life.first < t && t <= life.last) alive += life.bytes;
      lowerBound = std::max(lowerBound, alive);
    }
    EXPECT_GE(plan.arenaBytes, lowerBound);
    for (size_t a = 0; a < lives.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      EXPECT_LE(plan.offsets[a] + lives[a].bytes, plan.arenaBytes);
      for (size_t b = 0; b < lives.size(); ++b) {
        if (a == b || lives[a].first > lives[b].last || lives[b].first > lives[a].last) continue;
        bool inPlace = lives[b].inPlaceOf == static_cast<int32_t>(a) && lives[a].last == lives[b].first;
        bool reverse = lives[a].inPlaceOf == static_cast<int32_t>(b) && lives[b].last == lives[a].first;
        if ((inPlace || reverse) && plan.offsets[a] == plan.offsets[b]) continue;
        bool apart =
            plan.offsets[a] + lives[a].bytes <= plan.offsets[b] || plan.offsets[b] + lives[b].bytes <= plan.offsets[a];
        EXPECT_TRUE(apart || lives[a].bytes == 0 || lives[b].bytes == 0) << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace locution::passes

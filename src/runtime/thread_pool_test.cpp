#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

namespace locution::runtime {
namespace {

struct Counts {
  std::vector<std::atomic<int>> seen;
  std::atomic<int> pieces = 0;
  explicit Counts(size_t n) : seen(n) {}
};
void count(void* state, int64_t begin, int64_t end) {
  auto* counts = static_cast<Counts*>(state);
  ++counts->pieces;
  for (int64_t i = begin; i < end; ++i) ++counts->seen[static_cast<size_t>(i)];
}

TEST(ThreadPool, EveryIterationOnce) {
  for (int threads : {1, 2, 3, 8}) {
    auto pool = ThreadPool::create(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (int64_t extent : {0, 1, 2, 3, 7, 64, 1000}) {
      for (int repeat = 0; repeat < 200; ++repeat) {
        Counts counts(static_cast<size_t>(extent));
        pool->parallelFor(extent, count, &counts);
        for (auto& n : counts.seen) ASSERT_EQ(n.load(), 1) << threads << " threads, extent " << extent;
      }
    }
  }
}

TEST(ThreadPool, HugeExtent) {
  auto pool = ThreadPool::create(2);
  std::atomic<int64_t> sum = 0;
  auto add = [](void* state, int64_t begin, int64_t end) { *static_cast<std::atomic<int64_t>*>(state) += end - begin; };
  constexpr int64_t kExtent = std::numeric_limits<int64_t>::max() / 2;
  pool->parallelFor(kExtent, add, &sum);
  EXPECT_EQ(sum.load(), kExtent);
}

// A context may run on a pool that another one is using: it then works on its own thread.
TEST(ThreadPool, CallersShareAPool) {
  auto pool = ThreadPool::create(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        pool->beginRun();
        Counts counts(100);
        pool->parallelFor(100, count, &counts);
        for (auto& n : counts.seen) ASSERT_EQ(n.load(), 1);
        pool->endRun();
      }
    });
  }
  for (std::thread& t : callers) t.join();
}

TEST(ThreadPool, NestedLoopsRunInline) {
  auto pool = ThreadPool::create(2);
  struct State {
    ThreadPool* pool;
    std::atomic<int> inner = 0;
  } state{pool.get()};
  pool->parallelFor(
      10,
      [](void* s, int64_t begin, int64_t end) {
        auto* outer = static_cast<State*>(s);
        for (int64_t i = begin; i < end; ++i)
          outer->pool->parallelFor(
              5, [](void* t, int64_t b, int64_t e) { static_cast<State*>(t)->inner += static_cast<int>(e - b); }, s);
      },
      &state);
  EXPECT_EQ(state.inner.load(), 50);
}

TEST(ThreadPool, IdleThreadsSleep) {
  auto pool = ThreadPool::create(4);
  Counts counts(1000);
  pool->beginRun();
  pool->parallelFor(1000, count, &counts);
  pool->endRun();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.1);
}

TEST(ThreadPool, StartsAndStops) {
  for (int i = 0; i < 100; ++i) {
    auto pool = ThreadPool::create(1 + i % 5);
    Counts counts(10);
    if (i % 2 == 0) pool->parallelFor(10, count, &counts);
  }
}

}  // namespace
}  // namespace locution::runtime

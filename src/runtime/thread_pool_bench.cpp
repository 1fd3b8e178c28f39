// What a parallel loop costs: ours against pthreadpool, back to back (hot) and after a pause (the workers sleep).
#include <benchmark/benchmark.h>
#include <pthreadpool.h>

#include <chrono>
#include <thread>
#include <vector>

#include "runtime/thread_pool.h"

namespace locution::runtime {
namespace {

struct Work {
  std::vector<int64_t> sums = std::vector<int64_t>(1024 * 16);
  int64_t steps = 0;
};
// `steps` dependent multiplications an iteration: about a nanosecond each.
void body(void* state, int64_t begin, int64_t end) {
  auto* work = static_cast<Work*>(state);
  for (int64_t i = begin; i < end; ++i) {
    int64_t x = i;
    for (int64_t s = 0; s < work->steps; ++s) benchmark::DoNotOptimize(x = x * 5 + 1);
    work->sums[static_cast<size_t>(i * 16)] = x;
  }
}
void pthreadpoolBody(void* state, size_t begin, size_t count) {
  body(state, static_cast<int64_t>(begin), static_cast<int64_t>(begin + count));
}

constexpr int64_t kExtent = 64;
void rest(benchmark::State& state, int64_t microseconds) {
  if (microseconds == 0) return;
  state.PauseTiming();
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  state.ResumeTiming();
}

// Arguments: threads, steps an iteration, pause before each loop in microseconds.
void serial(benchmark::State& state) {
  Work work;
  work.steps = state.range(1);
  for (auto _ : state) body(&work, 0, kExtent);
}
void ours(benchmark::State& state) {
  Work work;
  work.steps = state.range(1);
  auto pool = ThreadPool::create(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    rest(state, state.range(2));
    pool->parallelFor(kExtent, body, &work);
  }
}
void pthreadpoolLoop(benchmark::State& state) {
  Work work;
  work.steps = state.range(1);
  auto threads = static_cast<size_t>(state.range(0));
  pthreadpool_t pool = pthreadpool_create(threads);
  for (auto _ : state) {
    rest(state, state.range(2));
    pthreadpool_parallelize_1d_tile_1d(pool, pthreadpoolBody, &work, kExtent, kExtent / threads / 2, 0);
  }
  pthreadpool_destroy(pool);
}
void hot(benchmark::internal::Benchmark* b) {
  for (int threads : {2, 4})
    for (int steps : {0, 100, 1000}) b->Args({threads, steps, 0});
  b->UseRealTime();
}
void cold(benchmark::internal::Benchmark* b) {
  for (int steps : {0, 100, 1000}) b->Args({2, steps, 5000});
  b->UseRealTime()->Iterations(200);
}

BENCHMARK(serial)->Args({1, 0, 0})->Args({1, 100, 0})->Args({1, 1000, 0})->UseRealTime();
BENCHMARK(ours)->Apply(hot);
BENCHMARK(pthreadpoolLoop)->Apply(hot);
BENCHMARK(ours)->Apply(cold);
BENCHMARK(pthreadpoolLoop)->Apply(cold);

}  // namespace
}  // namespace locution::runtime

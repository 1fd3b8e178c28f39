// Workers that run kernels' parallel loops. One caller at a time uses a pool; a second one that comes meanwhile runs its loop
// alone on its own thread, so that contexts may share a pool.
#pragma once

#include <cstdint>
#include <memory>

namespace locution::runtime {

class ThreadPool {
 public:
  virtual ~ThreadPool() = default;
  virtual int threads() const = 0;
  /// Runs body(begin, end) over a partition of [0, extent) into contiguous pieces and returns when all are done: a share a
  /// thread, taken in a few steps, so that a thread the system has put aside does not hold the others up.
  virtual void parallelFor(int64_t extent, void (*body)(void* state, int64_t begin, int64_t end), void* state) = 0;
  /// Between these, workers wait for the next loop by spinning (up to about a millisecond); outside they sleep at once.
  virtual void beginRun() {}
  virtual void endRun() {}
  static std::shared_ptr<ThreadPool> create(int threads);
};

}  // namespace locution::runtime

// The memory that a worker shares with its parent.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "tune/measure.h"
#include "tune/region.h"

namespace locution::tune {

inline int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int kMaxSamples = 64;
constexpr int kMaxLanes = 64;

/// What a thread of the worker is at.
struct alignas(64) Lane {
  enum At : int32_t { Idle, Compiling, Running };
  std::atomic<int32_t> at = Idle;
  std::atomic<int32_t> candidate = -1;
  std::atomic<int64_t> since = 0;

  void begin(At what, int32_t index) {
    since.store(nowNs(), std::memory_order_relaxed);
    candidate.store(index, std::memory_order_relaxed);
    at.store(what, std::memory_order_release);
  }
  void end() { at.store(Idle, std::memory_order_release); }
};

/// What came out of a candidate. The incumbent has the last one.
struct Slot {
  std::atomic<int32_t> done = 0;  ///< all the rest is final
  Outcome outcome = Outcome::Ok;
  bool abandoned = false;
  int32_t count = 0;
  double samples[kMaxSamples] = {}, incumbent[kMaxSamples] = {};
  uint64_t codeHash = 0;
  double compileMs = 0;
  char reason[400] = {};

  void fail(Outcome what, const std::string& why) {
    outcome = what;
    const size_t n = std::min(why.size(), sizeof reason - 1);
    std::memcpy(reason, why.data(), n);
    reason[n] = 0;
    done.store(1, std::memory_order_release);
  }
};

class SharedBlock {
 public:
  explicit SharedBlock(size_t slots)
      : region_(sizeof(Lane) * kMaxLanes + sizeof(Slot) * (slots + 1), Region::Sharing::WithChildren), slots_(slots) {
    for (int i = 0; i < kMaxLanes; ++i) new (&lane(i)) Lane();
    for (size_t i = 0; i <= slots; ++i) new (&slot(i)) Slot();
  }
  Lane& lane(int i) { return reinterpret_cast<Lane*>(region_.data())[i]; }
  Slot& slot(size_t i) { return reinterpret_cast<Slot*>(region_.data() + sizeof(Lane) * kMaxLanes)[i]; }
  size_t slots() const { return slots_; }
  void idle() {
    for (int i = 0; i < kMaxLanes; ++i) lane(i).end();
  }

 private:
  Region region_;
  size_t slots_;
};

}  // namespace locution::tune

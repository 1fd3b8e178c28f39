// A loop is a word {begin, end} a thread, in units of iterations. Owner and thieves take pieces with compare-and-swap, and
// the caller counts finished units, not workers: it never waits for a thread that has not begun. A late worker that meets the
// next loop's words takes part in that loop, which is as good; it reads the loop's body only after it has taken a piece, and
// the caller can't leave before that piece is finished.
#include "runtime/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace locution::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Within a run the next loop is near: most gaps are one serial kernel long. Longer ones are worth a wake-up.
constexpr auto kSpinInRun = std::chrono::microseconds(1000);
// After a run: long enough for a caller that runs again at once.
constexpr auto kSpinIdle = std::chrono::microseconds(50);
// The caller, for pieces that others are still at.
constexpr auto kSpinFinish = std::chrono::microseconds(200);
constexpr int kPausesPerLook = 16;
constexpr int64_t kMaxUnits = int64_t{1} << 30;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Sleeps while `word` holds `value` (or returns early); wakes all who sleep on it. Not std::atomic's wait and notify: libstdc++'s
// spin on their own, and look for sleepers with too weak an order for the flags below.
#if defined(__linux__)
template <typename T>
void sleepOn(std::atomic<T>& word, T value) {
  static_assert(sizeof word == 4 && std::atomic<T>::is_always_lock_free);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
template <typename T>
void wakeAll(std::atomic<T>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}
#else
template <typename T>
void sleepOn(std::atomic<T>& word, T value) {
  word.wait(value);
}
template <typename T>
void wakeAll(std::atomic<T>& word) {
  word.notify_all();
}
#endif

int availableCpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

constexpr uint64_t pack(uint32_t begin, uint32_t end) { return static_cast<uint64_t>(end) << 32 | begin; }
constexpr uint32_t beginOf(uint64_t word) { return static_cast<uint32_t>(word); }
constexpr uint32_t endOf(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

struct alignas(128) Share {
  std::atomic<uint64_t> word = 0;
};

class StealingPool final : public ThreadPool {
 public:
  explicit StealingPool(int threads) : shares_(static_cast<size_t>(threads)), spins_(threads <= availableCpus()) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(static_cast<size_t>(i)); });
    } catch (const std::system_error&) {
      // The system gives no more threads; loops run on those there are, shares without an owner get stolen.
    }
  }
  ~StealingPool() override {
    stop_.store(true, std::memory_order_relaxed);
    announce();
    for (std::thread& t : workers_) t.join();
  }

  int threads() const override { return static_cast<int>(shares_.size()); }

  void parallelFor(int64_t extent, void (*body)(void*, int64_t, int64_t), void* state) override {
    if (extent <= 0) return;
    if (extent == 1 || workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
      body(state, 0, extent);
      return;
    }
    body_ = body;
    state_ = state;
    extent_ = extent;
    unit_ = (extent + kMaxUnits - 1) / kMaxUnits;
    int64_t units = (extent + unit_ - 1) / unit_;
    auto count = static_cast<int64_t>(shares_.size());
    remaining_.store(static_cast<int32_t>(units), std::memory_order_relaxed);
    for (int64_t i = 0; i < count; ++i)
      shares_[static_cast<size_t>(i)].word.store(
          pack(static_cast<uint32_t>(units * i / count), static_cast<uint32_t>(units * (i + 1) / count)),
          std::memory_order_release);
    announce();
    takePieces(0);
    waitForOthers();
    busy_.store(false, std::memory_order_release);
  }

  void beginRun() override {
    // Workers that sleep are on their way while the first kernels are prepared.
    if (running_.fetch_add(1, std::memory_order_relaxed) == 0 && spins_) announce();
  }
  void endRun() override { running_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void announce() {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wakeAll(epoch_);
  }

  // From one share: the owner takes half of what is left from the front, a thief half from the back.
  bool takeFrom(std::atomic<uint64_t>& word, bool owner) {
    uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
      uint32_t begin = beginOf(seen), end = endOf(seen);
      if (begin >= end) return false;
      uint32_t piece = (end - begin + 1) / 2;
      uint32_t from = owner ? begin : end - piece;
      uint64_t rest = owner ? pack(begin + piece, end) : pack(begin, end - piece);
      if (!word.compare_exchange_weak(seen, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      body_(state_, from * unit_, std::min(extent_, (from + static_cast<int64_t>(piece)) * unit_));
      auto done = static_cast<int32_t>(piece);
      if (remaining_.fetch_sub(done, std::memory_order_seq_cst) == done &&
          callerSleeps_.load(std::memory_order_seq_cst))
        wakeAll(remaining_);
      return true;
    }
  }

  void takePieces(size_t self) {
    while (takeFrom(shares_[self].word, true)) {
    }
    for (size_t i = 1; i < shares_.size(); ++i) {
      std::atomic<uint64_t>& victim = shares_[(self + i) % shares_.size()].word;
      while (takeFrom(victim, false)) {
      }
    }
  }

  // Spins until `done()` or for `budget` (asked again as it goes); false when the time is up.
  template <typename Done, typename Budget>
  bool spin(Done done, Budget budget) const {
    if (!spins_) return done();
    Clock::time_point from = Clock::now();
    for (;;) {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (done()) return true;
        pause();
      }
      if (Clock::now() - from > budget()) return done();
    }
  }

  void waitForOthers() {
    auto finished = [this] { return remaining_.load(std::memory_order_acquire) == 0; };
    if (spin(finished, [] { return kSpinFinish; })) return;
    callerSleeps_.store(true, std::memory_order_seq_cst);
    for (int32_t left = 0; (left = remaining_.load(std::memory_order_seq_cst)) != 0;) sleepOn(remaining_, left);
    callerSleeps_.store(false, std::memory_order_relaxed);
  }

  void work(size_t self) {
#if defined(__linux__)
    pthread_setname_np(pthread_self(), ("locution-" + std::to_string(self)).c_str());
#endif
    uint32_t seen = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      auto announced = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      auto budget = [this]() -> Clock::duration {
        return running_.load(std::memory_order_relaxed) > 0 ? kSpinInRun : kSpinIdle;
      };
      if (!spin(announced, budget)) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        if (epoch_.load(std::memory_order_seq_cst) == seen) sleepOn(epoch_, seen);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
      }
      seen = epoch_.load(std::memory_order_acquire);
      takePieces(self);
    }
  }

  // The loop under way; written by its caller only, while no unit is left of the one before.
  void (*body_)(void*, int64_t, int64_t) = nullptr;
  void* state_ = nullptr;
  int64_t extent_ = 0;
  int64_t unit_ = 1;  // iterations a unit: 1 for all but absurd extents
  std::vector<Share> shares_;

  alignas(128) std::atomic<int32_t> remaining_ = 0;  // units
  alignas(128) std::atomic<uint32_t> epoch_ = 0;
  std::atomic<int32_t> sleepers_ = 0;
  std::atomic<bool> callerSleeps_ = false;
  alignas(128) std::atomic<bool> busy_ = false;
  std::atomic<int32_t> running_ = 0;
  std::atomic<bool> stop_ = false;
  const bool spins_;  // with more threads than CPUs, spinning keeps from work who has some
  std::vector<std::thread> workers_;
};

}  // namespace

std::shared_ptr<ThreadPool> ThreadPool::create(int threads) {
  return std::make_shared<StealingPool>(std::clamp(threads, 1, 1024));
}

}  // namespace locution::runtime

// Plans of many workloads measured round by round, as a language model proposes them with some drawn uniformly: what it adapts from. Then
// the few that matter measured again, in turns, to say which is the fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "records/store.h"
#include "space/space.h"
#include "space/workload.h"
#include "support/status.h"
#include "tune/plan_timer.h"

namespace locution::tune {

struct SamplingWorkload {
  const space::Workload* workload = nullptr;
  std::string model;  ///< for the records
};

/// Different plans of a space in the order in which they are worth a measurement; another seed, another draw.
using Propose = std::function<Result<std::vector<space::Choices>>(const space::Space& space, uint64_t seed)>;

struct SamplingProgress {
  int64_t workloads = 0, of = 0;     ///< that were begun
  int64_t measured = 0, wanted = 0;  ///< plans; 0: the time is the limit
  double seconds = 0;
};

struct SamplingOptions {
  /// Plans to measure, besides the analytic ones; what the records hold of this proposer and seed counts. 0: no limit.
  int64_t measurements = 0;
  double seconds = 0;  ///< 0: no limit
  uint64_t seed = 0;
  std::string proposer, compiler;  ///< for the records
  std::function<bool()> isStopped;
  std::function<void(const SamplingProgress&)> progress;
};

struct SamplingResult {
  int64_t workloads = 0;                 ///< of which more than the analytic plan is known
  int64_t measured = 0, recalled = 0;    ///< plans; known from the records
  int64_t failed = 0;                    ///< of `measured`: wrong, crashed, hung
  int64_t unmeasurable = 0, single = 0;  ///< workloads: can't be measured; have one plan only
  double seconds = 0;
  bool isInterrupted = false;
};

/// What a plan's time is over the analytic plan's: the medians of two sets of rounds, so that what is chosen by one is judged by the other
/// (the least of several noisy numbers is too small). Infinite where it failed.
struct Compared {
  double choosing = 0, telling = 0;
};

class Sampling {
 public:
  /// What workloads, target and store point to must outlive it. Errors: those of the store.
  static Result<std::unique_ptr<Sampling>> open(const std::vector<SamplingWorkload>& workloads,
                                                const TargetSpec& target, const MakeTimer& makeTimer,
                                                records::Store& store, const SamplingOptions& options);
  ~Sampling();

  /// Measures until a limit is met, or all plans are known. Errors: those of the store and of `propose`.
  Result<SamplingResult> run(const Propose& propose);

  /// Workloads that have more than one plan; those that could be measured.
  size_t count() const;
  const space::Space& space(size_t workload) const;
  /// Known plans besides the analytic one, the fastest first; empty where there are none, or it can't be measured.
  std::vector<space::Choices> best(size_t workload, size_t most) const;
  /// Measures plans in turns, for so many rounds of either set; the records get what comes out. Errors: the store's.
  Result<std::vector<Compared>> compare(size_t workload, const std::vector<space::Choices>& plans, int rounds);

 private:
  struct Impl;
  explicit Sampling(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace locution::tune

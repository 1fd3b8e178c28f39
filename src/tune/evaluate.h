// How good schedulers are on workloads whose best plans are known: every plan is measured again, in turns with the analytic one, so that
// what is compared was measured in the same minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "generator/scheduler.h"
#include "records/store.h"
#include "space/workload.h"
#include "support/status.h"

namespace locution::tune {

struct Contender {
  std::string name;
  const generator::Scheduler* scheduler = nullptr;
};

struct EvaluateOptions {
  int rounds = 5;     ///< of measuring; a ratio is the median of theirs
  int finalists = 8;  ///< best plans of the records that are measured again; the fastest of them is the best known
  int jobs = 0;       ///< threads that compile; 0: all cores
  uint64_t seed = 0;  ///< of operands
  std::function<bool()> isStopped;
  std::function<void(size_t done, size_t all)> progress;
};

struct Evaluated {
  std::string id, kind;
  double count = 1;  ///< how often the corpus runs it
  std::set<std::string> groups;
  double seconds = 0;    ///< the analytic plan
  int64_t trials = 0;    ///< different plans that the records know
  double best = 1;       ///< the time of the best known plan over that of the analytic one; at most 1
  std::string bestPlan;  ///< as text; empty: the analytic one
  /// Of each contender: its time over the analytic plan's; 0: its plan failed.
  std::vector<double> ratios;
  std::string problem;  ///< why it was not measured
};

struct EvaluateWorkload {
  const space::Workload* workload = nullptr;
  double count = 1;
  std::set<std::string> groups = {};  ///< that it is summed up in besides
};

/// Errors: those of the store. What can't be measured says so in its row.
Result<std::vector<Evaluated>> evaluate(const std::vector<EvaluateWorkload>& workloads,
                                        const std::vector<Contender>& contenders,
                                        const codegen::KernelCompiler& compiler, records::Store& best,
                                        const EvaluateOptions& options);

/// What the rows of workloads with at least `leastTrials` known plans come to, all of them or those of a group.
struct EvaluateSummary {
  struct Of {
    std::string name;
    double mean = 0, worst = 0;          ///< best known time / its time: geometric mean, least
    double overAnalytic = 0, least = 0;  ///< the analytic plan's time / its time: the same
    double closed = 0;                   ///< of the gaps above the limit, the share that it closes: sum of logarithms
    int64_t failed = 0;
  };
  int64_t workloads = 0, gaps = 0;
  double analytic = 0, analyticWorst = 0;  ///< best known time / the analytic plan's
  std::vector<Of> contenders;
};
EvaluateSummary summarise(const std::vector<Evaluated>& rows, const std::vector<Contender>& contenders,
                          int64_t leastTrials, double gap, const std::string& group = "");
/// The groups that rows are in, sorted.
std::set<std::string> groupsOf(const std::vector<Evaluated>& rows);
/// Rows by gap, then the summary of all and of each group.
std::string print(const std::vector<Evaluated>& rows, const std::vector<Contender>& contenders, int64_t leastTrials,
                  double gap);

}  // namespace locution::tune

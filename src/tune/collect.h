// Measuring plans of many workloads for the records: what schedulers learn from. A workload on a target is a task; several processes or
// machines that share a database share the tasks out. What a task measures its seed says, whoever does it; what is stored already is not
// measured again, so that a worker that is killed loses no more than what it was measuring.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "records/store.h"
#include "space/workload.h"
#include "support/status.h"

namespace locution::tune {

struct CollectWorkload {
  const space::Workload* workload = nullptr;
  std::string model;  ///< for the records
};

struct CollectProgress {
  int64_t done = 0, tasks = 0;  ///< workloads
  int64_t measured = 0;         ///< plans
  double seconds = 0;
};

struct CollectOptions {
  int64_t plans = 100;  ///< of each workload, besides the analytic one
  uint64_t seed = 0;
  int jobs = 0;          ///< threads that compile; 0: all cores
  std::string worker;    ///< a name that no other worker has
  std::string compiler;  ///< for the records
  double leaseSeconds = 300;
  std::function<bool()> isStopped;
  std::function<void(const CollectProgress&)> progress;
};

struct CollectResult {
  int64_t workloads = 0, elsewhere = 0;  ///< finished here; by other workers or before
  int64_t measured = 0, recalled = 0;    ///< plans; stored by whoever began the task
  int64_t failed = 0;                    ///< of `measured`: wrong, crashed, hung
  std::map<std::string, int64_t> left;   ///< workloads that can't be measured, by reason
  double seconds = 0;
  bool isInterrupted = false;
};

/// Returns when all tasks are done, by whomever. Errors: those of the store.
Result<CollectResult> collect(const std::vector<CollectWorkload>& workloads, const codegen::KernelCompiler& compiler,
                              records::Store& store, const CollectOptions& options);

}  // namespace locution::tune

// The space of plans put to the test: sentences drawn at random must be legal, be applied, compile and compute the right thing; and the
// fastest of those that are measured should lie where the analytic rules look.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "core/target.h"
#include "space/workload.h"
#include "support/status.h"

namespace locution::tune {

struct AuditTarget {
  TargetSpec spec;
  const codegen::KernelCompiler* compiler = nullptr;  ///< null: its code can't run here, sentences and loops only
};

struct AuditOptions {
  int64_t sentences = 10000;  ///< drawn, spread over workloads and targets
  int64_t compiled = 100;     ///< of further ones: compiled and compared with the interpreter
  int64_t measured = 0;       ///< of further ones: timed in turns with the analytic plan
  uint64_t seed = 0;
  int walks = 300;  ///< of a workload's census
  std::function<void(const std::string&)> progress;
};

struct AuditedWorkload {
  std::string id, kind;
  double multiplyAdds = 0;
  double plans = 0;  ///< estimated (space/census.h), on the first target
  int64_t measured = 0;
  double bestRatio = 0;   ///< the analytic plan's time / that of the fastest measured; 0: none measured
  std::string bestPlan;   ///< its text
  std::string fromRules;  ///< where that differs from the analytic plan: "mr=4 (6) nr=3 (2)"
};

struct AuditReport {
  int64_t sentences = 0, legal = 0, applied = 0;
  int64_t compiled = 0, equal = 0, refused = 0;  ///< refused: kernels whose operands can't be made up
  std::vector<std::string> failures;             ///< the first of them, with workload, target and plan
  std::vector<AuditedWorkload> workloads;
};

/// Errors: no workload. What fails is in the report.
Result<AuditReport> audit(const std::vector<space::Workload>& workloads, const std::vector<AuditTarget>& targets,
                          const AuditOptions& options);

/// The report as text.
std::string print(const AuditReport& report);

}  // namespace locution::tune

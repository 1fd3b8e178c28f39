// The scheduler `tlm`: the Tensor Language Model writes the plans. Several sentences are drawn for a kernel, its workload's hash being the
// seed; of these and the analytic plan the one is taken that the model's value head says is fastest.
#pragma once

#include <memory>
#include <string_view>

#include "generator/scheduler.h"
#include "generator/tlm/adapter.h"
#include "generator/tlm/reader.h"
#include "generator/tlm/weights.h"

namespace locution::generator::tlm {

struct SchedulerOptions {
  int64_t sentences = 32;
  /// One sentence, the likeliest word each time, whatever its value; the analytic plan is no candidate.
  bool isGreedy = false;
  /// Plans that are written whatever the model would say; what is no plan of its kernel is left aside.
  KnownPlans known = {};
};

/// Plans of equal workloads are written once. Where the model can't read a kernel (its sentence is too long), the analytic plan is taken.
std::unique_ptr<Scheduler> makeTlm(const Weights& weights, ProgramSource programs, SchedulerOptions options);

}  // namespace locution::generator::tlm

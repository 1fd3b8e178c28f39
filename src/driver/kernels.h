// From fused kernels to code: schedules each kernel, compiles equal ones once and in parallel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "driver/compiler.h"
#include "generator/scheduler.h"
#include "loop/compute.h"
#include "schedule/apply.h"

namespace locution::driver {

/// What a param of a scheduled function is, by position in its computation.
struct Param {
  enum class Kind : uint8_t { Input, Packed, Output } kind;
  size_t index = 0;
};

/// A kernel after scheduling; shared by all computations that are equal.
struct ScheduledKernel {
  loop::Function function;
  std::vector<Param> params;
  std::vector<size_t> packSources;  ///< input index of each packed operand
  std::vector<loop::Computation> packComputations;
  std::string sentence;
};

/// Applies the scheduler's plan (or takes raw loops as they are); verifies the loops. Deterministic.
Result<ScheduledKernel> scheduleKernel(const loop::Computation& computation, const generator::Scheduler& scheduler,
                                       const TargetSpec& target);

/// Of the computation's meaning, its inputs' order and which are constant: equal keys may share a ScheduledKernel.
uint64_t kernelKey(const loop::Computation& computation);

/// Runs task(0) ... task(count - 1) on `jobs` threads; the first error by index wins, so the outcome doesn't depend on timing.
Status parallelTasks(size_t count, int jobs, const std::function<Status(size_t)>& task);

}  // namespace locution::driver

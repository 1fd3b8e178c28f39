// From lowered steps to an Executable: schedule, compile, pack constants, plan memory, write instructions.
#pragma once

#include "codegen/kernel_compiler.h"
#include "driver/compiler.h"
#include "driver/evaluator.h"
#include "driver/lower.h"
#include "generator/scheduler.h"
#include "runtime/executable.h"

namespace locution::driver {

struct BuildInputs {
  const codegen::KernelCompiler* compiler = nullptr;
  const generator::Scheduler* scheduler = nullptr;
  Evaluator* evaluator = nullptr;
  int jobs = 0;
  Progress progress;
  std::vector<StageTime>* times = nullptr;
};

/// `lowered` is consumed: a constant is let go as soon as its packed form exists.
Result<std::shared_ptr<runtime::Executable>> buildExecutable(Lowered lowered, const BuildInputs& in);

}  // namespace locution::driver

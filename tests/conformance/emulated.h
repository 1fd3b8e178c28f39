// Runs what was compiled for another machine: through a command that starts its locution-runner, with files in between.
#pragma once

#include <string>
#include <vector>

#include "hostops/host_op.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::conformance {

struct Emulated {
  std::vector<hostops::HostValue> outputs;
  bool crashed = false;  ///< by a signal; `failure` is the end of what it said
  std::string failure;   ///< empty: it ran
};

/// `command` is a shell's, "qemu-aarch64 build/aarch64/locution-runner". Errors: what keeps the model from being written.
Result<Emulated> runEmulated(const std::string& command, const runtime::Executable& executable,
                             const std::vector<hostops::HostValue>& inputs, int threads);

/// What writing a model says that is compiled on first use: another machine without a compiler can't run it.
bool needsCompilerToRun(const std::string& message);

}  // namespace locution::conformance

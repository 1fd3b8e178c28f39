// Text of each stage of a compilation.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::driver {

/// graph, fused, workloads, loops, llvm, asm, memory.
const std::vector<std::string>& showStages();
/// `kernel`: only kernels whose name contains it ("" for all). Errors: as compileModel; an unknown stage or kernel.
Result<std::string> showModel(const std::string& path, const CompileOptions& options, const std::string& stage,
                              const std::string& kernel);
/// The memory stage of a compiled model: arena, constants, instructions.
std::string showMemory(const runtime::Executable& executable);

}  // namespace locution::driver

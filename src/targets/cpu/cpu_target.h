// The CPU target: LLVM 22 behind two functions. LLVM is included nowhere outside this folder.
#pragma once

#include <memory>
#include <string>

#include "codegen/kernel_compiler.h"
#include "core/target.h"

namespace locution::targets::cpu {

/// The built-in profile of an LLVM CPU name ("native": the host; "": the host, or the least that is supported of another architecture)
/// for a triple ("": the host's). Errors: unknown names (lists the close ones), an OS or architecture that is not supported.
Result<TargetSpec> makeTarget(const std::string& triple, const std::string& cpu, int threads);
/// Measures this machine: peak f32 multiply-add rate, read bandwidth, cache sizes. Takes about a second. `compiler` code is used.
Result<TargetSpec> measureMachine(const TargetSpec& base);
std::unique_ptr<codegen::KernelCompiler> makeKernelCompiler(const TargetSpec& target);

}  // namespace locution::targets::cpu

// LLVM's view of a TargetSpec. Included by this folder's .cpp files only.
#pragma once

#include <memory>

#include "core/target.h"
#include "support/status.h"

namespace llvm {
class Function;
class TargetMachine;
}  // namespace llvm

namespace locution::targets::cpu {

/// A machine that uses exactly the features that `spec` lists, whatever else the CPU's name implies.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetSpec& spec);

/// Keeps LLVM from making vector constants again before each use, where that costs instructions (AVX2).
void holdConstants(llvm::Function& function, const TargetSpec& target);

}  // namespace locution::targets::cpu

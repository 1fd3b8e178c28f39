// LLVM's view of a TargetSpec. Included by this folder's .cpp files only.
#pragma once

#include <memory>

#include "core/target.h"
#include "support/status.h"

namespace llvm {
class TargetMachine;
}

namespace locution::targets::cpu {

/// A machine that uses exactly the features that `spec` lists, whatever else the CPU's name implies.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetSpec& spec);

}  // namespace locution::targets::cpu

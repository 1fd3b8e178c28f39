// Who turns a scheduled loop function into machine code. The driver hands one to whoever needs compiled code (folding of large
// constants, measuring, the TLM), so that no one below the driver depends on a target.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::codegen {

/// Position-independent machine code with no relocation left; the entry (runtime::KernelFunction) is at offset 0. Must be placed
/// at a 64-byte boundary. Constants that the code reads lie behind it, in the same bytes.
struct KernelCode {
  std::vector<std::byte> bytes;
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  /// Deterministic and safe to call from several threads. `f` has been verified. Errors: what the target can't express.
  virtual Result<KernelCode> compile(const loop::Function& f) const = 0;
  /// The text of an intermediate form: "llvm", "asm".
  virtual Result<std::string> show(const loop::Function& f, const std::string& stage) const = 0;
  virtual const TargetSpec& target() const = 0;
};

}  // namespace locution::codegen

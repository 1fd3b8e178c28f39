// Executable memory for one kernel: what measuring and tests run code in.
#pragma once

#include <memory>

#include "codegen/kernel_compiler.h"
#include "runtime/kernel_abi.h"
#include "support/status.h"

namespace locution::targets::cpu {

/// Holds a copy of the code, mapped readable and executable; unmapped when destroyed.
class CodeMemory {
 public:
  static Result<CodeMemory> map(const codegen::KernelCode& code);
  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory& operator=(CodeMemory&& other) noexcept;
  ~CodeMemory();
  runtime::KernelFunction entry() const { return reinterpret_cast<runtime::KernelFunction>(base_); }

 private:
  CodeMemory(void* base, size_t size) : base_(base), size_(size) {}
  void* base_ = nullptr;
  size_t size_ = 0;
};

}  // namespace locution::targets::cpu

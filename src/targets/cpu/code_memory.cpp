#include "targets/cpu/code_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace locution::targets::cpu {

Result<CodeMemory> CodeMemory::map(const codegen::KernelCode& code) {
  size_t size = code.bytes.size();
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return Status::error("no memory for code");
  CodeMemory memory(base, size);
  std::memcpy(base, code.bytes.data(), size);
  if (mprotect(base, size, PROT_READ | PROT_EXEC) != 0) return Status::error("memory can't be made executable");
  return memory;
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept { *this = std::move(other); }

CodeMemory& CodeMemory::operator=(CodeMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

CodeMemory::~CodeMemory() {
  if (base_) munmap(base_, size_);
}

}  // namespace locution::targets::cpu

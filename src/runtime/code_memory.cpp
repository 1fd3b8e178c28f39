#include "runtime/code_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace locution::runtime {

Result<std::shared_ptr<CodeMemory>> CodeMemory::create(std::span<const std::byte> code) {
  if (code.empty()) return std::shared_ptr<CodeMemory>(new CodeMemory(nullptr, 0));
  void* pages = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return Status::error(std::string("no memory for the code: ") + std::strerror(errno));
  std::memcpy(pages, code.data(), code.size());
  std::shared_ptr<CodeMemory> memory(new CodeMemory(static_cast<std::byte*>(pages), code.size()));
  if (mprotect(pages, code.size(), PROT_READ | PROT_EXEC) != 0)
    return Status::error(std::string("the system does not let code be made executable: ") + std::strerror(errno));
  char* begin = static_cast<char*>(pages);
  __builtin___clear_cache(begin, begin + code.size());
  return memory;
}

CodeMemory::~CodeMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace locution::runtime

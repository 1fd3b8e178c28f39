// Pages of machine code: written once, then readable and executable and never writable again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "support/status.h"

namespace locution::runtime {

class CodeMemory {
 public:
  /// Copies `code` to fresh pages (so offsets that are multiples of 64 stay aligned) and makes them executable.
  static Result<std::shared_ptr<CodeMemory>> create(std::span<const std::byte> code);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  const std::byte* data() const { return data_; }

 private:
  CodeMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  size_t size_;
};

}  // namespace locution::runtime

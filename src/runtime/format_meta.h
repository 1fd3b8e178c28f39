// The meta section of a .loc file: an Executable, and those of its regions within it, without the bytes of code and constants.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable.h"
#include "support/status.h"

namespace locution::runtime {

/// Where each constant's bytes lie in the constants section (strings, which have no bytes there, stand in the meta section).
struct ConstantLayout {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;  ///< of the section
};
ConstantLayout layOutConstants(const std::vector<Tensor>& constants);

/// The executable and those of its regions, depth first: the order in which code and constants stand in the file.
std::vector<const Executable*> allExecutables(const Executable& executable);
/// Where an executable's code ends in the code section and the next one's begins.
uint64_t codeEnd(uint64_t begin, const Executable& executable);

std::string writeMeta(const Executable& executable, const ConstantLayout& layout);
/// Constants are views of `storage`, whose constants section is [begin, begin + size); `code` is the code section.
Result<std::shared_ptr<Executable>> readMeta(std::string_view meta, std::string_view code,
                                             const std::shared_ptr<Storage>& storage, uint64_t begin, uint64_t size);

}  // namespace locution::runtime

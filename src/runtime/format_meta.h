// The meta section of a .loc file: an Executable without the bytes of its code and constants.
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

std::string writeMeta(const Executable& executable, const ConstantLayout& layout);
/// Everything but `code`. Constants are views of `storage`, whose constants section is [begin, begin + size).
Result<std::shared_ptr<Executable>> readMeta(std::string_view meta, const std::shared_ptr<Storage>& storage,
                                             uint64_t begin, uint64_t size);

}  // namespace locution::runtime

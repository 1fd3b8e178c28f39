// An ELF object to position-independent bytes: sections laid out one after the other, relocations between them applied.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/status.h"

namespace locution::targets::cpu {

/// Lays out .text first, so that `entry`, which must be its first symbol, is at offset 0; then read-only data, each section at its
/// alignment (64 at most); applies PC-relative relocations. Errors: an undefined symbol, writable data, an absolute relocation.
Result<std::vector<std::byte>> linkBlob(std::span<const std::byte> object, const std::string& entry);

}  // namespace locution::targets::cpu

// The .loc file: an Executable as one mappable file. Little-endian, deterministic (no times, no names of machines, padding is
// zero). Layout:
//     header, 64 bytes     magic, version, section count, size of the file, checksum, architecture
//     section table        {kind, offset, size} each
//     sections             meta (everything but bytes of code and constants), code, constants; 64-byte aligned, constants at a
//                          page boundary, each constant 64-byte aligned
// The checksum (XXH3) covers every byte of the file but its own: nothing damaged is ever looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/tensor.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::runtime {

/// Raised with every change of the layout, of the meta section, or of the kernel ABI.
constexpr uint32_t kFormatVersion = 3;

/// True when the bytes begin like a .loc file's.
bool looksLikeExecutable(const void* data, size_t size);
/// Maps the whole file. Errors name the path.
Result<std::shared_ptr<Storage>> mapExecutable(const std::string& path);
/// Constants are views of `bytes`. Errors have the file as their subject: "is not a .loc file", "is damaged: ...".
Result<std::shared_ptr<const Executable>> readExecutable(std::shared_ptr<Storage> bytes);
/// Sets the header's checksum to what the bytes need: for tests that damage a file behind its back.
void resealForTest(std::string& file);

}  // namespace locution::runtime

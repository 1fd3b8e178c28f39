// Content hashes (XXH3) for workloads, caches and files; stable across runs and machines of one byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace locution {

uint64_t hashBytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t hashText(std::string_view text, uint64_t seed = 0) { return hashBytes(text.data(), text.size(), seed); }
/// 16 lower-case hexadecimal digits.
std::string hexDigits(uint64_t value);
/// 128 bits as 32 lower-case hexadecimal digits: for keys that stand for a text which nobody compares again.
std::string keyOf(std::string_view text);

}  // namespace locution

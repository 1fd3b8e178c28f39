#include "support/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace locution {

uint64_t hashBytes(const void* data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

std::string hexDigits(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string keyOf(std::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return hexDigits(hash.high64) + hexDigits(hash.low64);
}

}  // namespace locution

#include "tune/caches.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace locution::tune {
namespace {

constexpr size_t kLine = 64;

#if defined(__x86_64__)
bool hasClflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}
// Without the order among each other that clflush keeps: several at a time.
__attribute__((target("clflushopt"))) void evictUnordered(const std::byte* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) _mm_clflushopt(const_cast<std::byte*>(data + i));
  _mm_sfence();
}
void evictOrdered(const std::byte* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) _mm_clflush(data + i);
  _mm_mfence();
}
#endif

}  // namespace

void evict(const std::byte* data, size_t bytes) {
#if defined(__x86_64__)
  static const bool isUnordered = hasClflushopt();
  isUnordered ? evictUnordered(data, bytes) : evictOrdered(data, bytes);
#elif defined(__aarch64__)
  for (size_t i = 0; i < bytes; i += kLine) __asm__ volatile("dc civac, %0" ::"r"(data + i) : "memory");
  __asm__ volatile("dsb ish" ::: "memory");
#else
  (void)data;
  (void)bytes;
#endif
}

void touch(const std::byte* data, size_t bytes) {
  uint8_t sum = 0;
  for (size_t i = 0; i < bytes; i += kLine) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(data[i]));
  __asm__ volatile("" ::"r"(sum));
}

}  // namespace locution::tune

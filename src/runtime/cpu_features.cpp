#include "runtime/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace locution::runtime {
namespace {

#if defined(__x86_64__)

enum Register : uint8_t { kEax, kEbx, kEcx, kEdx };
// What the operating system must save on a context switch for the feature to be usable.
enum State : uint8_t { kNone, kAvx, kAvx512, kAmx };

struct Feature {
  std::string_view name;  // LLVM's
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  State state = kNone;
};

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, kEcx, 0},
    {"pclmul", 1, 0, kEcx, 1},
    {"ssse3", 1, 0, kEcx, 9},
    {"fma", 1, 0, kEcx, 12, kAvx},
    {"cx16", 1, 0, kEcx, 13},
    {"sse4.1", 1, 0, kEcx, 19},
    {"sse4.2", 1, 0, kEcx, 20},
    {"crc32", 1, 0, kEcx, 20},
    {"movbe", 1, 0, kEcx, 22},
    {"popcnt", 1, 0, kEcx, 23},
    {"aes", 1, 0, kEcx, 25},
    {"xsave", 1, 0, kEcx, 26},
    {"avx", 1, 0, kEcx, 28, kAvx},
    {"f16c", 1, 0, kEcx, 29, kAvx},
    {"rdrnd", 1, 0, kEcx, 30},
    {"sahf", 0x80000001, 0, kEcx, 0},
    {"lzcnt", 0x80000001, 0, kEcx, 5},
    {"sse4a", 0x80000001, 0, kEcx, 6},
    {"xop", 0x80000001, 0, kEcx, 11, kAvx},
    {"fma4", 0x80000001, 0, kEcx, 16, kAvx},
    {"tbm", 0x80000001, 0, kEcx, 21},
    {"bmi", 7, 0, kEbx, 3},
    {"avx2", 7, 0, kEbx, 5, kAvx},
    {"bmi2", 7, 0, kEbx, 8},
    {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512},
    {"adx", 7, 0, kEbx, 19},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512},
    {"sha", 7, 0, kEbx, 29},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512},
    {"gfni", 7, 0, kEcx, 8},
    {"vaes", 7, 0, kEcx, 9, kAvx},
    {"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    {"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kAvx512},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512},
    {"amx-bf16", 7, 0, kEdx, 22, kAmx},
    {"amx-tile", 7, 0, kEdx, 24, kAmx},
    {"amx-int8", 7, 0, kEdx, 25, kAmx},
    {"sha512", 7, 1, kEax, 0, kAvx},
    {"sm3", 7, 1, kEax, 1, kAvx},
    {"sm4", 7, 1, kEax, 2, kAvx},
    {"avxvnni", 7, 1, kEax, 4, kAvx},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512},
    {"amx-fp16", 7, 1, kEax, 21, kAmx},
    {"avxifma", 7, 1, kEax, 23, kAvx},
    {"avxvnniint8", 7, 1, kEdx, 4, kAvx},
    {"avxneconvert", 7, 1, kEdx, 5, kAvx},
    {"amx-complex", 7, 1, kEdx, 8, kAmx},
    {"avxvnniint16", 7, 1, kEdx, 10, kAvx},
    {"avx10.1", 7, 1, kEdx, 19, kAvx512},
    {"avx10.1-512", 7, 1, kEdx, 19, kAvx512},
    {"avx10.2", 7, 1, kEdx, 19, kAvx512},  // and version 2, checked below
    {"avx10.2-512", 7, 1, kEdx, 19, kAvx512},
};

struct CpuidResult {
  uint32_t regs[4] = {0, 0, 0, 0};
};
CpuidResult cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidResult r;
  // Answers false for leaves past the CPU's last, whose registers would be another leaf's.
  if (!__get_cpuid_count(leaf, subleaf, &r.regs[0], &r.regs[1], &r.regs[2], &r.regs[3])) r = CpuidResult();
  return r;
}

uint64_t savedState() {
  constexpr uint32_t kOsxsave = 1U << 27;
  if ((cpuid(1, 0).regs[kEcx] & kOsxsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool has(const Feature& feature) {
  static constexpr uint64_t kMasks[] = {0, 0x6, 0xe6, 0x60000};
  uint64_t mask = kMasks[feature.state];
  if ((savedState() & mask) != mask) return false;
  if (feature.subleaf > cpuid(feature.leaf, 0).regs[kEax] && feature.leaf == 7) return false;
  if (feature.name.substr(0, 7) == "avx10.2" && (cpuid(0x24, 0).regs[kEbx] & 0xff) < 2) return false;
  return (cpuid(feature.leaf, feature.subleaf).regs[feature.reg] >> feature.bit & 1) != 0;
}

#elif defined(__aarch64__) && defined(__linux__)

struct Feature {
  std::string_view name;  // LLVM's
  unsigned long type;     // AT_HWCAP or AT_HWCAP2
  int bit;
};
constexpr Feature kFeatures[] = {
    {"fp-armv8", AT_HWCAP, 0},   {"neon", AT_HWCAP, 1},     {"aes", AT_HWCAP, 3},       {"sha2", AT_HWCAP, 6},
    {"crc", AT_HWCAP, 7},        {"lse", AT_HWCAP, 8},      {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},
    {"complxnum", AT_HWCAP, 14}, {"dotprod", AT_HWCAP, 20}, {"sve", AT_HWCAP, 22},      {"fp16fml", AT_HWCAP, 23},
    {"sve2", AT_HWCAP2, 1},      {"fptoint", AT_HWCAP2, 8}, {"i8mm", AT_HWCAP2, 13},    {"bf16", AT_HWCAP2, 14},
    {"sme", AT_HWCAP2, 23},      {"cssc", AT_HWCAP2, 34},
};
bool has(const Feature& feature) { return (getauxval(feature.type) >> feature.bit & 1) != 0; }

#else

struct Feature {
  std::string_view name;
};
constexpr Feature kFeatures[] = {{""}};
bool has(const Feature&) { return true; }

#endif

}  // namespace

std::string_view hostArchitecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::vector<std::string> missingFeatures(std::string_view features) {
  std::vector<std::string> missing;
  while (!features.empty()) {
    size_t comma = features.find(',');
    std::string_view name = features.substr(0, comma);
    features.remove_prefix(comma == std::string_view::npos ? features.size() : comma + 1);
    if (name.empty() || name[0] != '+') continue;
    name.remove_prefix(1);
    const auto* feature =
        std::find_if(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& f) { return f.name == name; });
    if (feature != std::end(kFeatures) && !has(*feature)) missing.emplace_back(name);
  }
  return missing;
}

}  // namespace locution::runtime

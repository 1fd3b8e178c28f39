// The machine a model is compiled for: an instruction set and a measured (or built-in) profile. Part of every cache key,
// record and .loc header. Compiling never measures: `locution machine` writes the profile once.
#pragma once

#include <cstdint>
#include <string>

#include "support/status.h"

namespace locution {

struct TargetSpec {
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu = "x86-64-v3";  ///< LLVM's name: x86-64-v2, x86-64-v3, x86-64-v4, znver5, ...
  std::string features;           ///< LLVM's "+avx2,+fma,...": all that the code may use, sorted
  int vectorBytes = 32;
  int vectorRegisters = 16;
  bool hasFma = true;
  bool hasMask = false;  ///< masked loads and stores are cheap (AVX-512)
  bool hasVnni = false;
  bool hasF16c = false;
  /// No algorithm that gives up accuracy for speed (Winograd and its like); what rounds as the plain sum does is allowed.
  bool strict = false;
  int threads = 1;  ///< what is compiled for; a .loc runs at any number
  // The profile. Sizes in bytes a core; rates of one thread.
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t l3Bytes = 16 << 20;
  double peakGflops = 100;  ///< f32 multiply-adds times two
  double readGbs = 10;      ///< from memory

  int lanes(int elementBytes) const { return vectorBytes / elementBytes; }
  /// One canonical line per field; parsed back by `parseTarget`; hashed for keys.
  std::string str() const;
  bool operator==(const TargetSpec&) const = default;
};

Result<TargetSpec> parseTarget(const std::string& text);

}  // namespace locution

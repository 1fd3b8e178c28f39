// Philox4x32-10, a counter-based generator: a block of random bits for every counter, without state.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace locution::hostops {

class Philox {
 public:
  explicit Philox(uint64_t seed) : seed_(seed) {}

  /// In [0, 1), 53 bits.
  double uniform(uint64_t counter) const {
    std::array<uint32_t, 4> b = block(counter);
    return toUniform(b[0], b[1]);
  }
  /// Standard normal, by Box and Muller.
  double normal(uint64_t counter) const {
    std::array<uint32_t, 4> b = block(counter);
    double radius = std::sqrt(-2 * std::log(1 - toUniform(b[0], b[1])));
    return radius * std::cos(2 * std::numbers::pi * toUniform(b[2], b[3]));
  }
  std::array<uint32_t, 4> block(uint64_t counter) const {
    std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
    auto k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
      x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return x;
  }

 private:
  static double toUniform(uint32_t high, uint32_t low) {
    return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
  }
  uint64_t seed_;
};

}  // namespace locution::hostops

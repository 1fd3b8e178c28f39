// Integer arithmetic on sizes that come from files: saturates instead of overflowing.
#pragma once

#include <cstdint>
#include <limits>

namespace locution {

inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
inline int64_t saturatingSub(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
inline int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_mul_overflow(a, b, &out)) return out;
  return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
/// Towards minus infinity; `b` isn't 0.
inline int64_t floorDivide(int64_t a, int64_t b) {
  if (b == -1) return saturatingSub(0, a);
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}
/// a - floorDivide(a, b) * b for b > 0: in [0, b).
inline int64_t floorModulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}
/// Towards plus infinity; `b` isn't 0.
inline int64_t ceilDivide(int64_t a, int64_t b) {
  if (b == -1) return saturatingSub(0, a);
  int64_t q = a / b;
  return q + ((a % b != 0) && ((a < 0) == (b < 0)) ? 1 : 0);
}

}  // namespace locution

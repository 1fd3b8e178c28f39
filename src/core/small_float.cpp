// One routine for all types with a sign, described by a table of formats; float8e8m0, which has neither sign nor mantissa,
// apart. Checked against ml_dtypes bit by bit (small_float_test.cpp keeps the digests).
#include "core/small_float.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace locution {
namespace {

enum class Special : uint8_t {
  Ieee,    // the top exponent holds infinities and NaNs
  Fn,      // no infinity; all ones is NaN
  Fnuz,    // no infinity, no negative zero; the sign bit alone is NaN
  Finite,  // neither
};
struct Format {
  int exponentBits, mantissaBits, bias;
  Special special;
};

Format formatOf(DType type) {
  switch (type) {
    case DType::F16:
      return {5, 10, 15, Special::Ieee};
    case DType::BF16:
      return {8, 7, 127, Special::Ieee};
    case DType::F8E4M3FN:
      return {4, 3, 7, Special::Fn};
    case DType::F8E4M3FNUZ:
      return {4, 3, 8, Special::Fnuz};
    case DType::F8E5M2:
      return {5, 2, 15, Special::Ieee};
    case DType::F8E5M2FNUZ:
      return {5, 2, 16, Special::Fnuz};
    case DType::F4E2M1:
      return {2, 1, 1, Special::Finite};
    default:
      LOCUTION_CHECK(false) << dtypeName(type) << " is not a small float";
  }
  return {};
}

float decode(const Format& f, uint32_t bits) {
  uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
  uint32_t magnitude = bits & (signBit - 1);
  bool negative = (bits & signBit) != 0;
  uint32_t exponent = magnitude >> f.mantissaBits;
  uint32_t mantissa = magnitude & ((1u << f.mantissaBits) - 1);
  uint32_t floatSign = negative ? 0x80000000u : 0;
  bool top = exponent == (1u << f.exponentBits) - 1;
  // NaN payloads are kept, so that every bit pattern survives a round trip where float has room for it.
  if (f.special == Special::Ieee && top)
    return std::bit_cast<float>(floatSign | 0x7f800000u | mantissa << (23 - f.mantissaBits));
  if (f.special == Special::Fn && magnitude == signBit - 1) return std::bit_cast<float>(floatSign | 0x7fc00000u);
  if (f.special == Special::Fnuz && negative && magnitude == 0) return std::bit_cast<float>(0x7fc00000u);
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissaBits)
                              : std::ldexp(static_cast<float>(mantissa | 1u << f.mantissaBits),
                                           static_cast<int>(exponent) - f.bias - f.mantissaBits);
  return negative ? -value : value;
}

// The largest finite magnitude.
uint32_t largest(const Format& f) {
  uint32_t all = (1u << (f.exponentBits + f.mantissaBits)) - 1;
  if (f.special == Special::Ieee) return all - (1u << f.mantissaBits);
  return f.special == Special::Fn ? all - 1 : all;
}

uint32_t encode(const Format& f, float value, bool saturate) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
  uint32_t sign = bits >> 31 ? signBit : 0;
  uint32_t infinity = signBit - (1u << f.mantissaBits);  // where the format is Ieee
  auto nan = [&]() -> uint32_t {
    if (f.special == Special::Fnuz) return signBit;
    if (f.special == Special::Fn) return sign | (signBit - 1);
    return sign | infinity | 1u << (f.mantissaBits - 1);
  };
  if (std::isnan(value)) return f.special == Special::Finite ? sign | largest(f) : nan();
  uint32_t magnitude = largest(f) + 1;
  if (!std::isinf(value)) {
    // The mantissa as an integer with its leading one, in units of 2^(exponent - 23).
    uint32_t exponentField = bits >> 23 & 0xff;
    uint64_t mantissa = (bits & 0x7fffff) | (exponentField ? 0x800000u : 0u);
    int exponent = (exponentField ? static_cast<int>(exponentField) : 1) - 127;
    // A value below the smallest normal loses bits to its fixed exponent.
    int shift = 23 - f.mantissaBits;
    int fieldMinusOne = exponent + f.bias - 1;  // the leading one adds the last step of the exponent field
    if (fieldMinusOne < 0) {
      shift -= fieldMinusOne;
      fieldMinusOne = 0;
    }
    if (shift > 40) {
      magnitude = 0;
    } else {
      uint64_t rounded = mantissa;
      if (shift > 0) rounded = (mantissa + (uint64_t{1} << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift;
      uint64_t wide = (static_cast<uint64_t>(fieldMinusOne) << f.mantissaBits) + rounded;
      magnitude = static_cast<uint32_t>(std::min<uint64_t>(wide, largest(f) + 1));
    }
  }
  if (magnitude > largest(f)) {
    if (saturate || f.special == Special::Finite)
      magnitude = largest(f);
    else
      return f.special == Special::Ieee ? sign | infinity : nan();
  }
  if (f.special == Special::Fnuz && magnitude == 0) return 0;
  return sign | magnitude;
}

}  // namespace

float halfToFloat(uint16_t bits) {
  // Called for whole tensors: the common case without the table.
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 0x1f;
  if (exponent == 0 || exponent == 0x1f) return decode(formatOf(DType::F16), bits);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | static_cast<uint32_t>(bits & 0x3ff) << 13);
}
uint16_t floatToHalf(float value) { return static_cast<uint16_t>(encode(formatOf(DType::F16), value, false)); }

float bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t floatToBfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float smallFloatToFloat(DType type, uint16_t bits) {
  if (type == DType::F16) return halfToFloat(bits);
  if (type == DType::BF16) return bfloat16ToFloat(bits);
  if (type == DType::F8E8M0)
    return (bits & 0xff) == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, (bits & 0xff) - 127);
  return decode(formatOf(type), bits);
}

uint16_t floatToSmallFloat(DType type, float value, bool saturate) {
  if (type == DType::BF16) return floatToBfloat16(value);
  if (type == DType::F8E8M0) return floatToE8M0(value, ScaleRounding::Nearest, saturate);
  return static_cast<uint16_t>(encode(formatOf(type), value, saturate && type != DType::F16));
}

uint8_t floatToE8M0(float value, ScaleRounding rounding, bool saturate) {
  constexpr uint8_t kNan = 0xff;
  if (std::isnan(value) || value < 0) return kNan;
  if (std::isinf(value)) return saturate ? 0xfe : kNan;
  if (value == 0) return saturate ? 0 : kNan;
  int exponent = 0;
  float fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  int power = exponent - 1;
  bool up = rounding == ScaleRounding::Up ? fraction > 0.5f : rounding == ScaleRounding::Nearest && fraction >= 0.75f;
  power += up ? 1 : 0;
  if (power > 127) return saturate ? 0xfe : kNan;
  if (power < -127) return saturate ? 0 : kNan;
  return static_cast<uint8_t>(power + 127);
}

}  // namespace locution

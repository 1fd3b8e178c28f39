// Scalar semantics: integers wrap, nothing traps, floats round once per operation in their type.
// float32 results are computed in double and rounded: for + - * / and sqrt that equals float arithmetic (53 >= 2 * 24 + 2).
#include "loop/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/tensor.h"
#include "support/check.h"

namespace locution::loop {
namespace {

// To float by rounding to odd, so that a second rounding to fewer bits is as if there had been one.
float roundToOdd(double value) {
  auto f = static_cast<float>(value);
  if (static_cast<double>(f) == value || std::isnan(value) || std::isinf(f)) return f;
  if (std::bit_cast<uint32_t>(f) & 1) return f;
  bool away = std::fabs(static_cast<double>(f)) > std::fabs(value);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) + (away ? -1 : 1));
}

double mathOp(BinaryOp op, DType type, double a, double b) {
  switch (op) {
    case BinaryOp::Add:
      return a + b;
    case BinaryOp::Sub:
      return a - b;
    case BinaryOp::Mul:
      return a * b;
    case BinaryOp::Div:
      return a / b;
    case BinaryOp::Mod:
      return std::fmod(a, b);
    case BinaryOp::FloorDiv:
      return std::floor(type == DType::F64 ? a / b : static_cast<double>(static_cast<float>(a / b)));
    case BinaryOp::FloorMod: {
      double r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case BinaryOp::Min:
      return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
    case BinaryOp::Max:
      return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
    default:
      break;
  }
  LOCUTION_CHECK(false) << "not a float operator";
  return 0;
}

int64_t intOp(BinaryOp op, DType type, int64_t a, int64_t b) {
  using U = uint64_t;
  bool unsigned64 = type == DType::U64;
  int bits = dtypeBits(type);
  switch (op) {
    case BinaryOp::Add:
      return static_cast<int64_t>(U(a) + U(b));
    case BinaryOp::Sub:
      return static_cast<int64_t>(U(a) - U(b));
    case BinaryOp::Mul:
      return static_cast<int64_t>(U(a) * U(b));
    case BinaryOp::Div:
    case BinaryOp::FloorDiv: {
      if (b == 0) return 0;
      if (unsigned64) return static_cast<int64_t>(U(a) / U(b));
      if (b == -1) return static_cast<int64_t>(-U(a));
      int64_t q = a / b;
      return op == BinaryOp::FloorDiv && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
    }
    case BinaryOp::Mod:
    case BinaryOp::FloorMod: {
      if (b == 0 || (b == -1 && !unsigned64)) return 0;
      if (unsigned64) return static_cast<int64_t>(U(a) % U(b));
      int64_t r = a % b;
      return op == BinaryOp::FloorMod && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case BinaryOp::Min:
      return (unsigned64 ? U(a) < U(b) : a < b) ? a : b;
    case BinaryOp::Max:
      return (unsigned64 ? U(a) > U(b) : a > b) ? a : b;
    case BinaryOp::And:
      return a & b;
    case BinaryOp::Or:
      return a | b;
    case BinaryOp::Xor:
      return a ^ b;
    case BinaryOp::Shl:
      return U(b) >= U(bits) ? 0 : static_cast<int64_t>(U(a) << b);
    case BinaryOp::Shr:
      if (isUnsignedInt(type) || type == DType::Bool) return U(b) >= U(bits) ? 0 : static_cast<int64_t>(U(a) >> b);
      return a >> (U(b) >= U(bits) ? 63 : b);
    default:
      break;
  }
  LOCUTION_CHECK(false) << "not an integer operator";
  return 0;
}

template <typename T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::Eq:
      return a == b;
    case BinaryOp::Ne:
      return a != b;
    case BinaryOp::Lt:
      return a < b;
    default:
      return a <= b;
  }
}

int64_t floatToInt(DType to, double value) {
  if (std::isnan(value)) return 0;
  if (to == DType::U64) {
    if (value <= 0) return 0;
    return value >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  int64_t low = lowestInt(to), high = highestInt(to);
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(value);
}

}  // namespace

double roundFloat(DType type, double value) {
  switch (type) {
    case DType::F64:
      return value;
    case DType::F32:
      return static_cast<double>(static_cast<float>(value));
    case DType::F16:
      return halfToFloat(floatToHalf(roundToOdd(value)));
    case DType::BF16:
      return bfloat16ToFloat(floatToBfloat16(roundToOdd(value)));
    default:
      return smallFloatToFloat(type, floatToSmallFloat(type, roundToOdd(value), true));
  }
}

int64_t lowestInt(DType type) {
  if (!isSignedInt(type)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - dtypeBits(type));
}

int64_t highestInt(DType type) {
  if (type == DType::Bool) return 1;
  if (isSignedInt(type)) return std::numeric_limits<int64_t>::max() >> (64 - dtypeBits(type));
  return static_cast<int64_t>(~uint64_t{0} >> (64 - dtypeBits(type)));
}

Word evalBinary(BinaryOp op, DType type, Word a, Word b) {
  if (isComparison(op)) {
    if (isFloat(type)) return wordOf(int64_t{compare(op, a.f, b.f)});
    if (type == DType::U64) return wordOf(int64_t{compare(op, uint64_t(a.i), uint64_t(b.i))});
    return wordOf(int64_t{compare(op, a.i, b.i)});
  }
  if (isFloat(type)) {
    double r = mathOp(op, type, a.f, b.f);
    bool small = type != DType::F64 && type != DType::F32;
    return wordOf(roundFloat(type, small ? static_cast<double>(static_cast<float>(r)) : r));
  }
  return wordOf(wrapInt(type, intOp(op, type, a.i, b.i)));
}

Word evalCast(DType from, DType to, Word value) {
  if (isFloat(from)) {
    if (isFloat(to)) return wordOf(roundFloat(to, value.f));
    if (to == DType::Bool) return wordOf(int64_t{value.f != 0});
    return wordOf(floatToInt(to, value.f));
  }
  if (isFloat(to)) {
    if (to == DType::F32)
      return wordOf(double(from == DType::U64 ? static_cast<float>(uint64_t(value.i)) : static_cast<float>(value.i)));
    return wordOf(
        roundFloat(to, from == DType::U64 ? static_cast<double>(uint64_t(value.i)) : static_cast<double>(value.i)));
  }
  if (to == DType::Bool) return wordOf(int64_t{value.i != 0});
  return wordOf(wrapInt(to, value.i));
}

uint64_t wordToBits(DType type, Word value) {
  switch (type) {
    case DType::F64:
      return std::bit_cast<uint64_t>(value.f);
    case DType::F32:
      return std::bit_cast<uint32_t>(static_cast<float>(value.f));
    case DType::F16:
      return floatToHalf(static_cast<float>(value.f));
    case DType::BF16:
      return floatToBfloat16(static_cast<float>(value.f));
    default:
      break;
  }
  // A word holds a value of its type: an infinity stays one.
  if (isFloat(type)) return floatToSmallFloat(type, static_cast<float>(value.f), false);
  int bits = dtypeBits(type);
  return bits == 64 ? static_cast<uint64_t>(value.i) : static_cast<uint64_t>(value.i) & ((uint64_t{1} << bits) - 1);
}

Word bitsToWord(DType type, uint64_t bits) {
  switch (type) {
    case DType::F64:
      return wordOf(std::bit_cast<double>(bits));
    case DType::F32:
      return wordOf(double(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    case DType::F16:
      return wordOf(double(halfToFloat(static_cast<uint16_t>(bits))));
    case DType::BF16:
      return wordOf(double(bfloat16ToFloat(static_cast<uint16_t>(bits))));
    case DType::Bool:
      return wordOf(int64_t{(bits & 0xff) != 0});
    default:
      break;
  }
  if (isFloat(type)) return wordOf(double(smallFloatToFloat(type, static_cast<uint16_t>(bits))));
  return wordOf(wrapInt(type, static_cast<int64_t>(bits)));
}

const IntrinsicFacts* findIntrinsic(std::string_view name) {
  static constexpr IntrinsicFacts kFacts[] = {
#define INTRINSIC(name, arity, group) {Intrinsic::I_##name, #name, arity, IntrinsicGroup::group},
#include "loop/intrinsics.inc"
#undef INTRINSIC
  };
  for (const IntrinsicFacts& facts : kFacts)
    if (facts.name == name) return &facts;
  return nullptr;
}

Word evalIntrinsic(Intrinsic id, DType type, DType result, const Word* args) {
  Word x = args[0];
  switch (id) {
    case Intrinsic::I_abs:
      if (isFloat(type)) return wordOf(std::fabs(x.f));
      return isSignedInt(type) && x.i < 0 ? wordOf(wrapInt(type, static_cast<int64_t>(-static_cast<uint64_t>(x.i))))
                                          : x;
    case Intrinsic::I_prefetch:
      return {};
    case Intrinsic::I_isnan:
      return wordOf(int64_t{std::isnan(x.f)});
    case Intrinsic::I_isinf:
      return wordOf(int64_t{std::isinf(x.f)});
    case Intrinsic::I_not:
      return wordOf(type == DType::Bool ? int64_t{x.i == 0} : wrapInt(type, ~x.i));
    case Intrinsic::I_popcount:
      return wordOf(int64_t{std::popcount(wordToBits(type, x))});
    case Intrinsic::I_bitcast:
      return bitsToWord(result, wordToBits(type, x));
    case Intrinsic::I_join:
      return wordOf(
          wrapInt(result, static_cast<int64_t>(wordToBits(type, x) | wordToBits(type, args[1]) << dtypeBits(type))));
    case Intrinsic::I_madd16: {
      int64_t sum = x.i;
      for (int shift : {0, 16})
        sum += int64_t{static_cast<int16_t>(args[1].i >> shift)} * static_cast<int16_t>(args[2].i >> shift);
      return wordOf(wrapInt(type, sum));
    }
    case Intrinsic::I_dot4: {
      int64_t sum = x.i;
      for (int shift : {0, 8, 16, 24})
        sum += int64_t{static_cast<uint8_t>(args[1].i >> shift)} * static_cast<int8_t>(args[2].i >> shift);
      return wordOf(wrapInt(type, sum));
    }
    case Intrinsic::I_fma:
      if (type == DType::F64) return wordOf(std::fma(x.f, args[1].f, args[2].f));
      return wordOf(roundFloat(type, std::fmaf(float(x.f), float(args[1].f), float(args[2].f))));
    default:
      break;
  }
  double r = 0;
  switch (id) {
    case Intrinsic::I_sqrt:
      r = std::sqrt(x.f);
      break;
    case Intrinsic::I_floor:
      r = std::floor(x.f);
      break;
    case Intrinsic::I_ceil:
      r = std::ceil(x.f);
      break;
    case Intrinsic::I_trunc:
      r = std::trunc(x.f);
      break;
    case Intrinsic::I_round_even:
      r = std::nearbyint(x.f);
      break;
    case Intrinsic::I_exp:
      r = std::exp(x.f);
      break;
    case Intrinsic::I_log:
      r = std::log(x.f);
      break;
    case Intrinsic::I_tanh:
      r = std::tanh(x.f);
      break;
    case Intrinsic::I_erf:
      r = std::erf(x.f);
      break;
    case Intrinsic::I_sigmoid:
      r = x.f >= 0 ? 1 / (1 + std::exp(-x.f)) : std::exp(x.f) / (1 + std::exp(x.f));
      break;
    case Intrinsic::I_pow:
      r = std::pow(x.f, args[1].f);
      break;
    case Intrinsic::I_sin:
      r = std::sin(x.f);
      break;
    case Intrinsic::I_cos:
      r = std::cos(x.f);
      break;
    case Intrinsic::I_tan:
      r = std::tan(x.f);
      break;
    case Intrinsic::I_asin:
      r = std::asin(x.f);
      break;
    case Intrinsic::I_acos:
      r = std::acos(x.f);
      break;
    case Intrinsic::I_atan:
      r = std::atan(x.f);
      break;
    case Intrinsic::I_sinh:
      r = std::sinh(x.f);
      break;
    case Intrinsic::I_cosh:
      r = std::cosh(x.f);
      break;
    case Intrinsic::I_asinh:
      r = std::asinh(x.f);
      break;
    case Intrinsic::I_acosh:
      r = std::acosh(x.f);
      break;
    case Intrinsic::I_atanh:
      r = std::atanh(x.f);
      break;
    case Intrinsic::I_fmod:
      r = std::fmod(x.f, args[1].f);
      break;
    case Intrinsic::I_log1p:
      r = std::log1p(x.f);
      break;
    case Intrinsic::I_expm1:
      r = std::expm1(x.f);
      break;
    default:
      LOCUTION_CHECK(false) << "unhandled intrinsic";
  }
  return wordOf(roundFloat(type, r));
}

}  // namespace locution::loop

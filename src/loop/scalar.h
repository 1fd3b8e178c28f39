// What loop IR's operators mean on one value: the single definition that constant folding and the interpreter share.
// A value is a Word: floats of every type as a double that the type can represent, integers sign- or zero-extended to 64 bits
// (uint64 as its bits), bool as 0 or 1. Small floats compute in float and round at each result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loop/expr.h"

namespace locution::loop {

union Word {
  int64_t i;
  double f;
};
inline Word wordOf(int64_t i) {
  Word w;
  w.i = i;
  return w;
}
inline Word wordOf(double f) {
  Word w;
  w.f = f;
  return w;
}

/// Wraps to the width of an integer type (bool: its lowest bit).
inline int64_t wrapInt(DType type, int64_t value) {
  int bits = type == DType::Bool ? 1 : dtypeBits(type);
  if (bits == 64) return value;
  int shift = 64 - bits;
  auto up = static_cast<uint64_t>(value) << shift;
  return isSignedInt(type) ? static_cast<int64_t>(up) >> shift : static_cast<int64_t>(up >> shift);
}
/// The nearest value of a float type, ties to even; 8-bit and smaller types saturate.
double roundFloat(DType type, double value);
/// Smallest and largest value of an integer type (uint64: largest is -1 as bits).
int64_t lowestInt(DType type);
int64_t highestInt(DType type);

/// `binary` on one value; `type` is that of the operands. Comparisons give 0 or 1.
Word evalBinary(BinaryOp op, DType type, Word a, Word b);
/// The conversion of a Cast.
Word evalCast(DType from, DType to, Word value);
/// The bits of a value as memory holds them, and back.
uint64_t wordToBits(DType type, Word value);
Word bitsToWord(DType type, uint64_t bits);

inline bool isComparison(BinaryOp op) {
  return op == BinaryOp::Eq || op == BinaryOp::Ne || op == BinaryOp::Lt || op == BinaryOp::Le;
}
/// Taking a lane twice changes nothing.
inline bool isIdempotent(BinaryOp op) {
  return op == BinaryOp::Min || op == BinaryOp::Max || op == BinaryOp::And || op == BinaryOp::Or;
}
inline bool isCommutative(BinaryOp op) {
  return op == BinaryOp::Add || op == BinaryOp::Mul || op == BinaryOp::Min || op == BinaryOp::Max ||
         op == BinaryOp::And || op == BinaryOp::Or || op == BinaryOp::Xor || op == BinaryOp::Eq || op == BinaryOp::Ne;
}

/// The functions that Call may name.
enum class Intrinsic : uint8_t {
#define INTRINSIC(name, arity, group) I_##name,
#include "loop/intrinsics.inc"
#undef INTRINSIC
};
enum class IntrinsicGroup : uint8_t { Cheap, Vector, Table, Hint };
struct IntrinsicFacts {
  Intrinsic id;
  std::string_view name;
  int arity;
  IntrinsicGroup group;
};
/// Null when there is none of that name.
const IntrinsicFacts* findIntrinsic(std::string_view name);
/// An intrinsic on one value each; `type` is that of the arguments, `result` that of the call (they differ for bitcast).
Word evalIntrinsic(Intrinsic id, DType type, DType result, const Word* args);

}  // namespace locution::loop

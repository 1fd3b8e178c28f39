#include "ops/convert.h"

#include <cmath>

#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

Expr bits(DType type, int64_t pattern) { return loop::bitcast(type, loop::intImm(DType::U8, pattern)); }

/// What becomes of values that round past the largest finite one.
struct Overflow {
  double limit;  ///< the smallest magnitude that does
  int64_t positive, negative, nan;
};
Overflow overflowOf(DType type) {
  switch (type) {
    case DType::F8E4M3FN:
      return {std::nextafter(464.0f, 1000.0f), 0x7f, 0xff, 0x7f};  // 464 ties to 448
    case DType::F8E4M3FNUZ:
      return {248, 0x80, 0x80, 0x80};
    case DType::F8E5M2:
      return {61440, 0x7c, 0xfc, 0x7f};
    default:
      return {61440, 0x80, 0x80, 0x80};  // F8E5M2FNUZ
  }
}

Expr toE8M0(const Expr& value, bool saturate, RoundMode round) {
  return shared(loop::bitcast(DType::U32, loop::cast(DType::F32, value)), [&](const Expr& u) {
    auto word = [](int64_t v) { return loop::intImm(DType::U32, v); };
    Expr exponent = loop::binary(loop::BinaryOp::And, loop::binary(loop::BinaryOp::Shr, u, word(23)), word(0xff));
    Expr fraction = loop::binary(loop::BinaryOp::And, u, word(0x7fffff));
    return shared(exponent, [&](const Expr& e) {
      Expr half = word(0x400000), one = word(1), zero = word(0);
      Expr up = loop::constant(DType::Bool, 0);
      if (round == RoundMode::Up) up = lt(zero, fraction);
      // A tie goes up, but from exponent 0.
      if (round == RoundMode::Nearest) up = logicalOr(lt(half, fraction), logicalAnd(eq(half, fraction), lt(zero, e)));
      Expr rounded = e + loop::select(up, one, zero);
      Expr largest = saturate ? minOf(rounded, word(0xfe)) : rounded;
      Expr result = loop::select(eq(e, word(0xff)), e, largest);
      // Infinity saturates too; NaN stays.
      if (saturate)
        result = loop::select(logicalAnd(eq(e, word(0xff)), eq(fraction, zero)), word(0xfe), result);
      else
        result = loop::select(eq(loop::binary(loop::BinaryOp::And, u, word(0x7fffffff)), zero), word(0xff), result);
      return loop::bitcast(DType::F8E8M0, loop::cast(DType::U8, result));
    });
  });
}

}  // namespace

Expr convert(DType type, const Expr& value, bool saturate, RoundMode round) {
  DType from = value->type.dtype;
  if (from == type) return value;
  if (type == DType::F8E8M0) return toE8M0(value, saturate, round);
  // Integers of less than a byte drop high bits of the truncated number; a float4 has no NaN, which becomes -0.
  if (isFloat(from) && isInteger(type) && isSubByte(type)) return loop::cast(type, loop::cast(DType::I32, value));
  if (isFloat(from) && type == DType::F4E2M1) {
    Expr x = loop::cast(from == DType::F64 ? DType::F64 : DType::F32, value);
    return loop::cast(type, shared(x, [](const Expr& v) {
                        return loop::select(loop::call("isnan", {v}), loop::floatImm(v->type.dtype, -0.0), v);
                      }));
  }
  bool eightBits = isFloat(type) && dtypeBits(type) == 8;
  if (!eightBits) return loop::cast(type, value);
  Expr wide = from == DType::F64 ? value : loop::cast(DType::F32, value);
  if (saturate) return loop::cast(type, wide);
  return shared(wide, [&](const Expr& x) {
    Overflow o = overflowOf(type);
    DType t = x->type.dtype;
    Expr limit = loop::floatImm(t, o.limit);
    Expr out = loop::select(le(limit, x), bits(type, o.positive), loop::cast(type, x));
    return loop::select(le(x, loop::floatImm(t, -o.limit)), bits(type, o.negative), out);
  });
}

}  // namespace locution::ops

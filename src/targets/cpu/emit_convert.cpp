// Conversions. Floats of 16 bits and fewer travel as integers of their bits and are computed with in float32; without F16C, and
// for all but float16, their conversions are integer arithmetic, because LLVM would call a library.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "core/small_float.h"
#include "loop/scalar.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

bool isSmallFloat(DType type) { return isFloat(type) && type != DType::F32 && type != DType::F64; }

/// Floats without a fraction (or no numbers).
bool isWhole(const loop::Expr& e) {
  if (const auto* b = loop::as<loop::Broadcast>(e)) return isWhole(b->value);
  if (const auto* f = loop::as<loop::FloatImm>(e)) return f->value == std::nearbyint(f->value);
  if (const auto* call = loop::as<loop::Call>(e)) return call->name == "round_even";
  const auto* sum = loop::as<loop::Binary>(e);
  return sum && (sum->op == loop::BinaryOp::Add || sum->op == loop::BinaryOp::Sub) && isWhole(sum->a) &&
         isWhole(sum->b);
}

enum class Special : uint8_t { Ieee, Fn, Fnuz, Finite };
/// As in core/small_float.cpp; `largest` is the largest finite magnitude.
struct Format {
  int mantissaBits, bias;
  int64_t signBit, largest;
  Special special;
};

Format formatOf(DType type) {
  switch (type) {
    case DType::F8E4M3FN:
      return {3, 7, 0x80, 0x7e, Special::Fn};
    case DType::F8E4M3FNUZ:
      return {3, 8, 0x80, 0x7f, Special::Fnuz};
    case DType::F8E5M2:
      return {2, 15, 0x80, 0x7b, Special::Ieee};
    case DType::F8E5M2FNUZ:
      return {2, 16, 0x80, 0x7f, Special::Fnuz};
    case DType::F4E2M1:
      return {1, 1, 0x8, 0x7, Special::Finite};
    default:
      return {10, 15, 0x8000, 0x7bff, Special::Ieee};
  }
}

}  // namespace

llvm::Value* Emitter::floatConstant(DType type, double value) {
  if (!isSmallFloat(type)) return floatOf(scalarType(type), value);
  return intOf(scalarType(type), floatToSmallFloat(type, static_cast<float>(value), false));
}

llvm::Value* Emitter::widen(llvm::Value* v, DType small) {
  auto* intType = v->getType()->getWithNewType(b_.getInt32Ty());
  auto* floatType = v->getType()->getWithNewType(b_.getFloatTy());
  auto num = [&](int64_t x) { return intOf(intType, x); };
  if (small == DType::F16 && target_.hasF16c) {
    return b_.CreateFPExt(b_.CreateBitCast(v, v->getType()->getWithNewType(b_.getHalfTy())), floatType);
  }
  llvm::Value* bits = b_.CreateZExt(v, intType);
  if (small == DType::BF16) return b_.CreateBitCast(b_.CreateShl(bits, 16), floatType);
  if (small == DType::F8E8M0) {
    llvm::Value* power = b_.CreateShl(bits, 23);
    power = b_.CreateSelect(b_.CreateICmpEQ(bits, num(0)), num(0x00400000), power);
    return b_.CreateBitCast(b_.CreateSelect(b_.CreateICmpEQ(bits, num(0xff)), num(0x7fc00000), power), floatType);
  }
  // The exponent is rebased by a multiplication, which is exact and handles denormals.
  Format f = formatOf(small);
  llvm::Value* magnitude = b_.CreateAnd(bits, num(f.signBit - 1));
  llvm::Value* field = b_.CreateShl(magnitude, static_cast<uint64_t>(23 - f.mantissaBits));
  double scale = 1;
  for (int i = f.bias; i < 127; ++i) scale *= 2;
  llvm::Value* scaledUp = b_.CreateFMul(b_.CreateBitCast(field, floatType), floatOf(floatType, scale));
  llvm::Value* result = b_.CreateBitCast(scaledUp, intType);
  if (f.special == Special::Ieee) {
    result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, num(f.largest)), b_.CreateOr(field, num(0x7f800000)), result);
  } else if (f.special == Special::Fn) {
    result = b_.CreateSelect(b_.CreateICmpEQ(magnitude, num(f.signBit - 1)), num(0x7fc00000), result);
  }
  llvm::Value* sign = b_.CreateICmpNE(b_.CreateAnd(bits, num(f.signBit)), num(0));
  result = b_.CreateOr(result, b_.CreateSelect(sign, num(0x80000000), num(0)));
  if (f.special == Special::Fnuz)
    result = b_.CreateSelect(b_.CreateICmpEQ(bits, num(f.signBit)), num(0x7fc00000), result);
  return b_.CreateBitCast(result, floatType);
}

llvm::Value* Emitter::narrow(llvm::Value* v, DType small) {
  auto* intType = v->getType()->getWithNewType(b_.getInt32Ty());
  auto* outType = v->getType()->getWithNewType(scalarType(small));
  auto num = [&](int64_t x) { return intOf(intType, x); };
  if (small == DType::F16 && target_.hasF16c) {
    // Not to be contracted with a conversion from double before it: the CPU has none from double to half.
    const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
    b_.clearFastMathFlags();
    return b_.CreateBitCast(b_.CreateFPTrunc(v, v->getType()->getWithNewType(b_.getHalfTy())), outType);
  }
  llvm::Value* bits = b_.CreateBitCast(v, intType);
  llvm::Value* magnitude = b_.CreateAnd(bits, num(0x7fffffff));
  llvm::Value* isNan = b_.CreateICmpUGT(magnitude, num(0x7f800000));
  if (small == DType::BF16) {
    llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), num(1));
    llvm::Value* rounded = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, num(0x7fff)), odd), 16);
    llvm::Value* quiet = b_.CreateOr(b_.CreateLShr(bits, 16), num(0x40));
    return b_.CreateTrunc(b_.CreateSelect(isNan, quiet, rounded), outType);
  }
  if (small == DType::F8E8M0) {
    llvm::Value* half = b_.CreateAnd(b_.CreateLShr(magnitude, 22), num(1));
    llvm::Value* power = b_.CreateAdd(b_.CreateLShr(magnitude, 23), half);
    power = b_.CreateSelect(b_.CreateICmpUGT(power, num(0xfe)), num(0xfe), power);
    llvm::Value* tiny = b_.CreateZExt(b_.CreateICmpUGE(magnitude, num(0x600000)), intType);
    power = b_.CreateSelect(b_.CreateICmpULT(magnitude, num(0x800000)), tiny, power);
    llvm::Value* negative = b_.CreateFCmpOLT(v, floatOf(v->getType(), 0));
    return b_.CreateTrunc(b_.CreateSelect(b_.CreateOr(isNan, negative), num(0xff), power), outType);
  }
  Format f = formatOf(small);
  int shift = 23 - f.mantissaBits;
  int64_t rebase = int64_t{127 - f.bias} << 23;
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, static_cast<uint64_t>(shift)), num(1));
  llvm::Value* moved = b_.CreateAdd(magnitude, num((int64_t{1} << (shift - 1)) - 1 - rebase));
  llvm::Value* normal = b_.CreateLShr(b_.CreateAdd(moved, odd), static_cast<uint64_t>(shift));
  // Adding a power of two whose last place is the smallest denormal rounds to it.
  int64_t magicBits = int64_t{151 - f.bias - f.mantissaBits} << 23;
  llvm::Value* magic = b_.CreateBitCast(num(magicBits), v->getType());
  llvm::Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, v->getType()), magic);
  llvm::Value* denormal = b_.CreateSub(b_.CreateBitCast(sum, intType), num(magicBits));
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, num(rebase + (1 << 23))), denormal, normal);
  bool saturates = small != DType::F16;
  int64_t top = saturates ? f.largest : f.largest + 1;
  // Infinity lies far above; its rebased exponent does too.
  result = b_.CreateSelect(b_.CreateICmpUGT(result, num(f.largest)), num(top), result);
  llvm::Value* sign = b_.CreateICmpNE(b_.CreateAnd(bits, num(0x80000000)), num(0));
  llvm::Value* signBit = b_.CreateSelect(sign, num(f.signBit), num(0));
  if (f.special == Special::Fnuz) {
    result = b_.CreateSelect(b_.CreateICmpEQ(result, num(0)), num(0), b_.CreateOr(result, signBit));
    result = b_.CreateSelect(isNan, num(f.signBit), result);
  } else {
    int64_t nan = f.special == Special::Fn ? f.signBit - 1 : f.largest + 1 + (int64_t{1} << (f.mantissaBits - 1));
    if (f.special == Special::Finite) nan = f.largest;
    result = b_.CreateOr(b_.CreateSelect(isNan, num(nan), result), signBit);
  }
  return b_.CreateTrunc(result, outType);
}

// Within the range of an integer type of at most 16 bits; NaN becomes its lowest value, because a comparison with NaN is false.
llvm::Value* Emitter::clampedTo(llvm::Value* v, DType narrow) {
  auto bound = [&](int64_t value) { return floatOf(v->getType(), static_cast<double>(value)); };
  llvm::Value *low = bound(loop::lowestInt(narrow)), *high = bound(loop::highestInt(narrow));
  llvm::Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(v, low), v, low);
  return b_.CreateSelect(b_.CreateFCmpOLT(clamped, high), clamped, high);
}

// What float32 becomes as the narrow integer, held in `to`.
llvm::Value* Emitter::toNarrowInt(llvm::Value* v, DType narrow, DType to) {
  llvm::Value* whole = b_.CreateFPToSI(clampedTo(v, narrow), v->getType()->getWithNewType(b_.getInt32Ty()));
  if (isSignedInt(narrow))
    whole = b_.CreateSelect(b_.CreateFCmpUNO(v, v), llvm::Constant::getNullValue(whole->getType()), whole);
  return b_.CreateSExtOrTrunc(whole, v->getType()->getWithNewType(scalarType(to)));
}

// A value that is quantised only to be widened or dequantised again stays in the registers it is in: no instruction packs and unpacks
// it. Null: `e` is no such conversion.
llvm::Value* Emitter::throughNarrowInt(const loop::Expr& e, int lanes) {
  const DType to = e->type.dtype;
  const auto* inner = loop::as<loop::Cast>(loop::as<loop::Cast>(e)->value);
  // Wider signed integers in between keep what they are given.
  while (inner && isSignedInt(inner->type.dtype) && loop::as<loop::Cast>(inner->value) &&
         isInteger(inner->value->type.dtype) && dtypeBits(inner->type.dtype) > dtypeBits(inner->value->type.dtype))
    inner = loop::as<loop::Cast>(inner->value);
  if (!inner) return nullptr;
  const DType narrow = inner->type.dtype;
  if (!isInteger(narrow) || dtypeBits(narrow) < 8 || dtypeBits(narrow) > 16 || inner->value->type.dtype != DType::F32)
    return nullptr;
  if (isSignedInt(to) && dtypeBits(to) > dtypeBits(narrow) && dtypeBits(to) <= 32)
    return toNarrowInt(splat(emit(inner->value), lanes), narrow, to);
  if (to == DType::F32 && !isSignedInt(narrow) && isWhole(inner->value))
    return clampedTo(splat(emit(inner->value), lanes), narrow);
  return nullptr;
}

llvm::Value* Emitter::convert(llvm::Value* v, DType from, DType to) {
  if (from == to) return v;
  if (to == DType::Bool && isSmallFloat(from)) return convert(widen(v, from), DType::F32, to);
  if (isSmallFloat(from)) return convert(widen(v, from), DType::F32, to);
  auto* type = v->getType()->getWithNewType(scalarType(to));
  if (isSmallFloat(to)) {
    if (from == DType::F32) return narrow(v, to);
    if (from != DType::F64) {
      bool exact = dtypeBits(from) <= 24 || from == DType::Bool;
      return convert(convert(v, from, exact ? DType::F32 : DType::F64), exact ? DType::F32 : DType::F64, to);
    }
    // To float by rounding to odd, so that the second rounding is as if there had been one.
    llvm::Value* f = b_.CreateFPTrunc(v, v->getType()->getWithNewType(b_.getFloatTy()));
    llvm::Value* back = b_.CreateFPExt(f, v->getType());
    auto* intType = v->getType()->getWithNewType(b_.getInt32Ty());
    llvm::Value* bits = b_.CreateBitCast(f, intType);
    auto abs = [&](llvm::Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
    llvm::Value* away = b_.CreateFCmpOGT(abs(back), abs(v));
    llvm::Value* moved = b_.CreateAdd(bits, b_.CreateSelect(away, intOf(intType, -1), intOf(intType, 1)));
    llvm::Value* isInfinite = b_.CreateFCmpOEQ(abs(f), floatOf(f->getType(), __builtin_inf()));
    llvm::Value* keep = b_.CreateOr(b_.CreateFCmpUEQ(back, v), isInfinite);
    keep = b_.CreateOr(keep, b_.CreateICmpNE(b_.CreateAnd(bits, intOf(intType, 1)), intOf(intType, 0)));
    return narrow(b_.CreateBitCast(b_.CreateSelect(keep, bits, moved), f->getType()), to);
  }
  if (isFloat(from)) {
    if (to == DType::Bool) return b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    if (to == DType::F64) return b_.CreateFPExt(v, type);
    if (to == DType::F32) return b_.CreateFPTrunc(v, type);
    // LLVM would convert narrow integers lane by lane: clamped to their range, every value fits int32's conversion.
    if (from == DType::F32 && dtypeBits(to) <= 16) return toNarrowInt(v, to, to);
    auto id = isSignedInt(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
  }
  if (isFloat(to)) return isSignedInt(from) ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  if (to == DType::Bool) return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  return isSignedInt(from) ? b_.CreateSExtOrTrunc(v, type) : b_.CreateZExtOrTrunc(v, type);
}

}  // namespace locution::targets::cpu

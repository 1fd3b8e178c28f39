// Operators and intrinsics on values of one dtype. Nothing traps; contraction to multiply-add is the only liberty taken.
#include <llvm/IR/Intrinsics.h>

#include "loop/scalar.h"
#include "runtime/kernel_abi.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

using loop::BinaryOp;

bool isSmallFloat(DType type) { return isFloat(type) && type != DType::F32 && type != DType::F64; }

/// A float constant (or a splat of one) that isn't NaN.
bool isNumber(llvm::Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* f = llvm::dyn_cast_if_present<llvm::ConstantFP>(constant);
  return f && !f->isNaN();
}

bool splatInt(llvm::Value* v, int64_t* value) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* i = llvm::dyn_cast_if_present<llvm::ConstantInt>(constant);
  if (i) *value = i->getSExtValue();
  return i != nullptr;
}

int64_t tableIndex(const std::string& name, bool isDouble) {
  int64_t index = 0;
#define MATH_F32_1(entry)                        \
  if (!isDouble && name == #entry) return index; \
  ++index;
#define MATH_F32_2(entry) MATH_F32_1(entry)
#define MATH_F64_1(entry)                       \
  if (isDouble && name == #entry) return index; \
  ++index;
#define MATH_F64_2(entry) MATH_F64_1(entry)
#include "runtime/math_table.inc"
#undef MATH_F32_1
#undef MATH_F32_2
#undef MATH_F64_1
#undef MATH_F64_2
  return -1;
}

}  // namespace

llvm::Value* Emitter::arith(BinaryOp op, DType type, llvm::Value* a, llvm::Value* b) {
  if (isSmallFloat(type)) {
    llvm::Value* r = floatArith(op, DType::F32, widen(a, type), widen(b, type));
    return loop::isComparison(op) ? r : narrow(r, type);
  }
  return isFloat(type) ? floatArith(op, type, a, b) : intArith(op, type, a, b);
}

llvm::Value* Emitter::floatArith(BinaryOp op, DType type, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case BinaryOp::Add:
      return b_.CreateFAdd(a, b);
    case BinaryOp::Sub:
      return b_.CreateFSub(a, b);
    case BinaryOp::Mul:
      return b_.CreateFMul(a, b);
    case BinaryOp::Div:
      return b_.CreateFDiv(a, b);
    case BinaryOp::Mod:
      return tableCall("fmod", type, {a, b});
    case BinaryOp::FloorDiv:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, b));
    case BinaryOp::FloorMod: {
      llvm::Value* r = tableCall("fmod", type, {a, b});
      auto* zero = llvm::Constant::getNullValue(r->getType());
      llvm::Value* differ = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(b, zero));
      return b_.CreateSelect(b_.CreateAnd(b_.CreateFCmpUNE(r, zero), differ), b_.CreateFAdd(r, b), r);
    }
    case BinaryOp::Min:
      return floatMinMax(false, a, b);
    case BinaryOp::Max:
      return floatMinMax(true, a, b);
    case BinaryOp::Eq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::Lt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::Le:
      return b_.CreateFCmpOLE(a, b);
    default:
      return fail("a bitwise operator on floats", {type, 1});
  }
}

// x86's minps(x, y) is x < y ? x : y. With the number first, a NaN in the other comes through for free.
llvm::Value* Emitter::floatMinMax(bool isMax, llvm::Value* a, llvm::Value* b) {
  auto first = [&](llvm::Value* x, llvm::Value* y) {
    llvm::Value* chosen = isMax ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
    return b_.CreateSelect(chosen, x, y);
  };
  if (isNumber(b)) return first(b, a);
  llvm::Value* r = first(a, b);
  return isNumber(a) ? r : b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, r);
}

llvm::Value* Emitter::intArith(BinaryOp op, DType type, llvm::Value* a, llvm::Value* b) {
  bool isSigned = isSignedInt(type);
  switch (op) {
    case BinaryOp::Add:
      return b_.CreateAdd(a, b);
    case BinaryOp::Sub:
      return b_.CreateSub(a, b);
    case BinaryOp::Mul:
      return b_.CreateMul(a, b);
    case BinaryOp::Div:
    case BinaryOp::Mod:
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
      return divide(op, type, a, b);
    case BinaryOp::Min:
      return b_.CreateSelect(isSigned ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b), a, b);
    case BinaryOp::Max:
      return b_.CreateSelect(isSigned ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b), a, b);
    case BinaryOp::And:
      return b_.CreateAnd(a, b);
    case BinaryOp::Or:
      return b_.CreateOr(a, b);
    case BinaryOp::Xor:
      return b_.CreateXor(a, b);
    case BinaryOp::Shl:
    case BinaryOp::Shr: {
      // Too wide a shift leaves zeros, or the sign.
      int64_t width = type == DType::Bool ? 1 : dtypeBits(type);
      llvm::Value* limit = intOf(a->getType(), width - 1);
      llvm::Value* tooWide = b_.CreateICmpUGT(b, limit);
      llvm::Value* amount = b_.CreateSelect(tooWide, limit, b);
      if (op == BinaryOp::Shr && isSigned) return b_.CreateAShr(a, amount);
      llvm::Value* shifted = op == BinaryOp::Shl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
      return b_.CreateSelect(tooWide, llvm::Constant::getNullValue(a->getType()), shifted);
    }
    case BinaryOp::Eq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::Lt:
      return isSigned ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::Le:
      return isSigned ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
  }
  return fail("unknown operator", {type, 1});
}

// Quotient and remainder by 0 are 0; by -1 the quotient wraps.
llvm::Value* Emitter::divide(BinaryOp op, DType type, llvm::Value* a, llvm::Value* b) {
  bool wantsRest = op == BinaryOp::Mod || op == BinaryOp::FloorMod;
  bool isSigned = isSignedInt(type);
  bool floors = isSigned && (op == BinaryOp::FloorDiv || op == BinaryOp::FloorMod);
  auto* zero = llvm::Constant::getNullValue(a->getType());
  auto* one = intOf(a->getType(), 1);
  int64_t known = 0;
  bool isKnown = splatInt(b, &known);
  if (isKnown && known == 0) return zero;
  bool harmless = isKnown && (!isSigned || known != -1);
  if (harmless && floors && known > 0 && (known & (known - 1)) == 0) {
    if (wantsRest) return b_.CreateAnd(a, intOf(a->getType(), known - 1));
    return b_.CreateAShr(a, static_cast<uint64_t>(__builtin_ctzll(static_cast<uint64_t>(known))));
  }
  llvm::Value* divisor = b;
  llvm::Value* isZero = nullptr;
  llvm::Value* isMinusOne = nullptr;
  if (!harmless) {
    isZero = b_.CreateICmpEQ(b, zero);
    llvm::Value* replace = isZero;
    if (isSigned) {
      isMinusOne = b_.CreateICmpEQ(b, intOf(a->getType(), -1));
      replace = b_.CreateOr(isZero, isMinusOne);
    }
    divisor = b_.CreateSelect(replace, one, b);
  }
  llvm::Value* quotient = isSigned ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor);
  llvm::Value* rest = wantsRest || floors ? b_.CreateSub(a, b_.CreateMul(quotient, divisor)) : nullptr;
  if (floors) {
    llvm::Value* differ = isKnown && known > 0 ? b_.CreateICmpSLT(rest, zero)
                                               : b_.CreateAnd(b_.CreateICmpNE(rest, zero),
                                                              b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero));
    quotient = b_.CreateSelect(differ, b_.CreateSub(quotient, one), quotient);
    rest = b_.CreateSelect(differ, b_.CreateAdd(rest, divisor), rest);
  }
  if (harmless) return wantsRest ? rest : quotient;
  // The stand-in divisor 1 left the rest at 0 already.
  if (wantsRest) return rest;
  if (isMinusOne) quotient = b_.CreateSelect(isMinusOne, b_.CreateSub(zero, a), quotient);
  return b_.CreateSelect(isZero, zero, quotient);
}

llvm::Value* Emitter::emitCall(const loop::Call& e) {
  const loop::IntrinsicFacts* facts = loop::findIntrinsic(e.name);
  if (!facts || static_cast<size_t>(facts->arity) != e.args.size()) return fail("unknown intrinsic " + e.name, e.type);
  if (e.name == "prefetch") return emitPrefetch(e);
  if (e.name == "join") return emitJoin(e);
  if (e.name == "madd16" || e.name == "dot4") return emitDot(e);
  std::vector<llvm::Value*> args;
  for (const auto& arg : e.args) args.push_back(splat(emit(arg), e.type.lanes));
  DType type = e.args[0]->type.dtype;
  if (e.name == "bitcast") {
    if (dtypeBits(type) != dtypeBits(e.type.dtype) || type == DType::Bool || e.type.dtype == DType::Bool) {
      return fail("a bitcast between types of different width", e.type);
    }
    return b_.CreateBitCast(args[0], valueType(e.type));
  }
  if (!isSmallFloat(type)) return cheapIntrinsic(e, type, args);
  bool signIsApart = type != DType::F8E4M3FNUZ && type != DType::F8E5M2FNUZ && type != DType::F8E8M0;
  if (e.name == "abs" && signIsApart) {
    // By its bits: narrowing would saturate an infinity of 8 bits.
    int64_t magnitude = (int64_t{1} << (dtypeBits(type) - 1)) - 1;
    return b_.CreateAnd(args[0], intOf(args[0]->getType(), magnitude));
  }
  for (auto& arg : args) arg = widen(arg, type);
  llvm::Value* r = cheapIntrinsic(e, DType::F32, args);
  return e.type.dtype == DType::Bool ? r : narrow(r, type);
}

llvm::Value* Emitter::cheapIntrinsic(const loop::Call& e, DType type, const std::vector<llvm::Value*>& args) {
  llvm::Value* x = args[0];
  auto unary = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, x); };
  using loop::Intrinsic;
  Intrinsic id = loop::findIntrinsic(e.name)->id;
  if (!isFloat(type)) {
    switch (id) {
      case Intrinsic::I_abs:
        return isSignedInt(type) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
      case Intrinsic::I_not:
        return b_.CreateNot(x);
      case Intrinsic::I_popcount:
        return unary(llvm::Intrinsic::ctpop);
      default:
        return fail("intrinsic " + e.name + " on " + std::string(dtypeName(type)), e.type);
    }
  }
  switch (id) {
    case Intrinsic::I_abs:
      return unary(llvm::Intrinsic::fabs);
    case Intrinsic::I_sqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Intrinsic::I_floor:
      return unary(llvm::Intrinsic::floor);
    case Intrinsic::I_ceil:
      return unary(llvm::Intrinsic::ceil);
    case Intrinsic::I_trunc:
      return unary(llvm::Intrinsic::trunc);
    case Intrinsic::I_round_even:
      return unary(llvm::Intrinsic::roundeven);
    case Intrinsic::I_isnan:
      return b_.CreateFCmpUNO(x, x);
    case Intrinsic::I_isinf:
      return b_.CreateFCmpOEQ(unary(llvm::Intrinsic::fabs), floatOf(x->getType(), __builtin_inf()));
    case Intrinsic::I_fma:
      return type == DType::F64 && !target_.hasFma
                 ? fail("a float64 fma on " + target_.cpu + ", which has none", e.type)
                 : multiplyAdd(x, args[1], args[2]);
    default:
      return tableCall(e.name, type, args);
  }
}

llvm::Value* Emitter::multiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  if (target_.hasFma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  // The product is exact in double; the sum is rounded to odd there, so that rounding it to float is as if there had been one.
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  auto* wide = a->getType()->getWithNewType(b_.getDoubleTy());
  auto* bitsType = a->getType()->getWithNewType(b_.getInt64Ty());
  llvm::Value* product = b_.CreateFMul(b_.CreateFPExt(a, wide), b_.CreateFPExt(b, wide));
  llvm::Value* addend = b_.CreateFPExt(c, wide);
  llvm::Value* sum = b_.CreateFAdd(product, addend);
  llvm::Value* part = b_.CreateFSub(sum, product);
  llvm::Value* error = b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, part)), b_.CreateFSub(addend, part));
  auto* zero = llvm::Constant::getNullValue(wide);
  llvm::Value* bits = b_.CreateBitCast(sum, bitsType);
  llvm::Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, intOf(bitsType, 1)), intOf(bitsType, 0));
  // Away from zero where error and sum have one sign.
  llvm::Value* outward = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(sum, zero));
  llvm::Value* odd = b_.CreateAdd(bits, b_.CreateSelect(outward, intOf(bitsType, 1), intOf(bitsType, -1)));
  llvm::Value* adjust = b_.CreateAnd(even, b_.CreateFCmpONE(error, zero));
  return b_.CreateFPTrunc(b_.CreateBitCast(b_.CreateSelect(adjust, odd, bits), wide), a->getType());
}

llvm::Value* Emitter::tableCall(const std::string& name, DType type, const std::vector<llvm::Value*>& args) {
  int64_t index = tableIndex(name, type == DType::F64);
  if (index < 0) return fail("no function " + name + " for " + std::string(dtypeName(type)), {type, 1});
  auto* scalar = scalarType(type);
  auto* pointer =
      b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), math_, static_cast<uint64_t>(index)), name);
  pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  auto* signature = llvm::FunctionType::get(scalar, std::vector<llvm::Type*>(args.size(), scalar), false);
  auto one = [&](const std::vector<llvm::Value*>& values) -> llvm::Value* {
    auto* call = b_.CreateCall(signature, pointer, values);
    call->setDoesNotThrow();
    call->setDoesNotAccessMemory();
    return call;
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (!vector) return one(args);
  llvm::Value* result = llvm::PoisonValue::get(vector);
  for (uint64_t i = 0; i < vector->getNumElements(); ++i) {
    std::vector<llvm::Value*> lane;
    for (auto* arg : args) lane.push_back(b_.CreateExtractElement(arg, i));
    result = b_.CreateInsertElement(result, one(lane), i);
  }
  return result;
}

}  // namespace locution::targets::cpu

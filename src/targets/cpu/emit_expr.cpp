// Values of expressions: dispatch, selects, ramps, masks, reductions across lanes. A node's value is kept while it holds: within
// one statement, and within the branch or let that made it.
#include "loop/build.h"
#include "loop/scalar.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {

llvm::Value* Emitter::emit(const loop::Expr& e) {
  switch (e->kind) {
    case loop::ExprKind::IntImm:
      return intOf(scalarType(e->type.dtype), static_cast<const loop::IntImm&>(*e).value);
    case loop::ExprKind::FloatImm:
      return floatConstant(e->type.dtype, static_cast<const loop::FloatImm&>(*e).value);
    case loop::ExprKind::Var: {
      auto it = vars_.find(static_cast<const loop::Var*>(e.get()));
      if (it != vars_.end()) return it->second;
      return fail("variable " + static_cast<const loop::Var&>(*e).name + " is not defined", e->type);
    }
    default:
      break;
  }
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  llvm::Value* value = emitNew(e);
  if (memo_.emplace(e.get(), value).second) memoLog_.push_back(e.get());
  return value;
}

// Sums and products of loop counters that start at zero or later: floor division is unsigned division there.
bool Emitter::isNonNegative(const loop::Expr& e) const {
  if (const auto* imm = loop::as<loop::IntImm>(e)) return imm->value >= 0;
  if (const auto* var = loop::as<loop::Var>(e)) return nonNegative_.contains(var);
  const auto* bin = loop::as<loop::Binary>(e);
  if (!bin) return false;
  switch (bin->op) {
    case loop::BinaryOp::Add:
    case loop::BinaryOp::Mul:
    case loop::BinaryOp::FloorDiv:
    case loop::BinaryOp::Min:
      return isNonNegative(bin->a) && isNonNegative(bin->b);
    case loop::BinaryOp::FloorMod:
      return isNonNegative(bin->b);
    default:
      return false;
  }
}

void Emitter::forgetTo(size_t mark) {
  while (memoLog_.size() > mark) {
    memo_.erase(memoLog_.back());
    memoLog_.pop_back();
  }
}

llvm::Value* Emitter::emitNew(const loop::Expr& e) {
  switch (e->kind) {
    case loop::ExprKind::Cast: {
      const auto& cast = static_cast<const loop::Cast&>(*e);
      if (llvm::Value* v = throughNarrowInt(e, e->type.lanes)) return v;
      return convert(splat(emit(cast.value), e->type.lanes), cast.value->type.dtype, e->type.dtype);
    }
    case loop::ExprKind::Binary: {
      const auto& bin = static_cast<const loop::Binary&>(*e);
      DType type = bin.a->type.dtype;
      bool isSum = bin.op == loop::BinaryOp::Add || bin.op == loop::BinaryOp::Sub || bin.op == loop::BinaryOp::Mul;
      if (isSum && e->type == loop::Type{DType::I64, 1}) return materialise(linear(e));
      bool isOrder = bin.op == loop::BinaryOp::Lt || bin.op == loop::BinaryOp::Le;
      if (isOrder && type == DType::I64 && e->type.lanes > 1) return emitLaneCompare(bin);
      llvm::Value* a = splat(emit(bin.a), e->type.lanes);
      int64_t divisor = 0;
      if (bin.op == loop::BinaryOp::FloorDiv && e->type == loop::Type{DType::I64, 1} &&
          loop::isConstInt(bin.b, &divisor) && divisor > 0 && isNonNegative(bin.a))
        return b_.CreateUDiv(a, b_.getInt64(static_cast<uint64_t>(divisor)));
      if (bin.op == loop::BinaryOp::FloorMod && e->type == loop::Type{DType::I64, 1} &&
          loop::isConstInt(bin.b, &divisor) && divisor > 0 && isNonNegative(bin.a))
        return b_.CreateURem(a, b_.getInt64(static_cast<uint64_t>(divisor)));
      return arith(bin.op, type, a, splat(emit(bin.b), e->type.lanes));
    }
    case loop::ExprKind::Select:
      return emitSelect(static_cast<const loop::Select&>(*e));
    case loop::ExprKind::Load:
      return emitLoad(static_cast<const loop::Load&>(*e));
    case loop::ExprKind::Ramp:
      return emitRamp(static_cast<const loop::Ramp&>(*e));
    case loop::ExprKind::Broadcast:
      return splat(emit(static_cast<const loop::Broadcast&>(*e).value), e->type.lanes);
    case loop::ExprKind::Call:
      return emitCall(static_cast<const loop::Call&>(*e));
    case loop::ExprKind::VectorReduce:
      return emitReduce(static_cast<const loop::VectorReduce&>(*e));
    case loop::ExprKind::LetExpr:
      return emitLet(static_cast<const loop::LetExpr&>(*e));
    default:
      return fail("unknown expression", e->type);
  }
}

llvm::Value* Emitter::emitLet(const loop::LetExpr& e) {
  llvm::Value* value = emit(e.value);
  auto it = vars_.find(e.var.get());
  llvm::Value* outer = it == vars_.end() ? nullptr : it->second;
  if (outer) forgetTo(0);
  size_t mark = memoLog_.size();
  vars_[e.var.get()] = value;
  llvm::Value* result = emit(e.body);
  // The same body may come again under another value of the variable.
  forgetTo(mark);
  if (outer) {
    vars_[e.var.get()] = outer;
  } else {
    vars_.erase(e.var.get());
  }
  return result;
}

llvm::Value* Emitter::emitSelect(const loop::Select& e) {
  loop::Expr condition = e.condition;
  if (const auto* wide = loop::as<loop::Broadcast>(condition)) condition = wide->value;
  llvm::Value* c = emit(condition);
  int lanes = e.type.lanes;
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(c); known && c->getType()->isIntegerTy(1)) {
    return splat(emit(known->isOne() ? e.yes : e.no), lanes);
  }
  if (condition->type.lanes == 1)
    if (llvm::Value* v = emitChosenLoad(e, c)) return v;
  // A load may lie outside its buffer where the condition doesn't choose it.
  if (condition->type.lanes == 1 && (readsMemory(e.yes) || readsMemory(e.no))) {
    return branch(
        c, [&] { return splat(emit(e.yes), lanes); }, [&] { return splat(emit(e.no), lanes); });
  }
  llvm::Value* yes = splat(emit(e.yes), lanes);
  return b_.CreateSelect(c, yes, splat(emit(e.no), lanes));
}

bool Emitter::readsMemory(const loop::Expr& e) {
  if (!e) return false;
  auto it = readsMemory_.find(e.get());
  if (it != readsMemory_.end()) return it->second;
  bool reads = false;
  auto any = [&](std::initializer_list<const loop::Expr*> parts) {
    for (const auto* part : parts) reads = reads || readsMemory(*part);
  };
  if (const auto* load = loop::as<loop::Load>(e)) {
    reads = load->buffer->scope != loop::Scope::Register;
    for (const auto& index : load->indices) any({&index});
  } else if (const auto* cast = loop::as<loop::Cast>(e)) {
    any({&cast->value});
  } else if (const auto* bin = loop::as<loop::Binary>(e)) {
    any({&bin->a, &bin->b});
  } else if (const auto* sel = loop::as<loop::Select>(e)) {
    any({&sel->condition, &sel->yes, &sel->no});
  } else if (const auto* ramp = loop::as<loop::Ramp>(e)) {
    any({&ramp->base, &ramp->stride});
  } else if (const auto* wide = loop::as<loop::Broadcast>(e)) {
    any({&wide->value});
  } else if (const auto* call = loop::as<loop::Call>(e)) {
    for (const auto& arg : call->args) any({&arg});
  } else if (const auto* reduce = loop::as<loop::VectorReduce>(e)) {
    any({&reduce->value});
  } else if (const auto* let = loop::as<loop::LetExpr>(e)) {
    any({&let->value, &let->body});
  }
  readsMemory_[e.get()] = reads;
  return reads;
}

llvm::Value* Emitter::emitRamp(const loop::Ramp& e) {
  int lanes = e.type.lanes;
  llvm::Type* type = valueType(e.type);
  if (isFloat(e.type.dtype)) return fail("a ramp of floats", e.type);
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(intOf(type->getScalarType(), i));
  llvm::Value* iota = llvm::ConstantVector::get(steps);
  llvm::Value* stride = splat(emit(e.stride), lanes);
  return b_.CreateAdd(splat(emit(e.base), lanes), b_.CreateMul(iota, stride));
}

// Comparisons of a ramp with a scalar are loop-tail masks: the first lanes, as many as a scalar says.
llvm::Value* Emitter::emitLaneCompare(const loop::Binary& e) {
  int lanes = e.type.lanes;
  LaneIndex a = laneIndex(e.a);
  LaneIndex b = laneIndex(e.b);
  bool orEqual = e.op == loop::BinaryOp::Le;
  int64_t step = a.step - b.step;
  if (a.general || b.general || step > 1 || step < -1 || lanes >= 64) {
    return arith(e.op, DType::I64, laneVector(a, lanes), laneVector(b, lanes));
  }
  // a.base + i*step < b.base
  Linear gap = add(b.base, a.base, -1);
  if (step == 0) {
    llvm::Value* d = materialise(gap);
    llvm::Value* zero = b_.getInt64(0);
    return splat(orEqual ? b_.CreateICmpSGE(d, zero) : b_.CreateICmpSGT(d, zero), lanes);
  }
  bool inverted = step < 0;
  if (inverted) gap = scaled(gap, -1);
  if (orEqual != inverted) gap.constant += 1;
  llvm::Value* count = materialise(gap);
  llvm::Value* limit = b_.getInt64(static_cast<uint64_t>(lanes));
  count = b_.CreateSelect(b_.CreateICmpSLT(count, limit), count, limit);
  count = b_.CreateSelect(b_.CreateICmpSGT(count, b_.getInt64(0)), count, b_.getInt64(0));
  llvm::Value* mask = nullptr;
  auto* maskType = llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes));
  if (target_.hasMask) {
    llvm::Value* bits = b_.CreateSub(b_.CreateShl(b_.getInt64(1), count), b_.getInt64(1));
    mask = b_.CreateBitCast(b_.CreateTrunc(bits, b_.getIntNTy(static_cast<unsigned>(lanes))), maskType);
  } else {
    int width = std::min(64, std::max(8, target_.vectorBytes * 8 / lanes));
    while (width & (width - 1)) width &= width - 1;
    auto* type = b_.getIntNTy(static_cast<unsigned>(width));
    std::vector<llvm::Constant*> steps;
    for (int i = 0; i < lanes; ++i) steps.push_back(intOf(type, i));
    mask = b_.CreateICmpSLT(llvm::ConstantVector::get(steps), splat(b_.CreateTrunc(count, type), lanes));
  }
  return inverted ? b_.CreateNot(mask) : mask;
}

llvm::Value* Emitter::emitReduce(const loop::VectorReduce& e) {
  llvm::Value* v = emit(e.value);
  DType type = e.value->type.dtype;
  int lanes = e.value->type.lanes;
  while (lanes > 1) {
    if (lanes % 2 != 0 && !loop::isIdempotent(e.op))
      return fail("a reduction over lanes that are not a power of two", e.type);
    int half = (lanes + 1) / 2;
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half < lanes ? i + half : i);
    }
    lanes = half;
    llvm::Value* a = lanes == 1 ? b_.CreateExtractElement(v, uint64_t{0}) : b_.CreateShuffleVector(v, low);
    llvm::Value* b = lanes == 1 ? b_.CreateExtractElement(v, uint64_t{1}) : b_.CreateShuffleVector(v, high);
    v = arith(e.op, type, a, b);
  }
  return v;
}

}  // namespace locution::targets::cpu

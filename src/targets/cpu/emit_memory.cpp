// Loads and stores: contiguous, strided, gathered, masked, of packed elements, and of register buffers.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "loop/build.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

constexpr int64_t kMaxShuffledStep = 4;
/// Of the widest vector.
constexpr uint64_t kZeroBytes = 64;

}  // namespace

llvm::Instruction* Emitter::tagged(llvm::Instruction* access, const Place& p) {
  if (p.scopes) access->setMetadata(llvm::LLVMContext::MD_alias_scope, p.scopes);
  if (p.noAlias) access->setMetadata(llvm::LLVMContext::MD_noalias, p.noAlias);
  if (p.invariant && llvm::isa<llvm::LoadInst>(access)) {
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
  return access;
}

// A bool is any non-zero byte.
llvm::Value* Emitter::fromMemory(llvm::Value* v, DType type) {
  return type == DType::Bool ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

llvm::Value* Emitter::toMemory(llvm::Value* v, DType type) {
  if (type != DType::Bool) return v;
  return b_.CreateZExt(v, v->getType()->getWithNewType(b_.getInt8Ty()));
}

llvm::Value* Emitter::loadOne(const Place& p, llvm::Type* memory, llvm::Value* pointer) {
  auto bytes = memory->getScalarSizeInBits() / 8;
  return tagged(b_.CreateAlignedLoad(memory, pointer, llvm::Align(bytes)), p);
}

llvm::Value* Emitter::emitLoad(const loop::Load& e) {
  if (auto it = blocks_.find(&e); it != blocks_.end()) return it->second[copy_];
  Place& p = place(e.buffer.get());
  DType type = e.buffer->element.dtype;
  LaneIndex index = flatIndex(*e.buffer, e.indices);
  if (!p.elements.empty()) {
    int64_t at = index.base.constant;
    if (index.general || !index.base.isConstant() || index.step != 0 || at < 0 ||
        at >= static_cast<int64_t>(p.elements.size())) {
      return fail("register buffer " + e.buffer->name + " is read outside its extent", e.type);
    }
    llvm::Value* v =
        splat(b_.CreateLoad(valueType(e.buffer->element), p.elements[static_cast<size_t>(at)]), e.type.lanes);
    if (!e.mask) return v;
    return b_.CreateSelect(emit(e.mask), v, llvm::Constant::getNullValue(v->getType()));
  }
  if (isSubByte(type)) return loadPacked(e, p, index);
  int wide = e.buffer->element.lanes;
  if (wide > 1) {
    if (index.general || index.step != 0) return fail("a vector of vectors is read from " + e.buffer->name, e.type);
    index.base = scaled(index.base, wide);
    index.step = 1;
  }
  llvm::Type* memory = memoryType(type);
  int lanes = e.type.lanes;
  if (e.mask) {
    llvm::Value* mask = emit(e.mask);
    auto* known = llvm::dyn_cast<llvm::Constant>(mask);
    if (!known || !known->isAllOnesValue()) return loadMasked(e, p, index, mask);
  }
  if (!index.general) {
    if (lanes == 1 || index.step == 0) {
      return splat(fromMemory(loadOne(p, memory, address(p, memory, index.base)), type), lanes);
    }
    if (index.step == 1) {
      auto* vector = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
      return fromMemory(loadOne(p, vector, address(p, memory, index.base)), type);
    }
    return fromMemory(loadStrided(p, type, index.base, index.step, lanes), type);
  }
  auto* vector = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
  // Gathers of 32 and 64 bits are instructions from AVX2 on.
  if (target_.vectorBytes >= 32 && memory->getScalarSizeInBits() >= 32) {
    llvm::Value* pointers = b_.CreateGEP(memory, p.base, index.general);
    auto align = llvm::Align(memory->getScalarSizeInBits() / 8);
    return fromMemory(tagged(b_.CreateMaskedGather(vector, pointers, align), p), type);
  }
  llvm::Value* v = llvm::PoisonValue::get(vector);
  for (int i = 0; i < lanes; ++i) {
    llvm::Value* at = b_.CreateExtractElement(index.general, static_cast<uint64_t>(i));
    v = b_.CreateInsertElement(v, loadOne(p, memory, b_.CreateGEP(memory, p.base, at)), static_cast<uint64_t>(i));
  }
  return fromMemory(v, type);
}

llvm::Value* Emitter::emitPrefetch(const loop::Call& e) {
  const auto* l = loop::as<loop::Load>(e.args[0]);
  if (!l) return fail("prefetch of something else than a load", e.type);
  Place& p = place(l->buffer.get());
  LaneIndex index = flatIndex(*l->buffer, l->indices);
  if (!p.elements.empty() || index.general || isSubByte(l->buffer->element.dtype)) return zeroOf(e.type);
  constexpr uint32_t kRead = 0, kSecondCache = 2, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {address(p, memoryType(l->buffer->element.dtype), index.base), b_.getInt32(kRead),
                      b_.getInt32(kSecondCache), b_.getInt32(kData)});
  return zeroOf(e.type);
}

// A vector, or zeros from a constant of the kernel: again the address is chosen.
llvm::Value* Emitter::emitLoadOrZero(const loop::Select& e, const loop::Load& yes, llvm::Value* condition) {
  loop::Expr no = e.no;
  if (const auto* wide = loop::as<loop::Broadcast>(no)) no = wide->value;
  const auto* f = loop::as<loop::FloatImm>(no);
  const auto* i = loop::as<loop::IntImm>(no);
  const bool isZero = (f && f->value == 0 && !std::signbit(f->value)) || (i && i->value == 0);
  DType type = yes.buffer->element.dtype;
  int lanes = e.type.lanes;
  if (!isZero || yes.mask || isSubByte(type) || yes.buffer->element.lanes > 1 || yes.type.lanes != lanes)
    return nullptr;
  Place& p = place(yes.buffer.get());
  if (!p.elements.empty()) return nullptr;
  LaneIndex x = flatIndex(*yes.buffer, yes.indices);
  if (x.general || (lanes > 1 && x.step != 1)) return nullptr;
  llvm::Type* memory = memoryType(type);
  llvm::Type* whole = lanes == 1 ? memory : llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
  if (!zeros_) {
    auto* bytes = llvm::ArrayType::get(b_.getInt8Ty(), kZeroBytes);
    zeros_ = new llvm::GlobalVariable(module_, bytes, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::Constant::getNullValue(bytes), "zeros");
    zeros_->setAlignment(llvm::Align(kZeroBytes));
  }
  if (module_.getDataLayout().getTypeStoreSize(whole) > kZeroBytes) return nullptr;
  Place chosen = p;
  chosen.base = b_.CreateSelect(condition, address(p, memory, x.base), zeros_);
  chosen.scopes = nullptr;
  return fromMemory(loadOne(chosen, whole, chosen.base), type);
}

// One of two loads: the address is chosen, nothing branches. What both indices have in common is added after the choice, so that the
// choice can leave the loops that run over it. Null: not such loads.
llvm::Value* Emitter::emitChosenLoad(const loop::Select& e, llvm::Value* condition) {
  const auto* yes = loop::as<loop::Load>(e.yes);
  const auto* no = loop::as<loop::Load>(e.no);
  if (llvm::Value* v = yes && !no ? emitLoadOrZero(e, *yes, condition) : nullptr) return v;
  if (!yes || !no || yes->mask || no->mask || yes->buffer == no->buffer || yes->type != no->type) return nullptr;
  DType type = yes->buffer->element.dtype;
  if (isSubByte(type) || yes->buffer->element != no->buffer->element || yes->buffer->element.lanes > 1) return nullptr;
  Place& a = place(yes->buffer.get());
  Place& b = place(no->buffer.get());
  if (!a.elements.empty() || !b.elements.empty()) return nullptr;
  LaneIndex x = flatIndex(*yes->buffer, yes->indices);
  LaneIndex y = flatIndex(*no->buffer, no->indices);
  int lanes = e.type.lanes;
  if (x.general || y.general || x.step != y.step || (lanes > 1 && x.step != 0 && x.step != 1)) return nullptr;
  Linear common;
  common.constant = y.base.constant;
  for (const auto& t : y.base.terms)
    if (std::find(x.base.terms.begin(), x.base.terms.end(), t) != x.base.terms.end()) common.terms.push_back(t);
  llvm::Type* memory = memoryType(type);
  llvm::Value* pa = address(a, memory, add(x.base, common, -1));
  llvm::Value* pb = address(b, memory, add(y.base, common, -1));
  Place chosen = a;
  chosen.base = b_.CreateSelect(condition, pa, pb);
  // What holds for both buffers.
  chosen.scopes = nullptr;
  chosen.noAlias = a.noAlias == b.noAlias ? a.noAlias : nullptr;
  chosen.invariant = a.invariant && b.invariant;
  llvm::Value* pointer = address(chosen, memory, common);
  if (lanes == 1 || x.step == 0) return splat(fromMemory(loadOne(chosen, memory, pointer), type), lanes);
  auto* vector = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
  return fromMemory(loadOne(chosen, vector, pointer), type);
}

llvm::Value* Emitter::loadMasked(const loop::Load& e, Place& p, const LaneIndex& index, llvm::Value* mask) {
  DType type = e.buffer->element.dtype;
  llvm::Type* memory = memoryType(type);
  int lanes = e.type.lanes;
  if (lanes == 1) {
    return branch(
        mask, [&] { return fromMemory(loadOne(p, memory, address(p, memory, index.base)), type); },
        [&] { return zeroOf(e.type); });
  }
  mask = splat(mask, lanes);
  auto* vector = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
  llvm::Value* zero = llvm::Constant::getNullValue(vector);
  auto align = llvm::Align(memory->getScalarSizeInBits() / 8);
  if (!index.general && index.step == 1) {
    return fromMemory(tagged(b_.CreateMaskedLoad(vector, address(p, memory, index.base), align, mask, zero), p), type);
  }
  llvm::Value* pointers = b_.CreateGEP(memory, p.base, laneVector(index, lanes));
  return fromMemory(tagged(b_.CreateMaskedGather(vector, pointers, align, mask, zero), p), type);
}

// Lanes a constant step apart. Whole vectors and shuffles for short steps: the last one ends at the last element, so nothing
// past it is touched; elements between the lanes belong to the same buffer.
llvm::Value* Emitter::loadStrided(const Place& p, DType type, const Linear& base, int64_t step, int lanes) {
  llvm::Type* memory = memoryType(type);
  auto* vector = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes));
  int64_t distance = std::abs(step);
  if (distance <= kMaxShuffledStep && lanes > 2) {
    Linear first = base;
    if (step < 0) first.constant += step * (lanes - 1);
    int64_t span = distance * (lanes - 1) + 1;
    llvm::Value* result = nullptr;
    for (int64_t start = 0; start < span; start += lanes) {
      int64_t from = std::min<int64_t>(start, span - lanes);
      Linear at = first;
      at.constant += from;
      llvm::Value* part = loadOne(p, vector, address(p, memory, at));
      std::vector<int> pick;
      for (int i = 0; i < lanes; ++i) {
        int64_t position = distance * (step < 0 ? lanes - 1 - i : i);
        bool here = position >= start && position < start + lanes;
        pick.push_back(here ? static_cast<int>(position - from) + (result ? lanes : 0) : result ? i : -1);
      }
      result = result ? b_.CreateShuffleVector(result, part, pick) : b_.CreateShuffleVector(part, pick);
    }
    return result;
  }
  llvm::Value* v = llvm::PoisonValue::get(vector);
  for (int i = 0; i < lanes; ++i) {
    Linear at = base;
    at.constant += i * step;
    v = b_.CreateInsertElement(v, loadOne(p, memory, address(p, memory, at)), static_cast<uint64_t>(i));
  }
  return v;
}

// 4- and 2-bit elements lie low bits first in their byte.
llvm::Value* Emitter::loadPacked(const loop::Load& e, Place& p, const LaneIndex& index) {
  DType type = e.buffer->element.dtype;
  if (e.buffer->element.lanes > 1) return fail("a wide load of " + std::string(dtypeName(type)), e.type);
  int bits = dtypeBits(type);
  auto perByte = static_cast<uint64_t>(8 / bits);
  auto one = [&](llvm::Value* at) -> llvm::Value* {
    llvm::Value* byteIndex = b_.CreateLShr(at, b_.getInt64(perByte == 2 ? 1 : 2));
    llvm::Value* byte = loadOne(p, b_.getInt8Ty(), b_.CreateGEP(b_.getInt8Ty(), p.base, byteIndex));
    llvm::Value* shift =
        b_.CreateMul(b_.CreateAnd(at, b_.getInt64(perByte - 1)), b_.getInt64(static_cast<uint64_t>(bits)));
    return b_.CreateTrunc(b_.CreateLShr(byte, b_.CreateTrunc(shift, b_.getInt8Ty())), scalarType(type));
  };
  if (e.type.lanes == 1) return one(materialise(index.base));
  llvm::Value* v = llvm::PoisonValue::get(valueType(e.type));
  llvm::Value* at = laneVector(index, e.type.lanes);
  llvm::Value* mask = e.mask ? splat(emit(e.mask), e.type.lanes) : nullptr;
  // Lanes that are off read the first element instead.
  if (mask) at = b_.CreateSelect(mask, at, llvm::Constant::getNullValue(at->getType()));
  for (uint64_t i = 0; i < static_cast<uint64_t>(e.type.lanes); ++i) {
    v = b_.CreateInsertElement(v, one(b_.CreateExtractElement(at, i)), i);
  }
  return mask ? b_.CreateSelect(mask, v, llvm::Constant::getNullValue(v->getType())) : v;
}

void Emitter::emitStore(const loop::Store& s) {
  Place& p = place(s.buffer.get());
  loop::Type element = s.buffer->element;
  LaneIndex index = flatIndex(*s.buffer, s.indices);
  int lanes = std::max(s.value->type.lanes, element.lanes);
  for (const auto& i : s.indices) lanes = std::max(lanes, i->type.lanes);
  llvm::Value* value = splat(emit(s.value), lanes);
  llvm::Value* mask = s.mask ? emit(s.mask) : nullptr;
  if (auto* known = llvm::dyn_cast_if_present<llvm::Constant>(mask); known && known->isAllOnesValue()) mask = nullptr;
  if (!p.elements.empty()) {
    int64_t at = index.base.constant;
    if (index.general || !index.base.isConstant() || index.step != 0 || at < 0 ||
        at >= static_cast<int64_t>(p.elements.size())) {
      fail("register buffer " + s.buffer->name + " is written outside its extent");
      return;
    }
    auto* slot = p.elements[static_cast<size_t>(at)];
    if (mask) value = b_.CreateSelect(mask, value, b_.CreateLoad(valueType(element), slot));
    b_.CreateStore(value, slot);
    return;
  }
  if (isSubByte(element.dtype)) {
    fail("no stores of " + std::string(dtypeName(element.dtype)) + " to " + s.buffer->name);
    return;
  }
  value = toMemory(value, element.dtype);
  if (element.lanes > 1) {
    if (index.general || index.step != 0) {
      fail("a vector of vectors is written to " + s.buffer->name);
      return;
    }
    index.base = scaled(index.base, element.lanes);
    index.step = 1;
  }
  storeVector(p, index, value, mask);
}

void Emitter::storeVector(Place& p, const LaneIndex& index, llvm::Value* value, llvm::Value* mask) {
  llvm::Type* memory = value->getType()->getScalarType();
  auto align = llvm::Align(memory->getScalarSizeInBits() / 8);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  bool contiguous = !index.general && (!vector || index.step == 1);
  if (contiguous && (!mask || vector)) {
    llvm::Value* pointer = address(p, memory, index.base);
    if (mask) {
      mask = sameShape(vector, mask);
      tagged(b_.CreateMaskedStore(value, pointer, align, mask), p);
    } else {
      tagged(b_.CreateAlignedStore(value, pointer, align), p);
    }
    return;
  }
  if (!vector) {
    auto* then = newBlock("then");
    auto* after = newBlock("endif");
    b_.CreateCondBr(mask, then, after);
    b_.SetInsertPoint(then);
    tagged(b_.CreateAlignedStore(value, address(p, memory, index.base), align), p);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    return;
  }
  int lanes = static_cast<int>(vector->getNumElements());
  if (mask) {
    llvm::Value* pointers = b_.CreateGEP(memory, p.base, laneVector(index, lanes));
    tagged(b_.CreateMaskedScatter(value, pointers, align, sameShape(vector, mask)), p);
    return;
  }
  for (int i = 0; i < lanes; ++i) {
    llvm::Value* pointer = nullptr;
    if (index.general) {
      pointer = b_.CreateGEP(memory, p.base, b_.CreateExtractElement(index.general, static_cast<uint64_t>(i)));
    } else {
      Linear at = index.base;
      at.constant += i * index.step;
      pointer = address(p, memory, at);
    }
    tagged(b_.CreateAlignedStore(b_.CreateExtractElement(value, static_cast<uint64_t>(i)), pointer, align), p);
  }
}

}  // namespace locution::targets::cpu

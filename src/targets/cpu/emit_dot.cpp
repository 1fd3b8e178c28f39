// Products of packed integers. Bytes (or int16) that lie side by side in memory are read as the word that they make up; a word that
// all lanes share is spread over them before it is taken apart, so that it never passes through a scalar register. x86 has the products
// themselves as instructions; other targets get them in plain arithmetic.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "loop/build.h"
#include "loop/passes.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

bool isJoin(const loop::Call* call) { return call && call->name == "join"; }

/// What nested joins put together, in the order of the bytes.
void collectParts(const loop::Expr& e, std::vector<loop::Expr>* parts) {
  if (const auto* call = loop::as<loop::Call>(e); isJoin(call)) {
    for (const loop::Expr& arg : call->args) collectParts(arg, parts);
  } else if (const auto* wide = loop::as<loop::Broadcast>(e); wide && isJoin(loop::as<loop::Call>(wide->value))) {
    collectParts(wide->value, parts);
  } else {
    parts->push_back(e);
  }
}

}  // namespace

llvm::Value* Emitter::emitJoin(const loop::Call& e) {
  std::vector<loop::Expr> parts;
  for (const loop::Expr& arg : e.args) collectParts(arg, &parts);
  if (llvm::Value* v = loadJoined(parts)) return v;
  auto* type = valueType(e.type);
  const auto bits = static_cast<uint64_t>(dtypeBits(e.args[0]->type.dtype));
  llvm::Value* low = b_.CreateZExt(splat(emit(e.args[0]), e.type.lanes), type);
  llvm::Value* high = b_.CreateZExt(splat(emit(e.args[1]), e.type.lanes), type);
  return b_.CreateOr(low, b_.CreateShl(high, bits));
}

// The address of loads that make up one word, `first` apart from its constant part; null when they don't lie side by side.
llvm::Value* Emitter::joinedPointer(const std::vector<const loop::Load*>& loads, LaneIndex* first) {
  const loop::Load& l = *loads[0];
  const auto count = static_cast<int64_t>(loads.size());
  if (isSubByte(l.buffer->element.dtype) || l.buffer->element.lanes > 1) return nullptr;
  Place& p = place(l.buffer.get());
  if (!p.elements.empty()) return nullptr;
  *first = flatIndex(*l.buffer, l.indices);
  if (first->general || (l.type.lanes > 1 && first->step != count)) return nullptr;
  for (int64_t i = 0; i < count; ++i) {
    const loop::Load& part = *loads[static_cast<size_t>(i)];
    if (part.mask || part.buffer != l.buffer || part.type != l.type) return nullptr;
    const LaneIndex at = flatIndex(*part.buffer, part.indices);
    if (at.general || at.step != first->step || at.base.terms != first->base.terms ||
        at.base.constant != first->base.constant + i)
      return nullptr;
  }
  return address(p, memoryType(l.buffer->element.dtype), first->base);
}

// Parts that are loads of neighbours, or choices by one condition between such loads: a single load. Null: something else.
llvm::Value* Emitter::loadJoined(const std::vector<loop::Expr>& parts) {
  const int lanes = parts[0]->type.lanes;
  const int bits = dtypeBits(parts[0]->type.dtype) * static_cast<int>(parts.size());
  std::vector<const loop::Load*> yes, no;
  loop::Expr condition;
  for (const loop::Expr& part : parts) {
    const auto* choice = loop::as<loop::Select>(part);
    const auto* l = loop::as<loop::Load>(choice ? choice->yes : part);
    const auto* other = choice ? loop::as<loop::Load>(choice->no) : nullptr;
    if (!l || part->type != parts[0]->type) return nullptr;
    if (!yes.empty() && (choice != nullptr) != (condition != nullptr)) return nullptr;
    if (choice) {
      if (!other || choice->condition->type.lanes > 1 || lanes > 1) return nullptr;
      if (condition && !loop::sameExpr(condition, choice->condition)) return nullptr;
      condition = choice->condition;
      no.push_back(other);
    }
    yes.push_back(l);
  }
  LaneIndex first;
  llvm::Value* pointer = joinedPointer(yes, &first);
  if (!pointer) return nullptr;
  Place from = place(yes[0]->buffer.get());
  if (condition) {
    LaneIndex second;
    llvm::Value* padding = joinedPointer(no, &second);
    if (!padding) return nullptr;
    const Place& b = place(no[0]->buffer.get());
    // What both indices have in common is added after the choice, so that the choice can leave the loops that run over it.
    Linear common;
    common.constant = second.base.constant;
    for (const auto& t : second.base.terms)
      if (std::find(first.base.terms.begin(), first.base.terms.end(), t) != first.base.terms.end())
        common.terms.push_back(t);
    llvm::Type* memory = memoryType(yes[0]->buffer->element.dtype);
    Place chosen = from;
    chosen.base = b_.CreateSelect(emit(condition), address(from, memory, add(first.base, common, -1)),
                                  address(b, memory, add(second.base, common, -1)));
    chosen.scopes = nullptr;
    chosen.noAlias = from.noAlias == b.noAlias ? from.noAlias : nullptr;
    chosen.invariant = from.invariant && b.invariant;
    pointer = address(chosen, memory, common);
    from = chosen;
  }
  llvm::Type* whole = b_.getIntNTy(static_cast<unsigned>(bits));
  if (lanes > 1) whole = llvm::FixedVectorType::get(whole, static_cast<unsigned>(lanes));
  const auto align = llvm::Align(static_cast<uint64_t>(dtypeBits(parts[0]->type.dtype)) / 8);
  return tagged(b_.CreateAlignedLoad(whole, pointer, align), from);
}

// int32 arithmetic with constants on a word that all lanes share, done in all of them.
llvm::Value* Emitter::emitWide(const loop::Expr& e, int lanes) {
  if (const auto* wide = loop::as<loop::Broadcast>(e)) return emitWide(wide->value, lanes);
  const auto* bin = loop::as<loop::Binary>(e);
  // The high byte of each half: one shift of int16.
  constexpr int64_t kLowBytes = 0x00ff00ff, kByte = 8;
  const auto* shift = bin ? loop::as<loop::Binary>(bin->a) : nullptr;
  int64_t mask = 0, by = 0;
  if (lanes > 1 && shift && bin->op == loop::BinaryOp::And && shift->op == loop::BinaryOp::Shr &&
      constantOf(bin->b, &mask) && constantOf(shift->b, &by) && mask == kLowBytes && by == kByte &&
      e->type == loop::Type{DType::I32, 1}) {
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * static_cast<unsigned>(lanes));
    llvm::Value* x = emitWide(shift->a, lanes);
    return b_.CreateBitCast(b_.CreateLShr(b_.CreateBitCast(x, halves), intOf(halves, kByte)), x->getType());
  }
  if (lanes > 1 && bin && e->type == loop::Type{DType::I32, 1})
    return arith(bin->op, DType::I32, emitWide(bin->a, lanes), emitWide(bin->b, lanes));
  return splat(emit(e), lanes);
}

llvm::Value* Emitter::multiplyPairs(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType());
  const unsigned words = type ? type->getNumElements() : 1;
  auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * words);
  a = b_.CreateBitCast(a, halves);
  b = b_.CreateBitCast(b, halves);
  const bool isX86 = llvm::Triple(target_.triple).isX86();
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (isX86 && words == 4) id = llvm::Intrinsic::x86_sse2_pmadd_wd;
  if (isX86 && words == 8 && target_.vectorBytes >= 32 && target_.features.find("+avx2") != std::string::npos)
    id = llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (isX86 && words == 16 && target_.vectorBytes >= 64) id = llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (id != llvm::Intrinsic::not_intrinsic) return b_.CreateAdd(sum, b_.CreateIntrinsic(id, {}, {a, b}));
  auto* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), 2 * words);
  llvm::Value* products = b_.CreateMul(b_.CreateSExt(a, wide), b_.CreateSExt(b, wide));
  for (int half : {0, 1}) {
    llvm::Value* part = nullptr;
    if (type) {
      std::vector<int> pick;
      for (unsigned i = 0; i < words; ++i) pick.push_back(static_cast<int>(2 * i) + half);
      part = b_.CreateShuffleVector(products, pick);
    } else {
      part = b_.CreateExtractElement(products, static_cast<uint64_t>(half));
    }
    sum = b_.CreateAdd(sum, part);
  }
  return sum;
}

llvm::Value* Emitter::emitDot(const loop::Call& e) {
  const int lanes = e.type.lanes;
  llvm::Value* sum = splat(emit(e.args[0]), lanes);
  llvm::Value *a = emitWide(e.args[1], lanes), *b = emitWide(e.args[2], lanes);
  if (e.name == "madd16") return multiplyPairs(sum, a, b);
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  const bool isX86 = llvm::Triple(target_.triple).isX86();
  if (isX86 && target_.hasVnni && lanes == 4) id = llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  if (isX86 && target_.hasVnni && lanes == 8) id = llvm::Intrinsic::x86_avx512_vpdpbusd_256;
  if (isX86 && target_.hasVnni && lanes == 16 && target_.vectorBytes >= 64)
    id = llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  if (id != llvm::Intrinsic::not_intrinsic) {
    // Whether bytes are named as such in its signature differs between versions of LLVM.
    auto* type = llvm::Intrinsic::getType(context_, id);
    return b_.CreateIntrinsic(
        id, {}, {sum, b_.CreateBitCast(a, type->getParamType(1)), b_.CreateBitCast(b, type->getParamType(2))});
  }
  // Bytes 0 and 2, then 1 and 3, as int16.
  auto num = [&](uint64_t value) { return intOf(a->getType(), static_cast<int64_t>(value)); };
  auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * static_cast<unsigned>(lanes));
  auto asHalves = [&](llvm::Value* v) { return b_.CreateBitCast(v, halves); };
  auto* eight = intOf(halves, 8);
  llvm::Value* evenB = b_.CreateAShr(b_.CreateShl(asHalves(b), eight), eight);
  llvm::Value* oddB = b_.CreateAShr(asHalves(b), eight);
  sum = multiplyPairs(sum, b_.CreateAnd(a, num(0x00ff00ff)), evenB);
  return multiplyPairs(sum, b_.CreateAnd(b_.CreateLShr(a, 8), num(0x00ff00ff)), oddB);
}

}  // namespace locution::targets::cpu

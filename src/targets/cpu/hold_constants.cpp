// Float constants of vector code on AVX2, where an instruction's memory operand can't be broadcast. LLVM makes a splat a broadcast
// of its own before each use as soon as registers run out, a third more instructions in a polynomial. A value it can't see
// through is made once, ahead of all loops, and spilled as a whole vector, which is a memory operand:
//     vbroadcastss c(%rip), %ymm1; vfmadd213ps %ymm1, ...   ->   vfmadd213ps 64(%rsp), ...
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

#include <map>
#include <utility>
#include <vector>

#include "targets/cpu/llvm_target.h"

namespace locution::targets::cpu {
namespace {

// So many stay in registers anyway.
constexpr size_t kInRegisters = 8;

llvm::Constant* splatOf(llvm::Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (!constant || !constant->getType()->isVectorTy() ||
      constant->getType()->getPrimitiveSizeInBits().getFixedValue() != 256)
    return nullptr;
  auto* element = llvm::dyn_cast_if_present<llvm::ConstantFP>(constant->getSplatValue());
  return element && !element->isZero() ? constant : nullptr;
}

bool isFloatOperation(const llvm::Instruction& i) {
  switch (i.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FCmp:
    case llvm::Instruction::Select:
      return true;
    default:
      return false;
  }
}

}  // namespace

void holdConstants(llvm::Function& f, const TargetSpec& target) {
  if (target.vectorBytes != 32) return;
  // In the order of first use: the same function gives the same bytes.
  std::vector<std::pair<llvm::Constant*, std::vector<llvm::Use*>>> found;
  std::map<llvm::Constant*, size_t> place;
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block) {
      if (!isFloatOperation(i)) continue;
      for (llvm::Use& use : i.operands()) {
        llvm::Constant* c = splatOf(use.get());
        if (!c) continue;
        auto [at, isNew] = place.try_emplace(c, found.size());
        if (isNew) found.push_back({c, {}});
        found[at->second].second.push_back(&use);
      }
    }
  if (found.size() <= kInRegisters) return;
  llvm::BasicBlock& entry = f.getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.getTerminator()->getIterator());
  for (auto& [constant, uses] : found) {
    auto* type = llvm::FunctionType::get(constant->getType(), {constant->getType()}, false);
    auto* same = llvm::InlineAsm::get(type, "", "=x,0", /*hasSideEffects=*/false);
    llvm::Value* held = b.CreateCall(type, same, {constant});
    for (llvm::Use* use : uses)
      if (llvm::cast<llvm::Instruction>(use->getUser())->getParent() != &entry) use->set(held);
  }
}

}  // namespace locution::targets::cpu

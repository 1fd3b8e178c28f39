#include "targets/cpu/opaque_bases.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Pass.h>

namespace locution::targets::cpu {
namespace {

// Bodies with more, as the wide tiles of depthwise convolutions, need what strength reduction finds: an index for each of them would not fit
// the registers.
constexpr int kMostAccesses = 64;

class OpaqueBases : public llvm::FunctionPass {
 public:
  static char id;
  OpaqueBases() : llvm::FunctionPass(id) {}
  llvm::StringRef getPassName() const override { return "Opaque bases of innermost loops"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.addRequired<llvm::LoopInfoWrapperPass>();
    usage.setPreservesCFG();
  }
  bool runOnFunction(llvm::Function& f) override {
    bool changed = false;
    for (llvm::Loop* loop : getAnalysis<llvm::LoopInfoWrapperPass>().getLoopInfo().getLoopsInPreorder())
      if (loop->isInnermost() && loop->getLoopPreheader() && accesses(*loop) <= kMostAccesses)
        changed |= hide(*loop, f.getDataLayout());
    return changed;
  }

 private:
  static int accesses(const llvm::Loop& loop) {
    int count = 0;
    for (const llvm::BasicBlock* block : loop.blocks())
      for (const llvm::Instruction& i : *block) count += i.mayReadOrWriteMemory() && !llvm::isa<llvm::CallBase>(i);
    return count;
  }

  static bool isSum(const llvm::Value* v) {
    return llvm::isa<llvm::GetElementPtrInst>(v) ||
           (llvm::isa<llvm::BinaryOperator>(v) && v->getType()->isIntegerTy(64));
  }

  static bool hide(llvm::Loop& loop, const llvm::DataLayout& layout) {
    llvm::DenseMap<llvm::Value*, llvm::Value*> frozen;
    llvm::Instruction* end = loop.getLoopPreheader()->getTerminator();
    bool changed = false;
    for (llvm::BasicBlock* block : loop.blocks())
      for (llvm::Instruction& user : *block)
        for (llvm::Use& use : user.operands()) {
          auto* value = llvm::dyn_cast<llvm::Instruction>(use.get());
          if (!value || loop.contains(value) || llvm::isa<llvm::PHINode>(user) || !isSum(value)) continue;
          llvm::Value* root = value;
          llvm::APInt offset(64, 0);
          if (value->getType()->isPointerTy())
            root = value->stripAndAccumulateConstantOffsets(layout, offset, true);
          else if (value->getOpcode() == llvm::Instruction::Add)
            if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(value->getOperand(1))) {
              root = value->getOperand(0);
              offset = c->getValue();
            }
          auto* inner = llvm::dyn_cast<llvm::Instruction>(root);
          if (!inner || !isSum(inner)) continue;
          llvm::IRBuilder<> b(end);
          if (!frozen.contains(root)) frozen[root] = b.CreateFreeze(root);
          if (!frozen.contains(value)) {
            llvm::Value* base = frozen[root];
            frozen[value] = value->getType()->isPointerTy() ? b.CreatePtrAdd(base, b.getInt(offset))
                                                            : b.CreateAdd(base, b.getInt(offset));
          }
          use.set(frozen[value]);
          changed = true;
        }
    return changed;
  }
};

char OpaqueBases::id = 0;

}  // namespace

llvm::FunctionPass* createOpaqueBasesPass() { return new OpaqueBases(); }

}  // namespace locution::targets::cpu

// Statements. Loops are emitted bottom-tested; unrolled loops are expanded with the variable bound to a constant.
#include <llvm/IR/InlineAsm.h>

#include "loop/build.h"
#include "loop/passes.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {

void Emitter::emitStmt(const loop::Stmt& s) {
  forgetTo(0);
  if (!s) return;
  if (const auto* store = loop::as<loop::Store>(s)) {
    emitStore(*store);
  } else if (const auto* loop = loop::as<loop::For>(s)) {
    emitFor(*loop);
  } else if (const auto* block = loop::as<loop::Block>(s)) {
    emitBlock(*block);
  } else if (const auto* cond = loop::as<loop::IfThen>(s)) {
    emitIf(*cond);
  } else if (const auto* alloc = loop::as<loop::Allocate>(s)) {
    allocatePlace(alloc->buffer.get());
    const bool isTile = alloc->buffer->scope == loop::Scope::Register;
    inTile_ += isTile ? 1 : 0;
    emitStmt(alloc->body);
    inTile_ -= isTile ? 1 : 0;
  } else if (const auto* let = loop::as<loop::LetStmt>(s)) {
    vars_[let->var.get()] = emit(let->value);
    emitStmt(let->body);
  } else {
    fail("unknown statement");
  }
}

/// Loops around register tiles.
static bool loopsOverTiles(const loop::Stmt& s) {
  bool found = false;
  int loops = 0;
  loop::visit(
      s,
      [&](const loop::Stmt& x) {
        const auto* alloc = loop::as<loop::Allocate>(x);
        loops += loop::as<loop::For>(x) ? 1 : 0;
        found = found || (loops > 0 && alloc && alloc->buffer->scope == loop::Scope::Register);
        return !found;
      },
      [](const loop::Expr&) { return false; });
  return found;
}

void Emitter::emitBlock(const loop::Block& block) {
  bool hadTiles = false;
  for (const loop::Stmt& inner : block.stmts) {
    if (inTile_ == 0 && loopsOverTiles(inner)) {
      if (hadTiles) emptyRegisters();
      hadTiles = true;
    }
    emitStmt(inner);
  }
}

// A tile asks for every vector register. A constant that only other loops use is kept in one of them all the same, and a sum goes
// to memory and back in each iteration, unless nothing can be in a register between the two.
void Emitter::emptyRegisters() {
  if (target_.vectorRegisters > 32 || !module_.getTargetTriple().isX86()) return;
  std::string clobbers;
  for (int i = 0; i < target_.vectorRegisters; ++i) clobbers += (i > 0 ? ",~{xmm" : "~{xmm") + std::to_string(i) + "}";
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), false);
  b_.CreateCall(type, llvm::InlineAsm::get(type, "", clobbers, /*hasSideEffects=*/true));
}

void Emitter::emitFor(const loop::For& loop) {
  int64_t extent = -1;
  bool fixed = constantOf(loop.extent, &extent);
  if (fixed && extent <= 0 && loop.loop != loop::LoopKind::Parallel) return;
  if (isNonNegative(loop.min)) nonNegative_.insert(loop.var.get());
  if (loop.loop == loop::LoopKind::Vector) {
    fail("vector loop over " + loop.var->name + " reached code generation");
    return;
  }
  if (loop.loop == loop::LoopKind::Parallel) {
    if (sawParallel_) {
      fail("a second parallel loop, over " + loop.var->name);
      return;
    }
    sawParallel_ = true;
    llvm::Value* min = emit(loop.min);
    emitLoop(loop, b_.CreateAdd(min, begin_), b_.CreateAdd(min, end_), true);
    return;
  }
  if (fixed && ((loop.loop == loop::LoopKind::Unrolled && extent <= kMaxUnroll) || extent == 1)) {
    emitUnrolled(loop, extent);
    return;
  }
  llvm::Value* min = emit(loop.min);
  emitLoop(loop, min, b_.CreateAdd(min, emit(loop.extent), "", false, true), !fixed);
}

void Emitter::emitUnrolled(const loop::For& loop, int64_t extent) {
  llvm::Value* min = emit(loop.min);
  bool outermost = blocks_.empty();
  if (outermost && extent > 1) emitBlocks(loop, extent);
  for (int64_t i = 0; i < extent; ++i) {
    if (outermost) copy_ = static_cast<size_t>(i);
    vars_[loop.var.get()] = i == 0 ? min : b_.CreateAdd(min, b_.getInt64(static_cast<uint64_t>(i)));
    emitStmt(loop.body);
  }
  if (outermost) blocks_.clear();
}

void Emitter::emitLoop(const loop::For& loop, llvm::Value* begin, llvm::Value* end, bool mayBeEmpty) {
  auto* before = b_.GetInsertBlock();
  auto* body = newBlock("loop");
  llvm::BasicBlock* after = nullptr;
  if (mayBeEmpty) {
    after = newBlock("done");
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), body, after);
  } else {
    b_.CreateBr(body);
  }
  b_.SetInsertPoint(body);
  auto* var = b_.CreatePHI(b_.getInt64Ty(), 2, loop.var->name);
  var->addIncoming(begin, before);
  vars_[loop.var.get()] = var;
  ++depth_;
  emitStmt(loop.body);
  --depth_;
  auto* next = b_.CreateAdd(var, b_.getInt64(1), "", true, true);
  var->addIncoming(next, b_.GetInsertBlock());
  if (!after) after = newBlock("done");
  after->moveAfter(b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
  b_.SetInsertPoint(after);
  forgetTo(0);
}

void Emitter::emitIf(const loop::IfThen& s) {
  llvm::Value* condition = emit(s.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    emitStmt(known->isOne() ? s.then : s.otherwise);
    return;
  }
  auto* then = newBlock("then");
  auto* otherwise = s.otherwise ? newBlock("else") : nullptr;
  auto* after = newBlock("endif");
  b_.CreateCondBr(condition, then, otherwise ? otherwise : after);
  b_.SetInsertPoint(then);
  ++depth_;
  emitStmt(s.then);
  b_.CreateBr(after);
  if (otherwise) {
    b_.SetInsertPoint(otherwise);
    emitStmt(s.otherwise);
    b_.CreateBr(after);
  }
  --depth_;
  b_.SetInsertPoint(after);
  forgetTo(0);
}

}  // namespace locution::targets::cpu

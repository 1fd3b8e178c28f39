// Loop IR to LLVM IR. One Emitter makes one kernel function in a module; the emit_*.cpp files hold its parts by theme.
// Invariants: structured control flow only, so a value made in an outer scope dominates all inner ones; constants stay apart
// from run-time terms in addresses, so that unrolled copies differ in a displacement only; the first error wins and emission
// goes on with poison.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "loop/expr.h"
#include "support/status.h"

namespace locution::targets::cpu {

/// The name of the kernel function in its module.
inline constexpr const char* kKernelSymbol = "kernel";

/// Unrolled loops with more copies than this are emitted as loops.
inline constexpr int64_t kMaxUnroll = 1024;

/// Whether `e` is an integer constant, and its value.
inline bool constantOf(const loop::Expr& e, int64_t* value) {
  const auto* imm = loop::as<loop::IntImm>(e);
  if (imm) *value = imm->value;
  return imm != nullptr;
}

class Emitter {
 public:
  Emitter(const loop::Function& function, const TargetSpec& target, llvm::Module& module);
  /// Adds the function to the module. Errors: what this target can't express.
  Status emit();

 private:
  /// sum of value * factor + constant, in int64. Terms are ordered outermost definition first, so that partial sums leave loops.
  struct Linear {
    std::vector<std::pair<llvm::Value*, int64_t>> terms;
    int64_t constant = 0;
    bool isConstant() const { return terms.empty(); }
  };
  /// The index of lane i: base + i * step, or, where that doesn't hold, `general` (a vector of int64).
  struct LaneIndex {
    Linear base;
    int64_t step = 0;
    llvm::Value* general = nullptr;
  };
  /// Where a buffer's elements are.
  struct Place {
    llvm::Value* base = nullptr;              ///< memory
    std::vector<llvm::AllocaInst*> elements;  ///< Register scope: an SSA value each, once promoted
    llvm::MDNode* scopes = nullptr;           ///< alias metadata of accesses
    llvm::MDNode* noAlias = nullptr;
    bool invariant = false;  ///< nothing in the kernel writes it
  };

  // emit_frame.cpp: arguments and buffers.
  void makeFrame();
  void describeAliases();
  Place& place(const loop::Buffer* buffer);
  void allocatePlace(const loop::Buffer* buffer);

  // emit_stmt.cpp
  void emitStmt(const loop::Stmt& s);
  void emitBlock(const loop::Block& block);
  void emptyRegisters();
  void emitFor(const loop::For& loop);
  void emitUnrolled(const loop::For& loop, int64_t extent);
  void emitLoop(const loop::For& loop, llvm::Value* begin, llvm::Value* end, bool mayBeEmpty);
  void emitIf(const loop::IfThen& s);
  llvm::BasicBlock* newBlock(const char* name);

  // emit_expr.cpp: values. The memo holds within one statement, for what dominates the insertion point.
  llvm::Value* emit(const loop::Expr& e);
  llvm::Value* emitNew(const loop::Expr& e);
  llvm::Value* emitSelect(const loop::Select& e);
  static loop::Expr atLane(const loop::Expr& e, const loop::VarRef& lane);
  static bool dividesVectors(const std::vector<loop::Expr>& indices);
  bool isNonNegative(const loop::Expr& e) const;
  llvm::Value* emitPrefetch(const loop::Call& e);
  llvm::Value* emitLoadOrZero(const loop::Select& e, const loop::Load& yes, llvm::Value* condition);
  llvm::Value* emitChosenLoad(const loop::Select& e, llvm::Value* condition);
  llvm::Value* emitRamp(const loop::Ramp& e);
  llvm::Value* emitReduce(const loop::VectorReduce& e);
  llvm::Value* emitLet(const loop::LetExpr& e);
  llvm::Value* emitLaneCompare(const loop::Binary& e);
  bool readsMemory(const loop::Expr& e);
  void forgetTo(size_t mark);
  /// yes() where the condition holds, else no(), with a branch.
  template <typename Yes, typename No>
  llvm::Value* branch(llvm::Value* condition, Yes yes, No no);

  // emit_arith.cpp: operators on values of a dtype.
  llvm::Value* arith(loop::BinaryOp op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* floatArith(loop::BinaryOp op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* intArith(loop::BinaryOp op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(loop::BinaryOp op, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* floatMinMax(bool isMax, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitCall(const loop::Call& e);
  llvm::Value* emitDot(const loop::Call& e);
  llvm::Value* emitWide(const loop::Expr& e, int lanes);
  llvm::Value* multiplyPairs(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* emitJoin(const loop::Call& e);
  llvm::Value* loadJoined(const std::vector<loop::Expr>& parts);
  llvm::Value* joinedPointer(const std::vector<const loop::Load*>& loads, LaneIndex* first);
  llvm::Value* cheapIntrinsic(const loop::Call& e, DType type, const std::vector<llvm::Value*>& args);
  llvm::Value* tableCall(const std::string& name, DType type, const std::vector<llvm::Value*>& args);
  llvm::Value* multiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* c);

  // emit_convert.cpp: casts; f16, bf16 and 8-bit floats are integers here, and float32 while computed with.
  llvm::Value* convert(llvm::Value* v, DType from, DType to);
  llvm::Value* widen(llvm::Value* v, DType small);
  llvm::Value* narrow(llvm::Value* v, DType small);
  llvm::Value* floatConstant(DType type, double value);
  llvm::Value* clampedTo(llvm::Value* v, DType narrow);
  llvm::Value* toNarrowInt(llvm::Value* v, DType narrow, DType to);
  llvm::Value* throughNarrowInt(const loop::Expr& e, int lanes);

  // emit_index.cpp: indices as sums, addresses.
  Linear linear(const loop::Expr& e);
  LaneIndex laneIndex(const loop::Expr& e);
  Linear term(llvm::Value* v);
  static Linear add(const Linear& a, const Linear& b, int64_t factorOfB);
  static Linear scaled(const Linear& a, int64_t factor);
  llvm::Value* materialise(const Linear& l);
  LaneIndex flatIndex(const loop::Buffer& buffer, const std::vector<loop::Expr>& indices);
  llvm::Value* laneVector(const LaneIndex& index, int lanes);
  llvm::Value* address(const Place& p, llvm::Type* element, const Linear& index);

  // emit_memory.cpp
  void emitStore(const loop::Store& s);
  llvm::Value* emitLoad(const loop::Load& e);
  llvm::Value* loadMasked(const loop::Load& e, Place& p, const LaneIndex& index, llvm::Value* mask);
  llvm::Value* loadStrided(const Place& p, DType type, const Linear& base, int64_t step, int lanes);
  llvm::Value* loadOne(const Place& p, llvm::Type* memory, llvm::Value* pointer);
  llvm::Value* loadPacked(const loop::Load& e, Place& p, const LaneIndex& index);
  void storeVector(Place& p, const LaneIndex& index, llvm::Value* value, llvm::Value* mask);
  llvm::Value* fromMemory(llvm::Value* v, DType type);
  llvm::Value* toMemory(llvm::Value* v, DType type);
  llvm::Instruction* tagged(llvm::Instruction* access, const Place& p);

  // emit_transpose.cpp
  void emitBlocks(const loop::For& loop, int64_t extent);
  void emitBlock(const loop::For& loop, int64_t min, int64_t extent, const loop::Load& e);
  llvm::Value* joined(std::vector<llvm::Value*> parts);

  // Types and small helpers.
  llvm::Type* scalarType(DType type);
  llvm::Type* memoryType(DType type);
  llvm::Type* valueType(loop::Type type);
  llvm::Value* splat(llvm::Value* v, int lanes);
  llvm::Value* sameShape(llvm::Type* like, llvm::Value* scalar);
  llvm::Constant* intOf(llvm::Type* like, int64_t value);
  llvm::Constant* floatOf(llvm::Type* like, double value);
  llvm::Value* zeroOf(loop::Type type);
  llvm::Value* fail(const std::string& message, loop::Type type = {DType::I64, 1});

  const loop::Function& function_;
  const TargetSpec& target_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* kernel_ = nullptr;
  llvm::Value* begin_ = nullptr;
  llvm::Value* end_ = nullptr;
  llvm::Value* buffers_ = nullptr;
  llvm::Value* math_ = nullptr;
  bool sawParallel_ = false;
  int inTile_ = 0;  ///< register buffers that are alive
  int64_t stackBytes_ = 0;
  Status status_;
  std::unordered_map<const loop::Buffer*, Place> places_;
  std::unordered_map<const loop::Buffer*, size_t> paramIndex_;
  std::unordered_set<const loop::Buffer*> spilled_;  ///< Register buffers that run-time values index: kept in memory
  std::unordered_map<const loop::Var*, llvm::Value*> vars_;
  llvm::GlobalVariable* zeros_ = nullptr;             ///< made when first needed
  std::unordered_set<const loop::Var*> nonNegative_;  ///< loop counters
  struct Quotient {
    Linear dividend;
    int64_t divisor;
    llvm::BasicBlock* block;
    llvm::Value* value;
  };
  std::vector<Quotient> quotients_;
  std::unordered_map<const loop::ExprNode*, loop::Expr> quotientOf_;  ///< of remainders
  std::vector<loop::Expr> kept_;                 ///< nodes that maps name by their address must live on
  llvm::DenseMap<llvm::Value*, int64_t> order_;  ///< of terms of Linear: outermost loop first, then first use
  int64_t depth_ = 0;
  std::unordered_map<const loop::ExprNode*, llvm::Value*> memo_;
  std::vector<const loop::ExprNode*> memoLog_;
  std::unordered_map<const loop::ExprNode*, bool> readsMemory_;
  std::unordered_map<const loop::ExprNode*, std::vector<llvm::Value*>>
      blocks_;  ///< of each copy of the loop being unrolled
  size_t copy_ = 0;
};

template <typename Yes, typename No>
llvm::Value* Emitter::branch(llvm::Value* condition, Yes yes, No no) {
  auto* yesBlock = newBlock("yes");
  auto* noBlock = newBlock("no");
  auto* joined = newBlock("joined");
  b_.CreateCondBr(condition, yesBlock, noBlock);
  size_t mark = memoLog_.size();
  ++depth_;
  b_.SetInsertPoint(yesBlock);
  llvm::Value* yesValue = yes();
  yesBlock = b_.GetInsertBlock();
  b_.CreateBr(joined);
  forgetTo(mark);
  b_.SetInsertPoint(noBlock);
  llvm::Value* noValue = no();
  noBlock = b_.GetInsertBlock();
  b_.CreateBr(joined);
  forgetTo(mark);
  --depth_;
  b_.SetInsertPoint(joined);
  auto* phi = b_.CreatePHI(yesValue->getType(), 2);
  phi->addIncoming(yesValue, yesBlock);
  phi->addIncoming(noValue, noBlock);
  return phi;
}

}  // namespace locution::targets::cpu

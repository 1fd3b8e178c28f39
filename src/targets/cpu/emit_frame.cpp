// The frame of a kernel: arguments, buffers, what may alias, which register buffers stay in memory, LLVM's types.
#include <algorithm>

#include "core/dtype.h"
#include "loop/build.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

// Worker threads have stacks of 8 MiB; kernels share them with nobody, but big frames page-fault on first use.
constexpr int64_t kMaxStackBytes = 1 << 20;

int64_t elementCount(const loop::Buffer& buffer) {
  int64_t count = 1;
  for (const auto& dim : buffer.dims) {
    int64_t extent = 0;
    if (!constantOf(dim, &extent)) return -1;
    count *= extent;
  }
  return count;
}

int64_t bufferBytes(const loop::Buffer& buffer) {
  int64_t count = elementCount(buffer);
  return count < 0 ? -1 : dtypeBytes(buffer.element.dtype, count * buffer.element.lanes);
}

// Finds Register buffers that an index names by something other than constants and unrolled variables.
class RegisterScan {
 public:
  explicit RegisterScan(std::unordered_set<const loop::Buffer*>& spilled) : spilled_(spilled) {}

  void stmt(const loop::Stmt& s) {
    if (!s) return;
    if (const auto* store = loop::as<loop::Store>(s)) {
      access(*store->buffer, store->indices);
      expr(store->value);
      expr(store->mask);
    } else if (const auto* f = loop::as<loop::For>(s)) {
      int64_t extent = 0;
      bool fixed = f->loop == loop::LoopKind::Unrolled && constantOf(f->extent, &extent) && extent <= kMaxUnroll &&
                   isFixed(f->min);
      if (extent == 1 || (constantOf(f->extent, &extent) && extent == 1)) fixed = isFixed(f->min);
      if (fixed) fixed_.insert(f->var.get());
      expr(f->min);
      expr(f->extent);
      stmt(f->body);
    } else if (const auto* block = loop::as<loop::Block>(s)) {
      for (const auto& inner : block->stmts) stmt(inner);
    } else if (const auto* cond = loop::as<loop::IfThen>(s)) {
      expr(cond->condition);
      stmt(cond->then);
      stmt(cond->otherwise);
    } else if (const auto* alloc = loop::as<loop::Allocate>(s)) {
      stmt(alloc->body);
    } else if (const auto* let = loop::as<loop::LetStmt>(s)) {
      if (isFixed(let->value)) fixed_.insert(let->var.get());
      expr(let->value);
      stmt(let->body);
    }
  }

 private:
  bool isFixed(const loop::Expr& e) {
    if (loop::as<loop::IntImm>(e)) return true;
    if (const auto* var = loop::as<loop::Var>(e)) return fixed_.contains(var);
    if (const auto* bin = loop::as<loop::Binary>(e)) return isFixed(bin->a) && isFixed(bin->b);
    return false;
  }
  void access(const loop::Buffer& buffer, const std::vector<loop::Expr>& indices) {
    for (const auto& index : indices) {
      if (buffer.scope == loop::Scope::Register && !isFixed(index)) spilled_.insert(&buffer);
      expr(index);
    }
  }
  void expr(const loop::Expr& e) {
    if (!e || !seen_.insert(e.get()).second) return;
    if (const auto* load = loop::as<loop::Load>(e)) {
      access(*load->buffer, load->indices);
      expr(load->mask);
    } else if (const auto* cast = loop::as<loop::Cast>(e)) {
      expr(cast->value);
    } else if (const auto* bin = loop::as<loop::Binary>(e)) {
      expr(bin->a);
      expr(bin->b);
    } else if (const auto* sel = loop::as<loop::Select>(e)) {
      expr(sel->condition);
      expr(sel->yes);
      expr(sel->no);
    } else if (const auto* ramp = loop::as<loop::Ramp>(e)) {
      expr(ramp->base);
      expr(ramp->stride);
    } else if (const auto* wide = loop::as<loop::Broadcast>(e)) {
      expr(wide->value);
    } else if (const auto* call = loop::as<loop::Call>(e)) {
      for (const auto& arg : call->args) expr(arg);
    } else if (const auto* reduce = loop::as<loop::VectorReduce>(e)) {
      expr(reduce->value);
    } else if (const auto* let = loop::as<loop::LetExpr>(e)) {
      expr(let->value);
      expr(let->body);
    }
  }

  std::unordered_set<const loop::Buffer*>& spilled_;
  std::unordered_set<const loop::Var*> fixed_;
  std::unordered_set<const loop::ExprNode*> seen_;
};

}  // namespace

Emitter::Emitter(const loop::Function& function, const TargetSpec& target, llvm::Module& module)
    : function_(function), target_(target), module_(module), context_(module.getContext()), b_(module.getContext()) {
  llvm::FastMathFlags flags;
  // A target without FMA gets none, though its instruction set may have it: results are then those of any other such target.
  flags.setAllowContract(target.hasFma);
  b_.setFastMathFlags(flags);
}

Status Emitter::emit() {
  makeFrame();
  describeAliases();
  RegisterScan(spilled_).stmt(function_.body);
  emitStmt(function_.body);
  b_.CreateRet(b_.getInt32(0));
  return status_.withContext("kernel " + function_.name);
}

void Emitter::makeFrame() {
  auto* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  kernel_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kKernelSymbol, module_);
  kernel_->setAlignment(llvm::Align(64));
  kernel_->setDoesNotThrow();
  // Nothing may turn loops into calls of memcpy or memset: a kernel has no external symbols.
  kernel_->addFnAttr("no-builtins");
  if (module_.getTargetTriple().isX86()) {
    std::string bits = std::to_string(target_.vectorBytes * 8);
    kernel_->addFnAttr("prefer-vector-width", bits);
    kernel_->addFnAttr("min-legal-vector-width", bits);
  } else {
    kernel_->addFnAttr("tune-cpu", target_.cpu);
  }
  b_.SetInsertPoint(newBlock("entry"));
  llvm::Value* args = kernel_->getArg(0);
  begin_ = kernel_->getArg(1);
  end_ = kernel_->getArg(2);
  auto* noMetadata = llvm::MDNode::get(context_, {});
  auto* buffers = b_.CreateLoad(pointer, args, "buffers");
  buffers->setMetadata(llvm::LLVMContext::MD_invariant_load, noMetadata);
  buffers_ = buffers;
  auto* math = b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, args, 1), "math");
  math->setMetadata(llvm::LLVMContext::MD_invariant_load, noMetadata);
  math_ = math;
  for (size_t i = 0; i < function_.params.size(); ++i) {
    const loop::Buffer& param = *function_.params[i];
    auto* base = b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, buffers_, i), param.name);
    base->setMetadata(llvm::LLVMContext::MD_invariant_load, noMetadata);
    if (int64_t bytes = bufferBytes(param); bytes > 0) {
      auto* size = llvm::ConstantAsMetadata::get(b_.getInt64(static_cast<uint64_t>(bytes)));
      base->setMetadata(llvm::LLVMContext::MD_dereferenceable, llvm::MDNode::get(context_, size));
      base->setMetadata(llvm::LLVMContext::MD_nonnull, noMetadata);
    }
    places_[&param].base = base;
  }
}

// Memory planning may put an output exactly onto an input whose elements the kernel reads at the same indices. Only buffers of
// equal size can be such a pair; all others, and any two outputs, are told apart.
void Emitter::describeAliases() {
  size_t count = function_.params.size();
  size_t firstOutput = count - std::min(count, function_.outputCount);
  llvm::MDBuilder metadata(context_);
  auto* domain = metadata.createAnonymousAliasScopeDomain(function_.name);
  std::vector<llvm::Metadata*> scopes;
  for (size_t i = 0; i < count; ++i)
    scopes.push_back(metadata.createAnonymousAliasScope(domain, function_.params[i]->name));
  auto mayShare = [&](size_t i, size_t j) {
    if (i == j) return true;
    if (i >= firstOutput && j >= firstOutput) return false;
    if (i < firstOutput && j < firstOutput) return true;
    int64_t bytes = bufferBytes(*function_.params[i]);
    return bytes < 0 || bytes == bufferBytes(*function_.params[j]);
  };
  for (size_t i = 0; i < count; ++i) {
    Place& place = places_[function_.params[i].get()];
    std::vector<llvm::Metadata*> others;
    bool shared = i >= firstOutput;
    for (size_t j = 0; j < count; ++j) {
      if (!mayShare(i, j)) others.push_back(scopes[j]);
      if (i < firstOutput && j >= firstOutput && mayShare(i, j)) shared = true;
    }
    place.scopes = llvm::MDNode::get(context_, scopes[i]);
    place.noAlias = others.empty() ? nullptr : llvm::MDNode::get(context_, others);
    place.invariant = !shared;
  }
}

llvm::BasicBlock* Emitter::newBlock(const char* name) { return llvm::BasicBlock::Create(context_, name, kernel_); }

Emitter::Place& Emitter::place(const loop::Buffer* buffer) {
  auto it = places_.find(buffer);
  if (it != places_.end()) return it->second;
  fail("buffer " + buffer->name + " is not allocated");
  Place& none = places_[buffer];
  none.base = llvm::PoisonValue::get(b_.getPtrTy());
  return none;
}

void Emitter::allocatePlace(const loop::Buffer* buffer) {
  if (places_.contains(buffer)) return;  // An unrolled copy: each starts with undefined contents.
  Place& p = places_[buffer];
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  auto& entry = kernel_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.begin());
  int64_t count = elementCount(*buffer);
  if (count < 0) {
    fail("buffer " + buffer->name + " has run-time extents; only parameters may");
    count = 1;
  }
  bool isRegister = buffer->scope == loop::Scope::Register && !spilled_.contains(buffer);
  if (isRegister) {
    for (int64_t i = 0; i < count; ++i)
      p.elements.push_back(b_.CreateAlloca(valueType(buffer->element), nullptr, buffer->name));
    return;
  }
  int64_t bytes = std::max<int64_t>(dtypeBytes(buffer->element.dtype, count * buffer->element.lanes), 1);
  stackBytes_ += (bytes + 63) / 64 * 64;
  if (stackBytes_ > kMaxStackBytes) {
    fail("buffer " + buffer->name + " of " + std::to_string(bytes) + " bytes does not fit on the stack");
    bytes = 1;
  }
  auto* memory =
      b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)), nullptr, buffer->name);
  memory->setAlignment(llvm::Align(64));
  p.base = memory;
}

llvm::Type* Emitter::scalarType(DType type) {
  switch (type) {
    case DType::F32:
      return b_.getFloatTy();
    case DType::F64:
      return b_.getDoubleTy();
    case DType::Bool:
      return b_.getInt1Ty();
    default:
      break;
  }
  int bits = dtypeBits(type);
  if (bits == 0 || bits > 64 || dtypeClass(type) == DTypeClass::Complex) {
    fail("no code for values of type " + std::string(dtypeName(type)));
    bits = 64;
  }
  return b_.getIntNTy(static_cast<unsigned>(bits));
}

llvm::Type* Emitter::memoryType(DType type) { return type == DType::Bool ? b_.getInt8Ty() : scalarType(type); }

llvm::Type* Emitter::valueType(loop::Type type) {
  auto* scalar = scalarType(type.dtype);
  return type.lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(type.lanes));
}

llvm::Value* Emitter::splat(llvm::Value* v, int lanes) {
  if (lanes == 1 || v->getType()->isVectorTy()) return v;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
}

llvm::Value* Emitter::sameShape(llvm::Type* like, llvm::Value* scalar) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? splat(scalar, static_cast<int>(vector->getNumElements())) : scalar;
}

llvm::Constant* Emitter::intOf(llvm::Type* like, int64_t value) {
  return llvm::ConstantInt::get(like, static_cast<uint64_t>(value), true);
}
llvm::Constant* Emitter::floatOf(llvm::Type* like, double value) { return llvm::ConstantFP::get(like, value); }
llvm::Value* Emitter::zeroOf(loop::Type type) { return llvm::Constant::getNullValue(valueType(type)); }

llvm::Value* Emitter::fail(const std::string& message, loop::Type type) {
  if (status_.isOk()) status_ = Status::error(message);
  bool known = type.dtype != DType::String && dtypeClass(type.dtype) != DTypeClass::Complex;
  return llvm::PoisonValue::get(known ? valueType(type) : b_.getInt64Ty());
}

}  // namespace locution::targets::cpu

// Compiles a Function to a tape (tape.h) and runs it. A statement's expressions share what they have in common: a node is
// computed once where it is first needed, except that what is first needed in one side of a lazy Select counts only there.
#include "loop/interpreter.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "loop/build.h"
#include "loop/passes.h"
#include "loop/tape.h"
#include "support/strings.h"

namespace locution::loop {
namespace {

class TapeCompiler {
 public:
  explicit TapeCompiler(bool float64) : float64_(float64) {}

  void addParam(const Buffer& b, Tensor& t) {
    BufferPlan& plan = planFor(b);
    plan.bytes = t.raw();
    // An empty tensor may have no memory; nothing in it can be touched.
    static std::byte nothing;
    if (!plan.bytes) plan.bytes = &nothing;
    plan.dtype = b.element.dtype;
  }

  Status compile(const Stmt& s) {
    LOCUTION_RETURN_IF_ERROR(stmt(s));
    emit({.run = stopHandler()});
    return Status::ok();
  }

  Status run(int64_t maxSteps) {
    Machine machine;
    machine.stepsLeft = maxSteps;
    const Instruction* i = code_.data();
    while (i) i = i->run(i, machine);
    return machine.error.empty() ? Status::ok() : Status::error(machine.error);
  }

 private:
  using Scope = std::unordered_map<const ExprNode*, const Word*>;
  std::vector<Expr> kept_;  ///< nodes of our own, which scopes name by address

  DType computed(DType type) const { return float64_ && type == DType::F32 ? DType::F64 : type; }

  BufferPlan& planFor(const Buffer& b) {
    auto it = plans_.find(&b);
    if (it != plans_.end()) return *it->second;
    BufferPlan& plan = planStorage_.emplace_back();
    plan.buffer = &b;
    plan.extents = extents(b);
    plan.strides.resize(plan.extents.size());
    for (size_t d = plan.extents.size(); d-- > 0;) {
      plan.strides[d] = plan.elements;
      plan.elements *= plan.extents[d];
    }
    plan.dtype = b.element.dtype;
    plan.lanes = b.element.lanes;
    plans_[&b] = &plan;
    return plan;
  }

  Word* slot(int lanes) {
    auto count = static_cast<size_t>(lanes);
    if (chunks_.empty() || used_ + count > chunks_.back().size()) {
      chunks_.emplace_back(std::max<size_t>(count, 1024));
      used_ = 0;
    }
    Word* at = chunks_.back().data() + used_;
    used_ += count;
    return at;
  }
  size_t emit(Instruction i) {
    code_.push_back(i);
    return code_.size() - 1;
  }
  void landHere(size_t jump) { code_[jump].target = static_cast<int32_t>(code_.size() - jump); }

  const Word* find(const ExprNode* e) const {
    for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it)
      if (auto found = it->find(e); found != it->end()) return found->second;
    return nullptr;
  }

  const Word* constantSlot(Word w) {
    Word* s = slot(1);
    *s = w;
    return s;
  }

  Result<const Word*> expr(const Expr& e) {
    if (auto* v = as<Var>(e)) {
      auto it = vars_.find(v);
      if (it == vars_.end()) return Status::error("variable " + v->name + " is not defined");
      return it->second;
    }
    if (const Word* known = find(e.get())) return known;
    LOCUTION_ASSIGN_OR_RETURN(const Word* result, compute(e));
    scopes_.back()[e.get()] = result;
    return result;
  }

  Result<const Word*> compute(const Expr& e) {
    Word* out = nullptr;
    auto make = [&](Instruction i) -> Result<const Word*> {
      out = slot(e->type.lanes);
      i.out = out;
      emit(i);
      return out;
    };
    switch (e->kind) {
      case ExprKind::Var:
        break;
      case ExprKind::IntImm:
        return constantSlot(wordOf(as<IntImm>(e)->value));
      case ExprKind::FloatImm:
        return constantSlot(wordOf(as<FloatImm>(e)->value));
      case ExprKind::Cast: {
        auto* n = as<Cast>(e);
        LOCUTION_ASSIGN_OR_RETURN(const Word* a, expr(n->value));
        DType from = computed(n->value->type.dtype), to = computed(e->type.dtype);
        return make({.run = castHandler(from, to), .a = a, .lanes = e->type.lanes, .type = from, .result = to});
      }
      case ExprKind::Binary: {
        auto* n = as<Binary>(e);
        LOCUTION_ASSIGN_OR_RETURN(const Word* a, expr(n->a));
        LOCUTION_ASSIGN_OR_RETURN(const Word* b, expr(n->b));
        DType type = computed(n->a->type.dtype);
        return make({.run = binaryHandler(n->op, type),
                     .a = a,
                     .b = b,
                     .lanes = e->type.lanes,
                     .type = type,
                     .aux = uint8_t(n->op)});
      }
      case ExprKind::Select:
        return selectExpr(*as<Select>(e));
      case ExprKind::Load: {
        auto* n = as<Load>(e);
        LOCUTION_ASSIGN_OR_RETURN(AccessPlan * plan, access(n->buffer, n->indices, n->mask, e->type.lanes));
        return make({.run = loadHandler(*plan), .lanes = e->type.lanes, .access = plan});
      }
      case ExprKind::Ramp: {
        auto* n = as<Ramp>(e);
        LOCUTION_ASSIGN_OR_RETURN(const Word* a, expr(n->base));
        LOCUTION_ASSIGN_OR_RETURN(const Word* b, expr(n->stride));
        return make({.run = rampHandler(), .a = a, .b = b, .lanes = e->type.lanes, .type = e->type.dtype});
      }
      case ExprKind::Broadcast: {
        LOCUTION_ASSIGN_OR_RETURN(const Word* a, expr(as<Broadcast>(e)->value));
        return make({.run = broadcastHandler(), .a = a, .lanes = e->type.lanes});
      }
      case ExprKind::Call: {
        auto* n = as<Call>(e);
        const IntrinsicFacts* facts = findIntrinsic(n->name);
        if (!facts || facts->arity != static_cast<int>(n->args.size()))
          return Status::error("no intrinsic " + n->name + " of that arity");
        if (facts->id == Intrinsic::I_prefetch) {
          kept_.push_back(constant(e->type.dtype, 0));
          return expr(kept_.back());
        }
        const Word* args[3] = {nullptr, nullptr, nullptr};
        for (size_t i = 0; i < n->args.size(); ++i) {
          LOCUTION_ASSIGN_OR_RETURN(args[i], expr(n->args[i]));
        }
        // A bitcast is about the bits of the type itself: float32 computed in double is rounded first by wordToBits.
        bool bits = facts->id == Intrinsic::I_bitcast;
        DType from = n->args[0]->type.dtype, to = e->type.dtype;
        return make({.run = intrinsicHandler(),
                     .a = args[0],
                     .b = args[1],
                     .c = args[2],
                     .lanes = e->type.lanes,
                     .type = bits ? from : computed(from),
                     .result = bits ? to : computed(to),
                     .aux = uint8_t(facts->id)});
      }
      case ExprKind::VectorReduce: {
        auto* n = as<VectorReduce>(e);
        LOCUTION_ASSIGN_OR_RETURN(const Word* a, expr(n->value));
        return make({.run = reduceHandler(),
                     .a = a,
                     .lanes = n->value->type.lanes,
                     .type = computed(e->type.dtype),
                     .aux = uint8_t(n->op)});
      }
      case ExprKind::LetExpr: {
        auto* n = as<LetExpr>(e);
        LOCUTION_ASSIGN_OR_RETURN(const Word* value, expr(n->value));
        // Nodes computed before may hold another binding of the same variable.
        bool again = !letsSeen_.insert(n->var.get()).second;
        std::vector<Scope> outer;
        if (again) {
          outer = std::move(scopes_);
          scopes_.assign(1, {});
        }
        const Word* old = std::exchange(vars_[n->var.get()], value);
        LOCUTION_ASSIGN_OR_RETURN(const Word* body, expr(n->body));
        rebind(n->var.get(), old);
        if (again) scopes_ = std::move(outer);
        return body;
      }
    }
    return Status::error("unexpected expression " + print(e));
  }

  Result<const Word*> selectExpr(const Select& n) {
    LOCUTION_ASSIGN_OR_RETURN(const Word* condition, expr(n.condition));
    Word* out = slot(n.type.lanes);
    if (n.condition->type.lanes > 1) {
      LOCUTION_ASSIGN_OR_RETURN(const Word* yes, expr(n.yes));
      LOCUTION_ASSIGN_OR_RETURN(const Word* no, expr(n.no));
      emit({.run = selectHandler(), .out = out, .a = condition, .b = yes, .c = no, .lanes = n.type.lanes});
      return out;
    }
    auto side = [&](const Expr& e) -> Status {
      scopes_.emplace_back();
      auto value = expr(e);
      scopes_.pop_back();
      LOCUTION_RETURN_IF_ERROR(value.status());
      emit({.run = copyHandler(), .out = out, .a = *value, .lanes = n.type.lanes});
      return Status::ok();
    };
    size_t toNo = emit({.run = jumpIfFalseHandler(), .a = condition});
    LOCUTION_RETURN_IF_ERROR(side(n.yes));
    size_t toEnd = emit({.run = jumpHandler()});
    landHere(toNo);
    LOCUTION_RETURN_IF_ERROR(side(n.no));
    landHere(toEnd);
    return out;
  }

  Result<AccessPlan*> access(const BufferRef& buffer, const std::vector<Expr>& indices, const Expr& mask, int lanes) {
    auto it = plans_.find(buffer.get());
    if (it == plans_.end()) return Status::error("buffer " + buffer->name + " is not defined");
    if (indices.size() != it->second->extents.size())
      return Status::error("wrong number of indices into " + buffer->name);
    AccessPlan& plan = accesses_.emplace_back();
    plan.buffer = it->second;
    plan.lanes = lanes;
    for (size_t d = 0; d < indices.size(); ++d) {
      LOCUTION_ASSIGN_OR_RETURN(const Word* x, expr(indices[d]));
      plan.indices.push_back({x, plan.buffer->extents[d], plan.buffer->strides[d], indices[d]->type.lanes > 1});
    }
    if (mask) {
      LOCUTION_ASSIGN_OR_RETURN(plan.mask, expr(mask));
    }
    return &plan;
  }

  void rebind(const Var* var, const Word* old) {
    if (old)
      vars_[var] = old;
    else
      vars_.erase(var);
  }
  void freshScopes() { scopes_.assign(1, {}); }

  Status stmt(const Stmt& s) {
    if (!s) return Status::ok();
    freshScopes();
    switch (s->kind) {
      case StmtKind::Store: {
        auto* n = as<Store>(s);
        LOCUTION_ASSIGN_OR_RETURN(const Word* value, expr(n->value));
        LOCUTION_ASSIGN_OR_RETURN(AccessPlan * plan, access(n->buffer, n->indices, n->mask, n->value->type.lanes));
        emit({.run = storeHandler(*plan), .a = value, .lanes = n->value->type.lanes, .access = plan});
        return Status::ok();
      }
      case StmtKind::For: {
        auto* n = as<For>(s);
        LOCUTION_ASSIGN_OR_RETURN(const Word* min, expr(n->min));
        LOCUTION_ASSIGN_OR_RETURN(const Word* extent, expr(n->extent));
        Word* counter = slot(2);
        const Word* old = std::exchange(vars_[n->var.get()], counter);
        size_t begin = emit({.run = loopBeginHandler(), .out = counter, .a = min, .b = extent});
        LOCUTION_RETURN_IF_ERROR(stmt(n->body));
        size_t next = emit({.run = loopNextHandler(), .out = counter});
        code_[next].target = static_cast<int32_t>(begin + 1) - static_cast<int32_t>(next);
        landHere(begin);
        rebind(n->var.get(), old);
        return Status::ok();
      }
      case StmtKind::Block:
        for (const Stmt& inner : as<Block>(s)->stmts) LOCUTION_RETURN_IF_ERROR(stmt(inner));
        return Status::ok();
      case StmtKind::IfThen: {
        auto* n = as<IfThen>(s);
        LOCUTION_ASSIGN_OR_RETURN(const Word* condition, expr(n->condition));
        size_t toElse = emit({.run = jumpIfFalseHandler(), .a = condition});
        LOCUTION_RETURN_IF_ERROR(stmt(n->then));
        if (!n->otherwise) return landHere(toElse), Status::ok();
        size_t toEnd = emit({.run = jumpHandler()});
        landHere(toElse);
        LOCUTION_RETURN_IF_ERROR(stmt(n->otherwise));
        landHere(toEnd);
        return Status::ok();
      }
      case StmtKind::Allocate: {
        auto* n = as<Allocate>(s);
        BufferPlan& plan = planFor(*n->buffer);
        plan.words.resize(static_cast<size_t>(plan.elements * plan.lanes));
        AccessPlan& whole = accesses_.emplace_back();
        whole.buffer = &plan;
        emit({.run = poisonHandler(), .access = &whole});
        return stmt(n->body);
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        LOCUTION_ASSIGN_OR_RETURN(const Word* value, expr(n->value));
        const Word* old = std::exchange(vars_[n->var.get()], value);
        LOCUTION_RETURN_IF_ERROR(stmt(n->body));
        rebind(n->var.get(), old);
        return Status::ok();
      }
    }
    return Status::ok();
  }

  bool float64_;
  std::vector<Instruction> code_;
  std::deque<std::vector<Word>> chunks_;
  size_t used_ = 0;
  std::vector<Scope> scopes_{1};
  std::unordered_map<const Var*, const Word*> vars_;
  std::unordered_set<const Var*> letsSeen_;
  std::unordered_map<const Buffer*, BufferPlan*> plans_;
  std::deque<BufferPlan> planStorage_;
  std::deque<AccessPlan> accesses_;
};

}  // namespace

Status interpret(const Function& f, std::vector<Tensor>& params, const InterpretOptions& options) {
  if (params.size() != f.params.size())
    return Status::error("function " + f.name + " takes " + std::to_string(f.params.size()) + " tensors, not " +
                         std::to_string(params.size()));
  auto typeOf = [](DType type, const std::vector<int64_t>& dims) {
    return std::string(dtypeName(type)) + "[" + Shape::of(dims).str() + "]";
  };
  TapeCompiler tape(options.float64);
  for (size_t i = 0; i < params.size(); ++i) {
    const Buffer& b = *f.params[i];
    if (!params[i].isValid() || params[i].dtype() != b.element.dtype || params[i].dims() != extents(b) ||
        b.element.lanes != 1)
      return Status::error("tensor " + std::to_string(i) + " is " + typeOf(params[i].dtype(), params[i].dims()) +
                           ", but buffer " + b.name + " is " + typeOf(b.element.dtype, extents(b)));
    DTypeClass kind = dtypeClass(b.element.dtype);
    if (kind == DTypeClass::String || kind == DTypeClass::Complex)
      return Status::error("buffer " + b.name + ": loops don't handle " + std::string(dtypeName(b.element.dtype)));
    tape.addParam(b, params[i]);
  }
  LOCUTION_RETURN_IF_ERROR(tape.compile(f.body).withContext("function " + f.name));
  return tape.run(options.maxSteps).withContext("function " + f.name);
}

}  // namespace locution::loop

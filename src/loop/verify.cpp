// Checks that a Function or a Computation is well formed: types, lanes, masks, index counts, what is defined where, and the rules of
// loop kinds.
#include <algorithm>
#include <unordered_set>

#include "loop/build.h"
#include "loop/computation_text.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/strings.h"

namespace locution::loop {
namespace {

class Verifier {
 public:
  explicit Verifier(std::string title) : title_(std::move(title)) {}

  Status run(const Function& f) {
    if (f.outputCount > f.params.size()) return fail("more outputs than parameters");
    if (!f.body) return fail("no body");
    const size_t inputs = f.params.size() - f.outputCount;
    for (size_t i = 0; i < f.params.size(); ++i) {
      LOCUTION_RETURN_IF_ERROR(param(*f.params[i]));
      if (i < inputs) readOnly_.insert(f.params[i].get());
    }
    auto* outer = as<For>(f.body);
    int64_t extent = 1;
    if (outer && outer->loop == LoopKind::Parallel && !isConstInt(outer->extent, &extent)) extent = f.parallelExtent;
    if (f.parallelExtent != extent && outer && outer->loop == LoopKind::Parallel)
      return fail("parallelExtent is " + std::to_string(f.parallelExtent) + " but the outer loop runs " +
                  std::to_string(extent));
    if (f.parallelExtent != 1 && !(outer && outer->loop == LoopKind::Parallel))
      return fail("parallelExtent without a parallel loop");
    return stmt(f.body, true, false);
  }

  Status run(const Computation& c) {
    std::unordered_set<const Buffer*> outputs;
    for (const BufferRef& b : c.inputs) LOCUTION_RETURN_IF_ERROR(param(*b));
    for (const BufferRef& b : c.constants)
      if (std::find(c.inputs.begin(), c.inputs.end(), b) == c.inputs.end())
        return fail("constant " + b->name + " is no input");
    for (const BufferRef& b : c.outputs) {
      if (b->scope != Scope::Global) return fail("output " + b->name + " must be global");
      if (buffers_.count(b.get()) || !outputs.insert(b.get()).second)
        return fail("parameter " + b->name + " occurs twice");
    }
    for (const Stage& s : c.stages) {
      LOCUTION_RETURN_IF_ERROR(stage(s));
      outputs.erase(s.out.get());
    }
    return outputs.empty() ? Status::ok() : fail("no stage writes output " + (*outputs.begin())->name);
  }

 private:
  Status param(const Buffer& b) {
    if (b.scope != Scope::Global || b.element.lanes != 1)
      return fail("parameter " + b.name + " must be global, of scalars");
    if (!buffers_.insert(&b).second) return fail("parameter " + b.name + " occurs twice");
    return dims(b);
  }

  Status stage(const Stage& s) {
    if (!s.out || !s.body) return fail("a stage without buffer or value");
    const Buffer& out = *s.out;
    const std::string where = "stage " + out.name;
    if (out.element.lanes != 1) return fail(where + " is of vectors");
    if (s.axes.size() != out.dims.size()) return fail(where + " has another number of axes than of dims");
    int64_t points = 1;
    auto define = [&](const Axis& a) {
      if (!a.var || a.var->type != Type{DType::I64, 1}) return fail(where + " has an axis that is not int64");
      if (a.extent < 0 || __builtin_mul_overflow(points, std::max<int64_t>(a.extent, 1), &points))
        return fail(where + " has impossible extents");
      return vars_.insert(a.var.get()).second ? Status::ok() : fail(where + " has axis " + a.var->name + " twice");
    };
    for (size_t i = 0; i < s.axes.size(); ++i) {
      int64_t dim = 0;
      if (!isConstInt(out.dims[i], &dim) || dim != s.axes[i].extent)
        return fail("axis " + s.axes[i].var->name + " of " + where + " differs from the dim");
      LOCUTION_RETURN_IF_ERROR(define(s.axes[i]));
    }
    for (const Axis& a : s.reduce) LOCUTION_RETURN_IF_ERROR(define(a));
    LOCUTION_RETURN_IF_ERROR(expr(s.body));
    const Type value = s.body->type;
    if (value.lanes != 1) return fail(where + " computes vectors");
    if (s.combiner == Combiner::None && (s.scan || !s.reduce.empty())) return fail(where + " combines nothing");
    if (s.scan && (s.axes.empty() || !s.reduce.empty()))
      return fail(where + " has no axis to scan, or reduces as well");
    if ((s.combiner == Combiner::And || s.combiner == Combiner::Or) && isFloat(value.dtype))
      return fail(where + " combines the bits of floats");
    for (const Axis& a : s.reduce) vars_.erase(a.var.get());
    Type result = value;
    if (s.epilogue) {
      if (!s.acc || s.acc->type != value) return fail(where + " has an accumulator of another type");
      seen_.clear();
      LOCUTION_RETURN_IF_ERROR(binding(s.acc.get(), [&] { return expr(s.epilogue); }));
      result = s.epilogue->type;
    }
    vars_.clear();
    seen_.clear();
    if (result != out.element) return fail(where + " is of another type than its value");
    return buffers_.insert(&out).second ? dims(out) : fail(where + " is defined twice");
  }

  Status fail(const std::string& what) { return Status::error(title_ + ": " + what); }
  Status fail(const std::string& what, const Expr& e) { return fail(what + " in " + print(e)); }

  Status dims(const Buffer& b) {
    for (const Expr& d : b.dims) {
      if (!d || d->type != Type{DType::I64, 1}) return fail("a dim of " + b.name + " is not a scalar int64");
      LOCUTION_RETURN_IF_ERROR(expr(d));
    }
    return Status::ok();
  }

  Status access(const BufferRef& buffer, const std::vector<Expr>& indices, const Expr& mask, Type type) {
    if (!buffer || !buffers_.count(buffer.get()))
      return fail("buffer " + (buffer ? buffer->name : "null") + " is neither parameter nor allocated here");
    if (indices.size() != buffer->dims.size())
      return fail("buffer " + buffer->name + " has " + std::to_string(buffer->dims.size()) + " dims, not " +
                  std::to_string(indices.size()));
    int lanes = buffer->element.lanes;
    for (const Expr& i : indices) {
      if (!i) return fail("missing index into " + buffer->name);
      if (i->type.dtype != DType::I64) return fail("index not int64", i);
      if (i->type.lanes == 1) continue;
      if (lanes != 1 && lanes != i->type.lanes) return fail("lanes of the indices into " + buffer->name + " differ");
      if (buffer->element.lanes != 1) return fail("vector index into vector elements of " + buffer->name);
      lanes = i->type.lanes;
    }
    if (type.dtype != buffer->element.dtype || type.lanes != lanes)
      return fail("access to " + buffer->name + " of " + std::to_string(lanes) + " lanes has another type");
    if (mask && (lanes == 1 || mask->type != Type{DType::Bool, lanes}))
      return fail("mask of another type on " + buffer->name);
    for (const Expr& i : indices) LOCUTION_RETURN_IF_ERROR(expr(i));
    return mask ? expr(mask) : Status::ok();
  }

  Status expr(const Expr& e) {
    if (!e) return fail("missing expression");
    if (!seen_.insert(e.get()).second) return Status::ok();
    switch (e->kind) {
      case ExprKind::IntImm:
        if (isFloat(e->type.dtype) || e->type.lanes != 1 ||
            wrapInt(e->type.dtype, as<IntImm>(e)->value) != as<IntImm>(e)->value)
          return fail("bad integer", e);
        return Status::ok();
      case ExprKind::FloatImm:
        return isFloat(e->type.dtype) && e->type.lanes == 1 ? Status::ok() : fail("bad float", e);
      case ExprKind::Var:
        return vars_.count(as<Var>(e)) ? Status::ok() : fail("variable " + as<Var>(e)->name + " is not defined here");
      case ExprKind::Cast: {
        auto* n = as<Cast>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        return n->value->type.lanes == e->type.lanes ? Status::ok() : fail("cast changes lanes", e);
      }
      case ExprKind::Binary: {
        auto* n = as<Binary>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->a));
        LOCUTION_RETURN_IF_ERROR(expr(n->b));
        if (n->a->type != n->b->type) return fail("operands differ in type", e);
        DType result = isComparison(n->op) ? DType::Bool : n->a->type.dtype;
        if (e->type != Type{result, n->a->type.lanes}) return fail("operator of another type", e);
        bool bits = n->op == BinaryOp::And || n->op == BinaryOp::Or || n->op == BinaryOp::Xor ||
                    n->op == BinaryOp::Shl || n->op == BinaryOp::Shr;
        return bits && isFloat(n->a->type.dtype) ? fail("bitwise operator on floats", e) : Status::ok();
      }
      case ExprKind::Select: {
        auto* n = as<Select>(e);
        for (const Expr& c : {n->condition, n->yes, n->no}) LOCUTION_RETURN_IF_ERROR(expr(c));
        if (n->yes->type != n->no->type || e->type != n->yes->type) return fail("sides differ in type", e);
        bool lanesFit = n->condition->type.lanes == 1 || n->condition->type.lanes == e->type.lanes;
        return n->condition->type.dtype == DType::Bool && lanesFit ? Status::ok() : fail("bad condition", e);
      }
      case ExprKind::Load:
        return access(as<Load>(e)->buffer, as<Load>(e)->indices, as<Load>(e)->mask, e->type);
      case ExprKind::Ramp: {
        auto* n = as<Ramp>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->base));
        LOCUTION_RETURN_IF_ERROR(expr(n->stride));
        bool ok = n->base->type == n->stride->type && n->base->type.lanes == 1 && isInteger(e->type.dtype) &&
                  e->type.dtype == n->base->type.dtype && e->type.lanes > 1;
        return ok ? Status::ok() : fail("bad ramp", e);
      }
      case ExprKind::Broadcast: {
        auto* n = as<Broadcast>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        return n->value->type == Type{e->type.dtype, 1} && e->type.lanes > 1 ? Status::ok() : fail("bad broadcast", e);
      }
      case ExprKind::Call:
        return callExpr(*as<Call>(e), e);
      case ExprKind::VectorReduce: {
        auto* n = as<VectorReduce>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        int lanes = n->value->type.lanes;
        bool op = n->op == BinaryOp::Add || n->op == BinaryOp::Mul || n->op == BinaryOp::Min ||
                  n->op == BinaryOp::Max || n->op == BinaryOp::And || n->op == BinaryOp::Or;
        bool powerOfTwo = (lanes & (lanes - 1)) == 0;
        bool ok = op && lanes > 1 && (powerOfTwo || isIdempotent(n->op)) && e->type == n->value->type.withLanes(1);
        return ok ? Status::ok() : fail("bad vector reduction", e);
      }
      case ExprKind::LetExpr: {
        auto* n = as<LetExpr>(e);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        if (n->var->type != n->value->type || n->body->type != e->type) return fail("let of another type", e);
        return binding(n->var.get(), [&] { return expr(n->body); });
      }
    }
    return fail("unknown expression");
  }

  Status callExpr(const Call& n, const Expr& e) {
    const IntrinsicFacts* facts = findIntrinsic(n.name);
    if (!facts || facts->arity != static_cast<int>(n.args.size()))
      return fail("no intrinsic " + n.name + " of that arity");
    for (const Expr& a : n.args) {
      LOCUTION_RETURN_IF_ERROR(expr(a));
      if (a->type != n.args[0]->type) return fail("arguments differ in type", e);
    }
    Type in = n.args[0]->type, wanted = in;
    switch (facts->id) {
      case Intrinsic::I_isnan:
      case Intrinsic::I_isinf:
        wanted.dtype = DType::Bool;
        break;
      case Intrinsic::I_bitcast:
        wanted.dtype = e->type.dtype;
        if (dtypeBits(in.dtype) != dtypeBits(e->type.dtype)) return fail("bitcast between widths", e);
        break;
      case Intrinsic::I_join:
        if (!isInteger(in.dtype) || (dtypeBits(in.dtype) != 8 && dtypeBits(in.dtype) != 16))
          return fail("join of integers that are not 8 or 16 bits wide", e);
        wanted.dtype = dtypeBits(in.dtype) == 8 ? DType::I16 : DType::I32;
        break;
      case Intrinsic::I_madd16:
      case Intrinsic::I_dot4:
        if (in.dtype != DType::I32) return fail(n.name + " of another type than int32", e);
        break;
      default:
        break;
    }
    bool integers = facts->id == Intrinsic::I_join || facts->id == Intrinsic::I_madd16 ||
                    facts->id == Intrinsic::I_dot4 || facts->id == Intrinsic::I_not ||
                    facts->id == Intrinsic::I_popcount;
    bool any = facts->id == Intrinsic::I_prefetch || facts->id == Intrinsic::I_abs || facts->id == Intrinsic::I_bitcast;
    if (!any && integers == isFloat(in.dtype)) return fail("argument of the wrong kind", e);
    return e->type == wanted ? Status::ok() : fail("call of another type", e);
  }

  template <typename F>
  Status binding(const Var* var, F&& body) {
    if (!vars_.insert(var).second) return fail("variable " + var->name + " is bound twice, one within the other");
    // What was checked under other bindings is checked again.
    auto outer = std::move(seen_);
    seen_.clear();
    Status s = body();
    vars_.erase(var);
    seen_ = std::move(outer);
    return s;
  }

  Status scalarIndex(const Expr& e, const char* what) {
    LOCUTION_RETURN_IF_ERROR(expr(e));
    return e->type == Type{DType::I64, 1} ? Status::ok() : fail(std::string(what) + " is not a scalar int64");
  }

  Status stmt(const Stmt& s, bool outermost, bool inVector) {
    if (!s) return fail("missing statement");
    switch (s->kind) {
      case StmtKind::Store: {
        auto* n = as<Store>(s);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        LOCUTION_RETURN_IF_ERROR(access(n->buffer, n->indices, n->mask, n->value->type));
        return readOnly_.count(n->buffer.get()) ? fail("store to input " + n->buffer->name) : Status::ok();
      }
      case StmtKind::For: {
        auto* n = as<For>(s);
        LOCUTION_RETURN_IF_ERROR(scalarIndex(n->min, "a loop's start"));
        LOCUTION_RETURN_IF_ERROR(scalarIndex(n->extent, "a loop's extent"));
        if (n->var->type != Type{DType::I64, 1}) return fail("loop variable " + n->var->name + " is not int64");
        int64_t extent = 0;
        bool constant = isConstInt(n->extent, &extent);
        if (n->loop == LoopKind::Parallel && !outermost)
          return fail("parallel loop " + n->var->name + " is not the outermost");
        if (n->loop == LoopKind::Vector && inVector) return fail("vector loop " + n->var->name + " within another");
        if ((n->loop == LoopKind::Vector || n->loop == LoopKind::Unrolled) && (!constant || extent < 0))
          return fail("loop " + n->var->name + " needs a constant extent");
        return binding(n->var.get(), [&] { return stmt(n->body, false, inVector || n->loop == LoopKind::Vector); });
      }
      case StmtKind::Block:
        for (const Stmt& x : as<Block>(s)->stmts) LOCUTION_RETURN_IF_ERROR(stmt(x, false, inVector));
        return Status::ok();
      case StmtKind::IfThen: {
        auto* n = as<IfThen>(s);
        LOCUTION_RETURN_IF_ERROR(expr(n->condition));
        if (n->condition->type != Type{DType::Bool, 1}) return fail("condition is not a scalar bool", n->condition);
        LOCUTION_RETURN_IF_ERROR(stmt(n->then, false, inVector));
        return n->otherwise ? stmt(n->otherwise, false, inVector) : Status::ok();
      }
      case StmtKind::Allocate: {
        auto* n = as<Allocate>(s);
        if (n->buffer->scope == Scope::Global) return fail("allocated buffer " + n->buffer->name + " is global");
        LOCUTION_RETURN_IF_ERROR(dims(*n->buffer));
        for (const Expr& d : n->buffer->dims)
          if (!isConstInt(d)) return fail("allocated buffer " + n->buffer->name + " has a dim that is no constant");
        if (!buffers_.insert(n->buffer.get()).second)
          return fail("buffer " + n->buffer->name + " is allocated within itself");
        auto outer = std::move(seen_);
        seen_.clear();
        Status r = stmt(n->body, false, inVector);
        buffers_.erase(n->buffer.get());
        seen_ = std::move(outer);
        return r;
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        LOCUTION_RETURN_IF_ERROR(expr(n->value));
        if (n->var->type != n->value->type) return fail("let " + n->var->name + " of another type");
        return binding(n->var.get(), [&] { return stmt(n->body, false, inVector); });
      }
    }
    return fail("unknown statement");
  }

  std::string title_;
  std::unordered_set<const Buffer*> buffers_, readOnly_;
  std::unordered_set<const Var*> vars_;
  std::unordered_set<const ExprNode*> seen_;
};

}  // namespace

Status verify(const Function& f) { return Verifier("function " + f.name).run(f); }

Status verify(const Computation& c) {
  Verifier verifier("computation " + c.name);
  if (!c.raw) return verifier.run(c);
  if (!c.stages.empty()) return Status::error("computation " + c.name + ": both stages and raw loops");
  return verifier.run(naiveLoops(c));
}

}  // namespace locution::loop

// Vector loops become vector expressions. Before -> after, L = 16:
//     vector for v in 0..16 { if j*16 + v < n { C[j*16 + v] = A[j*16 + v] * s[j] } }
//     C[ramp(j*16, 1, 16); m] = A[ramp(j*16, 1, 16); m] * broadcast(s[j], 16)     with m = ramp(j*16, 1, 16) < broadcast(n, 16)
// What varies with the loop variable is found first (a fixed point over buffers allocated inside, which get vector elements or,
// where a lane indexes its own copy, an inner dim); conditions that vary become masks of stores and of loads that bounds don't
// prove safe. Invariant: a loop that has no vector form (bounds or a scalar destination that vary, vectors inside) stays a
// serial loop, with the same meaning.
#include <algorithm>

#include "loop/build.h"
#include "loop/passes.h"
#include "loop/variance.h"
#include "loop/vector_buffers.h"
#include "support/check.h"

namespace locution::loop {
namespace {

/// Rewrites the body of one vector loop.
class Widener {
 public:
  Widener(Variance& variance, const For& loop, int lanes, const Ranges& ranges)
      : variance_(variance), lanes_(lanes), ranges_(ranges) {
    values_[loop.var.get()] = ramp(loop.min, index(1), lanes);
  }
  bool failed() const { return failed_; }

  Stmt stmt(const Stmt& s, const Expr& mask) {
    if (!s) return nullptr;
    switch (s->kind) {
      case StmtKind::Store:
        return widenStore(*as<Store>(s), mask);
      case StmtKind::For: {
        auto* n = as<For>(s);
        Expr min = expr(n->min, mask), extent = expr(n->extent, mask);
        Range low, size;
        if (bounds(n->min, ranges_, &low) && bounds(n->extent, ranges_, &size) && size.max > 0)
          ranges_[n->var.get()] = {low.min, low.max + size.max - 1};
        memo_.clear();
        Stmt body = stmt(n->body, mask);
        ranges_.erase(n->var.get());
        memo_.clear();
        return forLoop(n->var, min, extent, n->loop, body);
      }
      case StmtKind::Block: {
        std::vector<Stmt> out;
        for (const Stmt& x : as<Block>(s)->stmts) out.push_back(stmt(x, mask));
        return block(std::move(out));
      }
      case StmtKind::IfThen: {
        auto* n = as<IfThen>(s);
        Expr condition = expr(n->condition, mask);
        if (!variance_.varies(n->condition)) return ifThen(condition, stmt(n->then, mask), stmt(n->otherwise, mask));
        // The branches may overwrite what the condition reads: its value is kept.
        VarRef kept = makeVar("mask", condition->type);
        bool keep = readsMemory(condition) || n->otherwise;
        Expr c = keep ? Expr(kept) : condition;
        Stmt out = block({stmt(n->then, both(mask, c)), stmt(n->otherwise, both(mask, logicalNot(c)))});
        return keep ? letStmt(kept, condition, out) : out;
      }
      case StmtKind::Allocate: {
        auto* n = as<Allocate>(s);
        Privacy p = variance_.privacy(n->buffer.get());
        if (p == Privacy::Uniform) return allocate(n->buffer, stmt(n->body, mask));
        BufferRef& known = buffers_[n->buffer.get()];
        if (known) return allocate(known, stmt(n->body, mask));
        auto wide = std::make_shared<Buffer>(*n->buffer);
        if (p == Privacy::VectorElement)
          wide->element.lanes = lanes_;
        else
          wide->dims.push_back(index(lanes_));
        known = wide;
        return allocate(wide, stmt(n->body, mask));
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        Expr value = expr(n->value, mask);
        if (!variance_.varies(n->value)) return letStmt(n->var, value, stmt(n->body, mask));
        VarRef wide = makeVar(n->var->name, value->type);
        bind(n->var.get(), wide);
        return letStmt(wide, value, stmt(n->body, mask));
      }
    }
    return s;
  }

 private:
  static bool readsMemory(const Expr& e) {
    bool found = false;
    visit(e, [&](const Expr& x) { return !(found = found || x->kind == ExprKind::Load); });
    return found;
  }
  static Expr both(const Expr& mask, const Expr& c) { return mask ? logicalAnd(mask, c) : c; }

  bool inBounds(const Load& l) {
    for (size_t i = 0; i < l.indices.size(); ++i) {
      Range r;
      int64_t extent = 0;
      if (!isConstInt(l.buffer->dims[i], &extent) || !bounds(l.indices[i], ranges_, &r) || r.min < 0 || r.max >= extent)
        return false;
    }
    return true;
  }
  /// Whether some load in `e` may be out of range where its guard is false.
  bool needsGuard(const Expr& e) {
    bool found = false;
    visit(e, [&](const Expr& x) {
      if (auto* l = as<Load>(x); l && !inBounds(*l)) found = true;
      return !found;
    });
    return found;
  }

  Expr expr(const Expr& e, const Expr& mask) {
    if (e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm) return e;
    if (auto* v = as<Var>(e)) {
      auto it = values_.find(v);
      return it == values_.end() ? e : it->second;
    }
    auto& memo = memo_[mask];
    if (auto it = memo.find(e); it != memo.end()) return it->second;
    Expr out = rewrite(e, mask);
    memo_[mask].emplace(e, out);
    return out;
  }

  Expr rewrite(const Expr& e, const Expr& mask) {
    if (!variance_.varies(e) && (!mask || !needsGuard(e))) return e;
    switch (e->kind) {
      case ExprKind::Select: {
        auto* n = as<Select>(e);
        Expr c = expr(n->condition, mask);
        if (!variance_.varies(n->condition)) return select(c, expr(n->yes, mask), expr(n->no, mask));
        Expr yes = expr(n->yes, needsGuard(n->yes) ? both(mask, c) : mask);
        Expr no = expr(n->no, needsGuard(n->no) ? both(mask, logicalNot(c)) : mask);
        return select(c, yes, no);
      }
      case ExprKind::Load:
        return widenLoad(*as<Load>(e), mask);
      case ExprKind::LetExpr: {
        auto* n = as<LetExpr>(e);
        Expr value = expr(n->value, mask);
        VarRef var = variance_.varies(n->value) ? makeVar(n->var->name, value->type) : n->var;
        bind(n->var.get(), var);
        return let(var, value, expr(n->body, mask));
      }
      default:
        return Children(*this, mask).rebuild(e);
    }
  }

  /// Rebuilds a node over its children widened under `mask`.
  class Children : public Mutator {
   public:
    Children(Widener& w, const Expr& mask) : w_(w), mask_(mask) {}
    using Mutator::mutate;
    Expr mutate(const Expr& e) override { return w_.expr(e, mask_); }
    Expr rebuild(const Expr& e) { return mutateChildren(e); }

   private:
    Widener& w_;
    const Expr& mask_;
  };

  /// Variables may be bound again (a shared axis, an inlined let): what was widened under the old binding is dropped.
  void bind(const Var* var, Expr value) {
    auto [it, fresh] = values_.insert_or_assign(var, std::move(value));
    if (!fresh) memo_.clear();
  }

  std::vector<Expr> widenAll(const std::vector<Expr>& list, const Expr& mask) {
    std::vector<Expr> out;
    for (const Expr& e : list) out.push_back(expr(e, mask));
    return out;
  }

  Expr widenLoad(const Load& l, const Expr& mask) {
    std::vector<Expr> indices = widenAll(l.indices, mask);
    Expr guard = mask && !inBounds(l) ? mask : nullptr;
    BufferRef buffer = l.buffer;
    if (auto it = buffers_.find(l.buffer.get()); it != buffers_.end()) {
      buffer = it->second;
      if (variance_.privacy(l.buffer.get()) == Privacy::InnerDim) indices.push_back(ramp(index(0), index(1), lanes_));
    }
    bool scalar = buffer->element.lanes == 1 &&
                  std::all_of(indices.begin(), indices.end(), [](auto& i) { return i->type.lanes == 1; });
    if (guard && scalar) guard = vectorReduce(BinaryOp::Or, guard);
    return load(buffer, std::move(indices), guard);
  }

  Stmt widenStore(const Store& s, const Expr& mask) {
    std::vector<Expr> indices = widenAll(s.indices, mask);
    Expr value = expr(s.value, mask);
    auto it = buffers_.find(s.buffer.get());
    if (it == buffers_.end())
      return store(s.buffer, std::move(indices), value, variance_.isPrivate(s.buffer.get()) ? nullptr : mask);
    if (variance_.privacy(s.buffer.get()) == Privacy::InnerDim) {
      indices.push_back(ramp(index(0), index(1), lanes_));
      return store(it->second, std::move(indices), value, mask);
    }
    value = broadcast(value, lanes_);
    if (!mask) return store(it->second, std::move(indices), value);
    // Registers have no masked store: lanes that are off keep their value.
    if (!inBounds(Load(s.buffer->element, s.buffer, s.indices, nullptr))) failed_ = true;
    return store(it->second, indices, select(mask, value, load(it->second, indices)));
  }

  Variance& variance_;
  int lanes_;
  Ranges ranges_;
  bool failed_ = false;
  std::unordered_map<const Var*, Expr> values_;
  std::unordered_map<const Buffer*, BufferRef> buffers_;
  std::unordered_map<Expr, std::unordered_map<Expr, Expr>> memo_;  // by mask
};

/// Every expression of a statement simplified under given ranges: strides become visible.
class SimplifyUnder : public Mutator {
 public:
  explicit SimplifyUnder(const Ranges& ranges) : ranges_(ranges) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return simplify(e, ranges_); }

 private:
  const Ranges& ranges_;
};

class LoopVectoriser : public Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    auto* n = as<For>(s);
    if (!n) return mutateChildren(s);
    Range low, size;
    bool known = bounds(n->min, ranges_, &low) && bounds(n->extent, ranges_, &size) && size.max > 0;
    Ranges outer = ranges_;
    if (known) ranges_[n->var.get()] = {low.min, low.max + size.max - 1};
    Stmt out = n->loop == LoopKind::Vector ? vectorLoop(*n) : mutateChildren(s);
    ranges_ = std::move(outer);
    return out;
  }

 private:
  Stmt vectorLoop(const For& loop) {
    int64_t lanes = 0;
    LOCUTION_CHECK(isConstInt(loop.extent, &lanes) && lanes > 0 && lanes <= 1024)
        << "a vector loop of extent " << print(loop.extent);
    if (lanes == 1) return substitute(loop.body, {{loop.var.get(), loop.min}});
    Stmt body = SimplifyUnder(ranges_).mutate(loop.body);
    For simplified(loop.var, loop.min, loop.extent, loop.loop, body);
    Variance variance;
    if (variance.analyse(simplified)) {
      Widener widener(variance, simplified, static_cast<int>(lanes), ranges_);
      Stmt out = widener.stmt(body, nullptr);
      if (!widener.failed()) return out;
    }
    // Vector loops inside may have a form of their own.
    Stmt inner = mutate(loop.body);
    return forLoop(loop.var, loop.min, loop.extent, LoopKind::Serial, inner ? inner : block({}));
  }

  Ranges ranges_;
};

}  // namespace

Stmt vectorise(const Stmt& s) { return promoteVectorBuffers(LoopVectoriser().mutate(s)); }

}  // namespace locution::loop

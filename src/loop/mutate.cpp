// Traversals: the rebuilding Mutator, visiting, substitution, structural equality and hash.
// Invariant: nodes are shared freely, so each traversal visits a shared node of an expression once.
#include <algorithm>
#include <unordered_set>

#include "loop/build.h"
#include "loop/passes.h"
#include "support/check.h"
#include "support/hash.h"

namespace locution::loop {
namespace {

template <typename F>
std::vector<Expr> mutateAll(const std::vector<Expr>& list, bool* changed, F&& f) {
  std::vector<Expr> out;
  out.reserve(list.size());
  for (const Expr& e : list) {
    out.push_back(f(e));
    *changed = *changed || out.back() != e;
  }
  return out;
}

}  // namespace

Expr Mutator::mutate(const Expr& e) { return mutateChildren(e); }
Stmt Mutator::mutate(const Stmt& s) { return mutateChildren(s); }

Expr Mutator::mutateChildren(const Expr& e) {
  switch (e->kind) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm:
    case ExprKind::Var:
      return e;
    case ExprKind::Cast: {
      auto* n = as<Cast>(e);
      Expr v = mutate(n->value);
      return v == n->value ? e : cast(n->type.dtype, v);
    }
    case ExprKind::Binary: {
      auto* n = as<Binary>(e);
      Expr a = mutate(n->a), b = mutate(n->b);
      return a == n->a && b == n->b ? e : binary(n->op, a, b);
    }
    case ExprKind::Select: {
      auto* n = as<Select>(e);
      Expr c = mutate(n->condition), y = mutate(n->yes), o = mutate(n->no);
      return c == n->condition && y == n->yes && o == n->no ? e : select(c, y, o);
    }
    case ExprKind::Load: {
      auto* n = as<Load>(e);
      bool changed = false;
      auto indices = mutateAll(n->indices, &changed, [&](const Expr& x) { return mutate(x); });
      Expr mask = n->mask ? mutate(n->mask) : nullptr;
      return !changed && mask == n->mask ? e : load(n->buffer, std::move(indices), mask);
    }
    case ExprKind::Ramp: {
      auto* n = as<Ramp>(e);
      Expr b = mutate(n->base), s = mutate(n->stride);
      return b == n->base && s == n->stride ? e : ramp(b, s, n->type.lanes);
    }
    case ExprKind::Broadcast: {
      auto* n = as<Broadcast>(e);
      Expr v = mutate(n->value);
      return v == n->value ? e : broadcast(v, n->type.lanes);
    }
    case ExprKind::Call: {
      auto* n = as<Call>(e);
      bool changed = false;
      auto args = mutateAll(n->args, &changed, [&](const Expr& x) { return mutate(x); });
      if (!changed) return e;
      return n->name == "bitcast" ? bitcast(n->type.dtype, args[0]) : call(n->name, std::move(args));
    }
    case ExprKind::VectorReduce: {
      auto* n = as<VectorReduce>(e);
      Expr v = mutate(n->value);
      return v == n->value ? e : vectorReduce(n->op, v);
    }
    case ExprKind::LetExpr: {
      auto* n = as<LetExpr>(e);
      Expr v = mutate(n->value), b = mutate(n->body);
      return v == n->value && b == n->body ? e : let(n->var, v, b);
    }
  }
  return e;
}

Stmt Mutator::mutateChildren(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::Store: {
      auto* n = as<Store>(s);
      bool changed = false;
      auto indices = mutateAll(n->indices, &changed, [&](const Expr& x) { return mutate(x); });
      Expr value = mutate(n->value), mask = n->mask ? mutate(n->mask) : nullptr;
      return !changed && value == n->value && mask == n->mask ? s : store(n->buffer, std::move(indices), value, mask);
    }
    case StmtKind::For: {
      auto* n = as<For>(s);
      Expr min = mutate(n->min), extent = mutate(n->extent);
      Stmt body = mutate(n->body);
      if (!body) return nullptr;
      return min == n->min && extent == n->extent && body == n->body ? s : forLoop(n->var, min, extent, n->loop, body);
    }
    case StmtKind::Block: {
      auto* n = as<Block>(s);
      bool changed = false;
      std::vector<Stmt> stmts;
      for (const Stmt& x : n->stmts) {
        stmts.push_back(mutate(x));
        changed = changed || stmts.back() != x;
      }
      return changed ? block(std::move(stmts)) : s;
    }
    case StmtKind::IfThen: {
      auto* n = as<IfThen>(s);
      Expr c = mutate(n->condition);
      Stmt t = mutate(n->then), o = n->otherwise ? mutate(n->otherwise) : nullptr;
      if (!t && !o) return nullptr;
      return c == n->condition && t == n->then && o == n->otherwise ? s : ifThen(c, t ? t : block({}), o);
    }
    case StmtKind::Allocate: {
      auto* n = as<Allocate>(s);
      Stmt body = mutate(n->body);
      if (!body) return nullptr;
      return body == n->body ? s : allocate(n->buffer, body);
    }
    case StmtKind::LetStmt: {
      auto* n = as<LetStmt>(s);
      Expr v = mutate(n->value);
      Stmt body = mutate(n->body);
      if (!body) return nullptr;
      return v == n->value && body == n->body ? s : letStmt(n->var, v, body);
    }
  }
  return s;
}

namespace {

template <typename F>
void forEachChild(const Expr& e, F&& f) {
  switch (e->kind) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm:
    case ExprKind::Var:
      return;
    case ExprKind::Cast:
      return f(as<Cast>(e)->value);
    case ExprKind::Binary:
      return f(as<Binary>(e)->a), f(as<Binary>(e)->b);
    case ExprKind::Select:
      return f(as<Select>(e)->condition), f(as<Select>(e)->yes), f(as<Select>(e)->no);
    case ExprKind::Load:
      for (const Expr& i : as<Load>(e)->indices) f(i);
      if (as<Load>(e)->mask) f(as<Load>(e)->mask);
      return;
    case ExprKind::Ramp:
      return f(as<Ramp>(e)->base), f(as<Ramp>(e)->stride);
    case ExprKind::Broadcast:
      return f(as<Broadcast>(e)->value);
    case ExprKind::Call:
      for (const Expr& a : as<Call>(e)->args) f(a);
      return;
    case ExprKind::VectorReduce:
      return f(as<VectorReduce>(e)->value);
    case ExprKind::LetExpr:
      return f(as<LetExpr>(e)->value), f(as<LetExpr>(e)->body);
  }
}

void visitOnce(const Expr& e, const std::function<bool(const Expr&)>& onExpr,
               std::unordered_set<const ExprNode*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (onExpr(e)) forEachChild(e, [&](const Expr& c) { visitOnce(c, onExpr, seen); });
}

}  // namespace

void visit(const Expr& e, const std::function<bool(const Expr&)>& onExpr) {
  std::unordered_set<const ExprNode*> seen;
  if (e) visitOnce(e, onExpr, seen);
}

void visit(const Stmt& s, const std::function<bool(const Stmt&)>& onStmt,
           const std::function<bool(const Expr&)>& onExpr) {
  if (!s || !onStmt(s)) return;
  // One set for the statement's expressions: its indices, value and mask often share nodes.
  std::unordered_set<const ExprNode*> seen;
  auto expr = [&](const Expr& e) {
    if (e) visitOnce(e, onExpr, seen);
  };
  auto sub = [&](const Stmt& inner) { visit(inner, onStmt, onExpr); };
  switch (s->kind) {
    case StmtKind::Store: {
      auto* n = as<Store>(s);
      for (const Expr& i : n->indices) expr(i);
      return expr(n->value), expr(n->mask);
    }
    case StmtKind::For:
      return expr(as<For>(s)->min), expr(as<For>(s)->extent), sub(as<For>(s)->body);
    case StmtKind::Block:
      for (const Stmt& inner : as<Block>(s)->stmts) sub(inner);
      return;
    case StmtKind::IfThen:
      return expr(as<IfThen>(s)->condition), sub(as<IfThen>(s)->then), sub(as<IfThen>(s)->otherwise);
    case StmtKind::Allocate:
      return sub(as<Allocate>(s)->body);
    case StmtKind::LetStmt:
      return expr(as<LetStmt>(s)->value), sub(as<LetStmt>(s)->body);
  }
}

namespace {

class Substituter : public Mutator {
 public:
  explicit Substituter(Substitution map) : map_(std::move(map)) {}
  using Mutator::mutate;

  Expr mutate(const Expr& e) override {
    if (auto* v = as<Var>(e)) {
      auto it = map_.find(v);
      return it == map_.end() ? e : it->second;
    }
    if (e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm) return e;
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    Expr out;
    if (auto* l = as<LetExpr>(e); l && map_.count(l->var.get())) {
      Expr v = mutate(l->value);
      Expr b = without(l->var.get()).mutate(l->body);
      out = v == l->value && b == l->body ? e : let(l->var, v, b);
    } else {
      out = mutateChildren(e);
    }
    memo_.emplace(e, out);
    return out;
  }
  Stmt mutate(const Stmt& s) override {
    // A binder of the same variable hides it.
    if (auto* f = as<For>(s); f && map_.count(f->var.get()))
      return forLoop(f->var, mutate(f->min), mutate(f->extent), f->loop, without(f->var.get()).mutate(f->body));
    if (auto* l = as<LetStmt>(s); l && map_.count(l->var.get()))
      return letStmt(l->var, mutate(l->value), without(l->var.get()).mutate(l->body));
    return mutateChildren(s);
  }

 private:
  Substituter without(const Var* var) const {
    Substitution map = map_;
    map.erase(var);
    return Substituter(std::move(map));
  }
  Substitution map_;
  // Keyed by owning pointers: a node made here and dropped must not lend its address to another.
  std::unordered_map<Expr, Expr> memo_;
};

class LoadReplacer : public Mutator {
 public:
  LoadReplacer(const Buffer* buffer, const std::function<Expr(const Load&)>& make) : buffer_(buffer), make_(make) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    Expr out = mutateChildren(e);
    if (auto* l = as<Load>(out); l && l->buffer.get() == buffer_) {
      // Equal loads give one shared node, so that chains of inlined stages stay linear in size.
      auto& made = made_[structuralHash(out)];
      auto it = std::find_if(made.begin(), made.end(), [&](const auto& p) { return sameExpr(p.first, out); });
      if (it == made.end()) it = made.insert(made.end(), {out, make_(*l)});
      out = it->second;
    }
    memo_.emplace(e, out);
    return out;
  }

 private:
  const Buffer* buffer_;
  const std::function<Expr(const Load&)>& make_;
  std::unordered_map<Expr, Expr> memo_;
  std::unordered_map<uint64_t, std::vector<std::pair<Expr, Expr>>> made_;
};

template <typename Pred>
bool anyNode(const Expr& e, Pred&& pred) {
  bool found = false;
  visit(e, [&](const Expr& x) {
    found = found || pred(x);
    return !found;
  });
  return found;
}

}  // namespace

Expr substitute(const Expr& e, const Substitution& map) { return map.empty() ? e : Substituter(map).mutate(e); }
Stmt substitute(const Stmt& s, const Substitution& map) { return map.empty() ? s : Substituter(map).mutate(s); }

Expr replaceLoads(const Expr& e, const Buffer* buffer, const std::function<Expr(const Load&)>& make) {
  return LoadReplacer(buffer, make).mutate(e);
}

bool usesVar(const Expr& e, const Var* var) {
  return anyNode(e, [&](const Expr& x) { return x.get() == var; });
}

bool readsBuffer(const Expr& e, const Buffer* buffer) {
  return anyNode(e, [&](const Expr& x) { return as<Load>(x) && as<Load>(x)->buffer.get() == buffer; });
}

}  // namespace locution::loop

// Variance spreads from the loop variable through values, indices and conditions; buffers that a lane writes its own value to
// vary, which may make more of the body vary, until nothing changes.
#include "loop/variance.h"

namespace locution::loop {

bool Variance::analyse(const For& loop) {
  vars_.insert(loop.var.get());
  do {
    changed_ = false;
    memo_.clear();
    stmt(loop.body, false);
  } while (changed_ && !failed_);
  for (const Buffer* b : uniformStores_)
    if (loads_.count(b)) failed_ = true;
  return !failed_;
}

bool Variance::varies(const Expr& e) {
  if (auto* v = as<Var>(e)) return vars_.count(v) != 0;
  if (e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm) return false;
  if (auto it = memo_.find(e); it != memo_.end()) return it->second;
  if (e->type.lanes > 1) failed_ = true;
  bool result = false;
  auto child = [&](const Expr& c) { result = varies(c) || result; };
  switch (e->kind) {
    case ExprKind::Cast:
      child(as<Cast>(e)->value);
      break;
    case ExprKind::Binary:
      child(as<Binary>(e)->a), child(as<Binary>(e)->b);
      break;
    case ExprKind::Select:
      child(as<Select>(e)->condition), child(as<Select>(e)->yes), child(as<Select>(e)->no);
      break;
    case ExprKind::Call:
      for (const Expr& a : as<Call>(e)->args) child(a);
      break;
    case ExprKind::LetExpr: {
      auto* l = as<LetExpr>(e);
      child(l->value);
      if (result) mark(l->var.get());
      child(l->body);
      break;
    }
    case ExprKind::Load: {
      auto* l = as<Load>(e);
      loads_.insert(l->buffer.get());
      for (const Expr& i : l->indices) child(i);
      auto it = privates_.find(l->buffer.get());
      if (it == privates_.end()) break;
      if (result) raise(it->second, Privacy::InnerDim);
      result = it->second != Privacy::Uniform;
      break;
    }
    default:
      failed_ = true;  // vectors inside
  }
  memo_[e] = result;
  return result;
}

void Variance::mark(const Var* v) {
  if (vars_.insert(v).second) changed_ = true;
}

void Variance::raise(Privacy& p, Privacy to) {
  if (p >= to) return;
  p = to;
  changed_ = true;
}

void Variance::stmt(const Stmt& s, bool guarded) {
  if (!s) return;
  switch (s->kind) {
    case StmtKind::Store: {
      auto* n = as<Store>(s);
      if (n->mask || n->buffer->element.lanes > 1) failed_ = true;
      bool indexVaries = false;
      for (const Expr& i : n->indices) indexVaries = varies(i) || indexVaries;
      bool valueVaries = varies(n->value);
      auto it = privates_.find(n->buffer.get());
      if (it != privates_.end()) {
        if (indexVaries)
          raise(it->second, Privacy::InnerDim);
        else if (valueVaries || guarded)
          raise(it->second, Privacy::VectorElement);
      } else if (!indexVaries) {
        if (valueVaries || guarded) failed_ = true;
        uniformStores_.insert(n->buffer.get());
      }
      break;
    }
    case StmtKind::For: {
      auto* n = as<For>(s);
      if (n->loop == LoopKind::Vector || n->loop == LoopKind::Parallel || varies(n->min) || varies(n->extent))
        failed_ = true;
      stmt(n->body, guarded);
      break;
    }
    case StmtKind::Block:
      for (const Stmt& x : as<Block>(s)->stmts) stmt(x, guarded);
      break;
    case StmtKind::IfThen: {
      auto* n = as<IfThen>(s);
      bool inner = varies(n->condition) || guarded;
      stmt(n->then, inner), stmt(n->otherwise, inner);
      break;
    }
    case StmtKind::Allocate: {
      auto* n = as<Allocate>(s);
      if (n->buffer->element.lanes > 1) failed_ = true;
      privates_.emplace(n->buffer.get(), Privacy::Uniform);
      stmt(n->body, guarded);
      break;
    }
    case StmtKind::LetStmt: {
      auto* n = as<LetStmt>(s);
      if (varies(n->value)) mark(n->var.get());
      stmt(n->body, guarded);
      break;
    }
  }
}

}  // namespace locution::loop

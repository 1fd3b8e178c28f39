#include "schedule/hoist.h"

#include <cmath>

#include "loop/build.h"
#include "loop/passes.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

bool readsMemory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& x) { return !(found = found || x->kind == ExprKind::Load); });
  return found;
}

/// Adding it changes nothing; accumulators start at +0, so that they are never -0.
bool isIdentity(BinaryOp op, const Expr& e) {
  const auto* f = as<FloatImm>(e);
  if (!f) return false;
  if (op == BinaryOp::Add) return f->value == 0;
  if (op == BinaryOp::Max) return std::isinf(f->value) && f->value < 0;
  return op == BinaryOp::Min && std::isinf(f->value) && f->value > 0;
}

/// What a statement is when it hangs on a condition; `condition` is null when it doesn't.
struct Guarded {
  Expr condition;
  Stmt then, otherwise;
};

Guarded guardedStore(const Store& s) {
  if (s.mask) return {};
  auto with = [&](const Expr& value) { return store(s.buffer, s.indices, value); };
  if (const auto* choice = as<Select>(s.value)) return {choice->condition, with(choice->yes), with(choice->no)};
  const auto* sum = as<Binary>(s.value);
  const auto* old = sum ? as<Load>(sum->a) : nullptr;
  const auto* choice = sum ? as<Select>(sum->b) : nullptr;
  if (!old || !choice || old->buffer != s.buffer || s.buffer->scope == Scope::Global) return {};
  auto combined = [&](const Expr& value) { return with(binary(sum->op, sum->a, value)); };
  return {choice->condition, combined(choice->yes), isIdentity(sum->op, choice->no) ? nullptr : combined(choice->no)};
}

Guarded guardOf(const Stmt& s) {
  Guarded g;
  if (const auto* st = as<Store>(s)) g = guardedStore(*st);
  if (const auto* branch = as<IfThen>(s)) g = {branch->condition, branch->then, branch->otherwise};
  if (g.condition && (g.condition->type.lanes > 1 || readsMemory(g.condition))) return {};
  return g;
}

class Hoist : public Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    Stmt out = mutateChildren(s);
    const auto* loop = as<For>(out);
    if (!loop || (loop->loop != LoopKind::Unrolled && loop->loop != LoopKind::Vector)) return out;
    Guarded g = guardOf(loop->body);
    if (!g.condition || usesVar(g.condition, loop->var.get())) return out;
    auto around = [&](const Stmt& body) {
      return body ? forLoop(loop->var, loop->min, loop->extent, loop->loop, body) : nullptr;
    };
    return ifThen(g.condition, around(g.then), around(g.otherwise));
  }
};

}  // namespace

Stmt hoistConditions(const Stmt& s) { return Hoist().mutate(s); }

}  // namespace locution::schedule

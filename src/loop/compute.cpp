// What a Computation means as loops (`naiveLoops`, the start of every schedule's proof), and how much it computes.
#include "loop/compute.h"

#include <algorithm>

#include "loop/build.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/check.h"

namespace locution::loop {
namespace {

Expr withAcc(const Stage& s, const Expr& acc) {
  return s.epilogue ? substitute(s.epilogue, {{s.acc.get(), acc}}) : acc;
}

// A loop of no iterations within one of many would cost those many.
bool isEmpty(const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.extent == 0; });
}

Stmt nest(const std::vector<Axis>& axes, Stmt body) {
  if (isEmpty(axes)) return block({});
  for (auto it = axes.rbegin(); it != axes.rend(); ++it)
    body = forLoop(it->var, index(0), index(it->extent), LoopKind::Serial, std::move(body));
  return body;
}

std::vector<Expr> axisVars(const Stage& s) {
  std::vector<Expr> out;
  for (const Axis& a : s.axes) out.push_back(a.var);
  return out;
}

Stmt stageLoops(const Stage& s) {
  LOCUTION_CHECK(s.axes.size() == s.out->dims.size()) << "stage " << s.out->name << " has an axis for each dim";
  if (isEmpty(s.axes)) return block({});
  if (s.combiner == Combiner::None) return nest(s.axes, store(s.out, axisVars(s), withAcc(s, s.body)));

  BufferRef acc = makeBuffer("acc", s.body->type, {1}, Scope::Register);
  Expr current = load(acc, {index(0)});
  Stmt init = store(acc, {index(0)}, identity(s.combiner, s.body->type.dtype));
  auto accumulate = [&](const Expr& value) {
    return store(acc, {index(0)}, binary(combinerOp(s.combiner), current, value));
  };
  if (!s.scan) {
    Stmt write = store(s.out, axisVars(s), withAcc(s, current));
    return nest(s.axes, allocate(acc, block({init, nest(s.reduce, accumulate(s.body)), write})));
  }

  LOCUTION_CHECK(!s.axes.empty() && s.reduce.empty()) << "a scan runs over its last axis";
  std::vector<Axis> outer(s.axes.begin(), s.axes.end() - 1);
  const Axis& last = s.axes.back();
  VarRef step = makeVar(last.var->name);
  Expr at = s.scanReverse ? index(last.extent - 1) - Expr(step) : Expr(step);
  Substitution map{{last.var.get(), at}};
  Stmt write = store(s.out, axisVars(s), withAcc(s, current));
  Stmt combine = accumulate(s.body);
  Stmt body = substitute(s.scanExclusive ? block({write, combine}) : block({combine, write}), map);
  return nest(outer, allocate(acc, block({init, forLoop(step, index(0), index(last.extent), LoopKind::Serial, body)})));
}

/// Moves accesses from one buffer to another of the same shape.
class Rename : public Mutator {
 public:
  Rename(const Buffer* from, BufferRef to) : from_(from), to_(std::move(to)) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    Expr out = mutateChildren(e);
    if (auto* l = as<Load>(out); l && l->buffer.get() == from_) out = load(to_, l->indices, l->mask);
    memo_.emplace(e, out);
    return out;
  }
  Stmt mutate(const Stmt& s) override {
    Stmt out = mutateChildren(s);
    auto* n = as<Store>(out);
    return n && n->buffer.get() == from_ ? store(to_, n->indices, n->value, n->mask) : out;
  }

 private:
  const Buffer* from_;
  BufferRef to_;
  std::unordered_map<Expr, Expr> memo_;
};

/// Operations of `e` on floats or on data integers (int64 is index arithmetic); a node that is shared counts once.
double opsOf(const Expr& e) {
  double count = 0;
  visit(e, [&](const Expr& x) {
    auto counted = [](const Expr& operand) {
      DType t = operand->type.dtype;
      return isFloat(t) || (isInteger(t) && dtypeBits(t) < 64);
    };
    if (auto* b = as<Binary>(x); b && counted(b->a)) count += b->a->type.lanes;
    if (auto* c = as<Call>(x); c && c->name != "bitcast" && c->name != "join" && counted(c->args[0]))
      count += c->type.lanes * (c->name == "fma" ? 2 : c->name == "madd16" ? 4 : c->name == "dot4" ? 8 : 1);
    if (auto* r = as<VectorReduce>(x); r && counted(r->value)) count += r->value->type.lanes - 1;
    return true;
  });
  return count;
}

double opsOf(const Stmt& s) {
  if (!s) return 0;
  switch (s->kind) {
    case StmtKind::Store: {
      auto* n = as<Store>(s);
      double count = opsOf(n->value);
      for (const Expr& i : n->indices) count += opsOf(i);
      return count;
    }
    case StmtKind::For: {
      int64_t extent = 1;
      isConstInt(as<For>(s)->extent, &extent);
      return static_cast<double>(extent) * opsOf(as<For>(s)->body);
    }
    case StmtKind::Block: {
      double count = 0;
      for (const Stmt& x : as<Block>(s)->stmts) count += opsOf(x);
      return count;
    }
    case StmtKind::IfThen: {
      auto* n = as<IfThen>(s);
      return opsOf(n->condition) + std::max(opsOf(n->then), opsOf(n->otherwise));
    }
    case StmtKind::Allocate:
      return opsOf(as<Allocate>(s)->body);
    case StmtKind::LetStmt:
      return opsOf(as<LetStmt>(s)->value) + opsOf(as<LetStmt>(s)->body);
  }
  return 0;
}

}  // namespace

Function naiveLoops(const Computation& c) {
  Function f;
  f.name = c.name;
  f.params = c.inputs;
  f.params.insert(f.params.end(), c.outputs.begin(), c.outputs.end());
  f.outputCount = c.outputs.size();
  if (c.raw) {
    f.body = c.raw;
    if (const auto* loop = as<For>(f.body); loop && loop->loop == LoopKind::Parallel)
      isConstInt(loop->extent, &f.parallelExtent);
    return f;
  }
  std::vector<Stmt> stages;
  std::vector<BufferRef> temporaries;
  for (const Stage& s : c.stages) {
    stages.push_back(stageLoops(s));
    if (std::find(f.params.begin(), f.params.end(), s.out) == f.params.end()) temporaries.push_back(s.out);
  }
  f.body = block(std::move(stages));
  for (auto it = temporaries.rbegin(); it != temporaries.rend(); ++it) {
    BufferRef buffer = *it;
    if (buffer->scope == Scope::Global) {
      auto local = std::make_shared<Buffer>(*buffer);
      local->scope = Scope::Stack;
      f.body = Rename(buffer.get(), local).mutate(f.body);
      buffer = local;
    }
    f.body = allocate(buffer, f.body);
  }
  return f;
}

double countFlops(const Computation& c) {
  if (c.raw) return opsOf(c.raw);
  double total = 0;
  for (const Stage& s : c.stages) {
    double points = 1, steps = 1;
    for (const Axis& a : s.axes) points *= static_cast<double>(a.extent);
    for (const Axis& a : s.reduce) steps *= static_cast<double>(a.extent);
    double combine = s.combiner == Combiner::None ? 0 : 1;
    total += points * (steps * (opsOf(s.body) + combine) + (s.epilogue ? opsOf(s.epilogue) : 0));
  }
  return total;
}

}  // namespace locution::loop

// Content hashes of functions and computations: variables and allocated buffers count by their depth of binding, parameters by
// position, names not at all. A shared node hashes as its tree would.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/hash.h"

namespace locution::loop {
namespace {

class Hasher {
 public:
  uint64_t expr(const Expr& e) {
    if (!e) return combine({0});
    if (auto* v = as<Var>(e)) return combine({tag(e), number(v), type(e->type)});
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    std::vector<uint64_t> parts{tag(e), type(e->type)};
    auto child = [&](const Expr& c) { parts.push_back(expr(c)); };
    switch (e->kind) {
      case ExprKind::Var:
        break;
      case ExprKind::IntImm:
        parts.push_back(static_cast<uint64_t>(as<IntImm>(e)->value));
        break;
      case ExprKind::FloatImm: {
        double v = as<FloatImm>(e)->value;
        parts.push_back(v != v ? 1 : static_cast<uint64_t>(wordOf(v).i));
        break;
      }
      case ExprKind::Cast:
        child(as<Cast>(e)->value);
        break;
      case ExprKind::Binary:
        parts.push_back(static_cast<uint64_t>(as<Binary>(e)->op));
        child(as<Binary>(e)->a), child(as<Binary>(e)->b);
        break;
      case ExprKind::Select:
        child(as<Select>(e)->condition), child(as<Select>(e)->yes), child(as<Select>(e)->no);
        break;
      case ExprKind::Load:
        parts.push_back(number(as<Load>(e)->buffer.get()));
        for (const Expr& i : as<Load>(e)->indices) child(i);
        child(as<Load>(e)->mask);
        break;
      case ExprKind::Ramp:
        child(as<Ramp>(e)->base), child(as<Ramp>(e)->stride);
        break;
      case ExprKind::Broadcast:
        child(as<Broadcast>(e)->value);
        break;
      case ExprKind::Call:
        parts.push_back(hashText(as<Call>(e)->name));
        for (const Expr& a : as<Call>(e)->args) child(a);
        break;
      case ExprKind::VectorReduce:
        parts.push_back(static_cast<uint64_t>(as<VectorReduce>(e)->op));
        child(as<VectorReduce>(e)->value);
        break;
      case ExprKind::LetExpr: {
        auto* l = as<LetExpr>(e);
        child(l->value);
        bind(l->var.get());
        child(l->body);
        unbind(l->var.get());
        break;
      }
    }
    uint64_t h = combine(parts);
    memo_.emplace(e.get(), h);
    return h;
  }

  uint64_t stmt(const Stmt& s) {
    if (!s) return combine({1});
    std::vector<uint64_t> parts{0x100 + static_cast<uint64_t>(s->kind)};
    switch (s->kind) {
      case StmtKind::Store: {
        auto* n = as<Store>(s);
        parts.push_back(number(n->buffer.get()));
        for (const Expr& i : n->indices) parts.push_back(expr(i));
        parts.push_back(expr(n->value));
        parts.push_back(expr(n->mask));
        break;
      }
      case StmtKind::For: {
        auto* n = as<For>(s);
        parts.push_back(static_cast<uint64_t>(n->loop));
        parts.push_back(expr(n->min));
        parts.push_back(expr(n->extent));
        bind(n->var.get());
        parts.push_back(stmt(n->body));
        unbind(n->var.get());
        break;
      }
      case StmtKind::Block: {
        flatten(s, parts);
        // A block of one statement is that statement.
        if (parts.size() == 2) return parts[1];
        break;
      }
      case StmtKind::IfThen: {
        auto* n = as<IfThen>(s);
        parts.push_back(expr(n->condition));
        parts.push_back(stmt(n->then));
        parts.push_back(stmt(n->otherwise));
        break;
      }
      case StmtKind::Allocate: {
        auto* n = as<Allocate>(s);
        parts.push_back(buffer(*n->buffer));
        bind(n->buffer.get());
        parts.push_back(stmt(n->body));
        unbind(n->buffer.get());
        break;
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        parts.push_back(expr(n->value));
        bind(n->var.get());
        parts.push_back(stmt(n->body));
        unbind(n->var.get());
        break;
      }
    }
    return combine(parts);
  }

  /// Element type, scope and dims.
  uint64_t buffer(const Buffer& b) {
    std::vector<uint64_t> parts{type(b.element), static_cast<uint64_t>(b.scope)};
    for (const Expr& d : b.dims) parts.push_back(expr(d));
    return combine(parts);
  }

  /// The depth of binding; what is free is numbered as it appears.
  uint64_t number(const void* what) {
    auto it = numbers_.find(what);
    if (it != numbers_.end() && !it->second.empty()) return it->second.back();
    return free_.emplace(what, (uint64_t{1} << 40) + free_.size()).first->second;
  }
  void bind(const void* what) {
    numbers_[what].push_back(depth_++);
    memo_.clear();
  }
  void unbind(const void* what) {
    numbers_[what].pop_back();
    --depth_;
    memo_.clear();
  }

  static uint64_t combine(const std::vector<uint64_t>& parts) {
    return hashBytes(parts.data(), parts.size() * sizeof(uint64_t));
  }

 private:
  static uint64_t tag(const Expr& e) { return 0x200 + static_cast<uint64_t>(e->kind); }
  static uint64_t type(Type t) { return (static_cast<uint64_t>(t.dtype) << 32) | static_cast<uint32_t>(t.lanes); }
  void flatten(const Stmt& s, std::vector<uint64_t>& parts) {
    for (const Stmt& x : as<Block>(s)->stmts) {
      if (as<Block>(x))
        flatten(x, parts);
      else
        parts.push_back(stmt(x));
    }
  }

  uint64_t depth_ = 0;
  std::unordered_map<const void*, std::vector<uint64_t>> numbers_;
  std::unordered_map<const void*, uint64_t> free_;
  std::unordered_map<const ExprNode*, uint64_t> memo_;
};

}  // namespace

uint64_t hash(const Function& f) {
  Hasher h;
  std::vector<uint64_t> parts{f.params.size(), f.outputCount};
  for (const BufferRef& b : f.params) {
    parts.push_back(h.buffer(*b));
    h.bind(b.get());
  }
  parts.push_back(h.stmt(f.body));
  return Hasher::combine(parts);
}

uint64_t hash(const Computation& c) {
  Hasher h;
  std::vector<uint64_t> parts{c.inputs.size(), c.outputs.size(), c.stages.size()};
  auto define = [&](const BufferRef& b) {
    parts.push_back(h.buffer(*b));
    h.bind(b.get());
  };
  for (const BufferRef& b : c.inputs) {
    define(b);
    parts.push_back(std::find(c.constants.begin(), c.constants.end(), b) != c.constants.end());
  }
  for (const BufferRef& b : c.outputs) define(b);
  for (const Stage& s : c.stages) {
    if (std::find(c.outputs.begin(), c.outputs.end(), s.out) == c.outputs.end()) define(s.out);
    auto axes = [&](const std::vector<Axis>& list) {
      parts.push_back(list.size());
      for (const Axis& a : list) {
        parts.push_back(static_cast<uint64_t>(a.extent));
        h.bind(a.var.get());
      }
    };
    parts.push_back(h.number(s.out.get()));
    axes(s.axes);
    axes(s.reduce);
    parts.push_back(static_cast<uint64_t>(s.combiner) | (uint64_t{s.scan} << 8) | (uint64_t{s.scanExclusive} << 9) |
                    (uint64_t{s.scanReverse} << 10));
    parts.push_back(h.expr(s.body));
    if (s.acc) h.bind(s.acc.get());
    parts.push_back(h.expr(s.epilogue));
    if (s.acc) h.unbind(s.acc.get());
    for (const auto* list : {&s.reduce, &s.axes})
      for (auto it = list->rbegin(); it != list->rend(); ++it) h.unbind(it->var.get());
  }
  parts.push_back(h.stmt(c.raw));
  return Hasher::combine(parts);
}

}  // namespace locution::loop

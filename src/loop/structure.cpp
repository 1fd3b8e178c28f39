// Structural equality and hashing of expressions: variables and buffers count by identity. Both walk DAGs once per node.
#include <unordered_map>
#include <vector>

#include "loop/passes.h"
#include "loop/scalar.h"

namespace locution::loop {
namespace {

struct PairHash {
  size_t operator()(const std::pair<const ExprNode*, const ExprNode*>& p) const {
    return std::hash<const void*>()(p.first) * 31 + std::hash<const void*>()(p.second);
  }
};

/// Compares, remembering pairs already found equal.
class Comparer {
 public:
  bool same(const Expr& a, const Expr& b) {
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->type != b->type) return false;
    switch (a->kind) {
      case ExprKind::Var:
        return false;
      case ExprKind::IntImm:
        return as<IntImm>(a)->value == as<IntImm>(b)->value;
      case ExprKind::FloatImm: {
        Word x = wordOf(as<FloatImm>(a)->value), y = wordOf(as<FloatImm>(b)->value);
        return x.i == y.i;
      }
      default:
        break;
    }
    if (equal_.count({a.get(), b.get()})) return true;
    bool result = sameChildren(a, b);
    if (result) equal_[{a.get(), b.get()}] = true;
    return result;
  }

 private:
  bool sameList(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i])) return false;
    return true;
  }
  bool sameChildren(const Expr& a, const Expr& b) {
    switch (a->kind) {
      case ExprKind::Cast:
        return same(as<Cast>(a)->value, as<Cast>(b)->value);
      case ExprKind::Binary: {
        auto *x = as<Binary>(a), *y = as<Binary>(b);
        return x->op == y->op && same(x->a, y->a) && same(x->b, y->b);
      }
      case ExprKind::Select: {
        auto *x = as<Select>(a), *y = as<Select>(b);
        return same(x->condition, y->condition) && same(x->yes, y->yes) && same(x->no, y->no);
      }
      case ExprKind::Load: {
        auto *x = as<Load>(a), *y = as<Load>(b);
        return x->buffer == y->buffer && sameList(x->indices, y->indices) && same(x->mask, y->mask);
      }
      case ExprKind::Ramp:
        return same(as<Ramp>(a)->base, as<Ramp>(b)->base) && same(as<Ramp>(a)->stride, as<Ramp>(b)->stride);
      case ExprKind::Broadcast:
        return same(as<Broadcast>(a)->value, as<Broadcast>(b)->value);
      case ExprKind::Call:
        return as<Call>(a)->name == as<Call>(b)->name && sameList(as<Call>(a)->args, as<Call>(b)->args);
      case ExprKind::VectorReduce: {
        auto *x = as<VectorReduce>(a), *y = as<VectorReduce>(b);
        return x->op == y->op && same(x->value, y->value);
      }
      case ExprKind::LetExpr: {
        auto *x = as<LetExpr>(a), *y = as<LetExpr>(b);
        return x->var == y->var && same(x->value, y->value) && same(x->body, y->body);
      }
      default:
        return false;
    }
  }
  std::unordered_map<std::pair<const ExprNode*, const ExprNode*>, bool, PairHash> equal_;
};

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull ^ (h >> 32);
}

uint64_t hashNode(const Expr& e, std::unordered_map<const ExprNode*, uint64_t>& memo) {
  if (!e) return 1;
  auto it = memo.find(e.get());
  if (it != memo.end()) return it->second;
  uint64_t h = mix(static_cast<uint64_t>(e->kind),
                   (static_cast<uint64_t>(e->type.dtype) << 32) | static_cast<uint32_t>(e->type.lanes));
  auto child = [&](const Expr& c) { h = mix(h, hashNode(c, memo)); };
  switch (e->kind) {
    case ExprKind::IntImm:
      h = mix(h, static_cast<uint64_t>(as<IntImm>(e)->value));
      break;
    case ExprKind::FloatImm:
      h = mix(h, static_cast<uint64_t>(wordOf(as<FloatImm>(e)->value).i));
      break;
    case ExprKind::Var:
      h = mix(h, reinterpret_cast<uintptr_t>(e.get()));
      break;
    case ExprKind::Cast:
      child(as<Cast>(e)->value);
      break;
    case ExprKind::Binary:
      h = mix(h, static_cast<uint64_t>(as<Binary>(e)->op));
      child(as<Binary>(e)->a), child(as<Binary>(e)->b);
      break;
    case ExprKind::Select:
      child(as<Select>(e)->condition), child(as<Select>(e)->yes), child(as<Select>(e)->no);
      break;
    case ExprKind::Load:
      h = mix(h, reinterpret_cast<uintptr_t>(as<Load>(e)->buffer.get()));
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
      h = mix(h, std::hash<std::string>()(as<Call>(e)->name));
      for (const Expr& a : as<Call>(e)->args) child(a);
      break;
    case ExprKind::VectorReduce:
      h = mix(h, static_cast<uint64_t>(as<VectorReduce>(e)->op));
      child(as<VectorReduce>(e)->value);
      break;
    case ExprKind::LetExpr:
      h = mix(h, reinterpret_cast<uintptr_t>(as<LetExpr>(e)->var.get()));
      child(as<LetExpr>(e)->value), child(as<LetExpr>(e)->body);
      break;
  }
  memo.emplace(e.get(), h);
  return h;
}

}  // namespace

bool sameExpr(const Expr& a, const Expr& b) { return a == b || Comparer().same(a, b); }

uint64_t structuralHash(const Expr& e) {
  std::unordered_map<const ExprNode*, uint64_t> memo;
  return hashNode(e, memo);
}

}  // namespace locution::loop

// `simplify`, `splitAffine` and `bounds`: a rebuilding pass that turns every int64 scalar into a linear combination
// (index_algebra.h), decides comparisons by bounds, and leaves the rest to the makers' folding. Before -> after, s<128 h<12 d<64:
//     A[((s*768 + h*64 + d) // 64) %% 12]  ->  A[h]        select(0 <= s, x, y)  ->  x
// Invariant: results are memoised by node; a variable that is bound again with another range drops the memo.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "loop/build.h"
#include "loop/index_algebra.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/check.h"

namespace locution::loop {
namespace {

bool isIndex(const Expr& e) { return e->type == Type{DType::I64, 1}; }

/// 1 for the one coefficient without a magnitude.
int64_t magnitude(int64_t c) { return c == Interval::kMin ? 1 : c < 0 ? -c : c; }

bool isEmpty(const Stmt& s) {
  auto* b = as<Block>(s);
  return !s || (b && b->stmts.empty());
}

class Simplifier : public Mutator {
 public:
  explicit Simplifier(const Ranges& ranges) {
    for (auto& [var, range] : ranges) facts_[var] = {{range.min, range.max}, false, nullptr};
  }
  using Mutator::mutate;

  Expr mutate(const Expr& e) override {
    switch (e->kind) {
      case ExprKind::IntImm:
      case ExprKind::FloatImm:
        return e;
      case ExprKind::Var: {
        auto it = facts_.find(as<Var>(e));
        return it != facts_.end() && it->second.value ? it->second.value : e;
      }
      default:
        break;
    }
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    Expr out = isIndex(e) ? algebra_.toExpr(linear(e)) : rebuild(e);
    if (out != e && sameExpr(out, e)) out = e;
    memo_.emplace(e, out);
    return out;
  }

  Stmt mutate(const Stmt& s) override {
    switch (s->kind) {
      case StmtKind::For:
        return mutateFor(s);
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        Expr value = mutate(n->value);
        if (isTrivial(value)) {
          Binding binding(*this, n->var.get(), {{}, false, value});
          return mutate(n->body);
        }
        Binding binding(*this, n->var.get(), factsOf(value));
        Stmt body = mutate(n->body);
        if (isEmpty(body)) return nullptr;
        return value == n->value && body == n->body ? s : letStmt(n->var, value, body);
      }
      default: {
        Stmt out = mutateChildren(s);
        return isEmpty(out) ? nullptr : out;
      }
    }
  }

  Linear linear(const Expr& e) {
    if (auto* i = as<IntImm>(e)) return IndexAlgebra::constant(i->value);
    if (auto* v = as<Var>(e)) {
      auto it = facts_.find(v);
      if (it == facts_.end()) return algebra_.opaque(e, {}, false);
      if (it->second.value) return it->second.value == e ? algebra_.opaque(e, {}, false) : linear(it->second.value);
      return algebra_.opaque(e, it->second.bounds, it->second.wild);
    }
    if (auto it = linears_.find(e); it != linears_.end()) return it->second;
    Linear out = computeLinear(e);
    linears_.emplace(e, out);
    return out;
  }

  IndexAlgebra& algebra() { return algebra_; }

 private:
  struct Facts {
    Interval bounds;
    bool wild = false;
    Expr value;  ///< the variable is replaced by this
  };

  /// A variable's facts for the lifetime of the object. Atoms and memos know the old facts, so differing ones start afresh.
  class Binding {
   public:
    Binding(Simplifier& s, const Var* var, Facts facts) : s_(s), var_(var) {
      auto it = s.facts_.find(var);
      if (it != s.facts_.end()) old_ = it->second;
      bool seen = old_ || !s.everBound_.insert(var).second;
      if (seen) s.forget();
      s.facts_[var] = std::move(facts);
    }
    ~Binding() {
      if (!old_) {
        s_.facts_.erase(var_);
      } else {
        s_.facts_[var_] = *old_;
        s_.forget();
      }
    }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    Simplifier& s_;
    const Var* var_;
    std::optional<Facts> old_;
  };

  void forget() {
    algebra_.forget();
    memo_.clear();
    linears_.clear();
  }

  static bool isTrivial(const Expr& e) {
    return e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm || e->kind == ExprKind::Var;
  }
  Facts factsOf(const Expr& value) {
    if (!isIndex(value)) return {};
    Linear l = linear(value);
    return {algebra_.bounds(l), algebra_.mayWrap(l), nullptr};
  }

  Stmt mutateFor(const Stmt& s) {
    auto* n = as<For>(s);
    Expr min = mutate(n->min), extent = mutate(n->extent);
    int64_t count = 0;
    if (isConstInt(extent, &count)) {
      if (count <= 0) return nullptr;
      if (count == 1) {
        Binding binding(*this, n->var.get(), {{}, false, min});
        return mutate(n->body);
      }
    }
    Interval low = algebra_.bounds(linear(min)), size = algebra_.bounds(linear(extent));
    Interval range = low;
    int64_t high = 0;
    if (low.hi == Interval::kMax || size.hi == Interval::kMax ||
        __builtin_add_overflow(low.hi, std::max<int64_t>(size.hi, 1) - 1, &high))
      range.hi = Interval::kMax;
    else
      range.hi = high;
    Binding binding(*this, n->var.get(), {range, false, nullptr});
    Stmt body = mutate(n->body);
    if (isEmpty(body)) return nullptr;
    return min == n->min && extent == n->extent && body == n->body ? s : forLoop(n->var, min, extent, n->loop, body);
  }

  /// Anything but an int64 scalar.
  Expr rebuild(const Expr& e) {
    if (auto* b = as<Binary>(e)) {
      if (isComparison(b->op) && isIndex(b->a)) return compare(b->op, linear(b->a), linear(b->b));
      Expr x = mutate(b->a), y = mutate(b->b);
      if (x != y && sameExpr(x, y)) y = x;
      return x == b->a && y == b->b && x != y ? e : binary(b->op, x, y);
    }
    if (auto* s = as<Select>(e)) return simplifySelect(*s, e);
    if (auto* l = as<LetExpr>(e)) return simplifyLet(*l, e);
    return mutateChildren(e);
  }

  Expr simplifySelect(const Select& s, const Expr& e) {
    Expr condition = mutate(s.condition);
    int64_t v = 0;
    if (isConstInt(condition, &v)) return mutate(v ? s.yes : s.no);
    Expr yes = mutate(s.yes), no = mutate(s.no);
    if (yes != no && sameExpr(yes, no)) no = yes;
    return condition == s.condition && yes == s.yes && no == s.no ? e : select(condition, yes, no);
  }

  Expr simplifyLet(const LetExpr& l, const Expr& e) {
    Expr value = mutate(l.value);
    if (isTrivial(value)) {
      Binding binding(*this, l.var.get(), {{}, false, value});
      return mutate(l.body);
    }
    Binding binding(*this, l.var.get(), factsOf(value));
    Expr body = mutate(l.body);
    if (!usesVar(body, l.var.get())) return body;
    return value == l.value && body == l.body ? e : let(l.var, value, body);
  }

  Expr compare(BinaryOp op, const Linear& a, const Linear& b) {
    Linear d = algebra_.recombine(IndexAlgebra::add(a, b, -1));
    auto boolean = [](bool v) { return intImm(DType::Bool, v); };
    bool equality = op == BinaryOp::Eq || op == BinaryOp::Ne;
    if (d.isConstant() && (equality || d.constant == 0))
      return boolean(evalBinary(op, DType::I64, wordOf(d.constant), wordOf(int64_t{0})).i);
    if (algebra_.mayWrap(d) || algebra_.mayWrap(a) || algebra_.mayWrap(b))
      return binary(op, algebra_.toExpr(a), algebra_.toExpr(b));
    Interval x = algebra_.bounds(d);
    if (equality) {
      if (x.lo > 0 || x.hi < 0) return boolean(op == BinaryOp::Ne);
      Linear first, rest;
      for (auto [id, c] : d.terms)
        if (magnitude(c) > 1) {
          // g * first + rest == 0 with rest in [0, g) needs rest == 0; a non-zero constant rest never is.
          if (algebra_.splitBy(d, magnitude(c), &first, &rest) && rest.isConstant()) {
            if (rest.constant != 0) return boolean(op == BinaryOp::Ne);
            d = first;
            break;
          }
        }
      return sidesOf(op, d);
    }
    if (op == BinaryOp::Le ? x.hi <= 0 : x.hi < 0) return boolean(true);
    if (op == BinaryOp::Le ? x.lo > 0 : x.lo >= 0) return boolean(false);
    // g * first + rest < 0 with rest in [0, g)  <=>  first < 0: tails of tiles depend on the tile alone.
    Linear strict = op == BinaryOp::Le ? IndexAlgebra::add(d, IndexAlgebra::constant(-1)) : d;
    int64_t best = 1;
    Linear bestFirst;
    for (auto [id, c] : d.terms) {
      int64_t g = magnitude(c);
      Linear first, rest;
      if (g > best && algebra_.splitBy(strict, g, &first, &rest)) {
        best = g;
        bestFirst = first;
      }
    }
    if (best > 1) return compare(BinaryOp::Lt, bestFirst, {});
    return sidesOf(op, d);
  }

  /// d op 0 with positive terms left, negative ones right, and the constant where it is positive or alone.
  Expr sidesOf(BinaryOp op, const Linear& d) {
    auto [left, right] = algebra_.sides(d);
    if (left.isConstant() || (d.constant > 0 && !right.isConstant()))
      left.constant = d.constant;
    else
      right.constant = -d.constant;
    return binary(op, algebra_.toExpr(left), algebra_.toExpr(right));
  }

  Linear opaque(const Expr& e, Interval bounds = {}, bool wild = true) {
    return algebra_.opaque(e, bounds, wild && !bounds.finite());
  }

  Linear computeLinear(const Expr& e) {
    if (auto* b = as<Binary>(e)) return binaryLinear(*b, e);
    if (auto* s = as<Select>(e)) {
      Expr r = simplifySelect(*s, e);
      auto* rs = as<Select>(r);
      if (!rs) return linear(r);
      Linear yes = linear(rs->yes), no = linear(rs->no);
      Interval x = algebra_.bounds(yes), y = algebra_.bounds(no);
      return opaque(r, {std::min(x.lo, y.lo), std::max(x.hi, y.hi)}, algebra_.mayWrap(yes) || algebra_.mayWrap(no));
    }
    Expr r = e->kind == ExprKind::LetExpr ? simplifyLet(*as<LetExpr>(e), e) : mutateChildren(e);
    if (r->kind != e->kind) return linear(r);
    if (auto* c = as<Cast>(r)) {
      DType from = c->value->type.dtype;
      if (from == DType::Bool || (isInteger(from) && dtypeBits(from) < 64))
        return opaque(r, {lowestInt(from), highestInt(from)});
    }
    return opaque(r);
  }

  Linear binaryLinear(const Binary& b, const Expr& e) {
    Linear x = linear(b.a), y = linear(b.b);
    switch (b.op) {
      case BinaryOp::Add:
        return algebra_.recombine(IndexAlgebra::add(x, y));
      case BinaryOp::Sub:
        return algebra_.recombine(IndexAlgebra::add(x, y, -1));
      case BinaryOp::Mul:
        return algebra_.multiply(x, y);
      default:
        break;
    }
    Interval xb = algebra_.bounds(x), yb = algebra_.bounds(y);
    bool wild = algebra_.mayWrap(x) || algebra_.mayWrap(y);
    auto rebuilt = [&](BinaryOp op) { return binary(op, algebra_.toExpr(x), algebra_.toExpr(y)); };
    BinaryOp op = b.op;
    bool natural = !wild && xb.lo >= 0 && yb.lo >= 0;
    if (op == BinaryOp::Div && natural) op = BinaryOp::FloorDiv;
    if (op == BinaryOp::Mod && natural) op = BinaryOp::FloorMod;
    switch (op) {
      case BinaryOp::FloorDiv:
        if (y.isConstant() && y.constant > 0) return algebra_.floorDiv(x, y.constant);
        if (natural) return atomOrFold(rebuilt(op), {0, xb.hi});
        break;
      case BinaryOp::FloorMod:
        if (y.isConstant() && y.constant > 0) return algebra_.floorMod(x, y.constant);
        if (natural) return atomOrFold(rebuilt(op), {0, std::min(xb.hi, yb.hi)});
        break;
      case BinaryOp::Min:
      case BinaryOp::Max: {
        Linear d = IndexAlgebra::add(x, y, -1);
        if (!wild && !algebra_.mayWrap(d)) {
          Interval db = algebra_.bounds(d);
          if (db.hi <= 0) return op == BinaryOp::Min ? x : y;
          if (db.lo >= 0) return op == BinaryOp::Min ? y : x;
        }
        Interval r = op == BinaryOp::Min ? Interval{std::min(xb.lo, yb.lo), std::min(xb.hi, yb.hi)}
                                         : Interval{std::max(xb.lo, yb.lo), std::max(xb.hi, yb.hi)};
        return atomOrFold(rebuilt(op), r, wild);
      }
      case BinaryOp::And:
        if (y.isConstant() && y.constant >= 0) return atomOrFold(rebuilt(op), {0, y.constant});
        break;
      default:
        break;
    }
    Expr r = rebuilt(op);
    return atomOrFold(sameExpr(r, e) ? e : r, {});
  }

  /// A maker may have folded the expression to something that is no longer an atom.
  Linear atomOrFold(const Expr& e, Interval bounds, bool wild = true) {
    if (e->kind == ExprKind::IntImm) return IndexAlgebra::constant(as<IntImm>(e)->value);
    return opaque(e, bounds, wild);
  }

  std::unordered_map<const Var*, Facts> facts_;
  std::unordered_set<const Var*> everBound_;
  IndexAlgebra algebra_;
  std::unordered_map<Expr, Expr> memo_;
  std::unordered_map<Expr, Linear> linears_;
};

}  // namespace

Expr simplify(const Expr& e, const Ranges& ranges) { return Simplifier(ranges).mutate(e); }

Stmt simplify(const Stmt& s) {
  Stmt out = Simplifier({}).mutate(s);
  return out ? out : block({});
}

bool splitAffine(const Expr& e, const Var* var, Expr* base, int64_t* coefficient, const Ranges& ranges) {
  if (!isIndex(e)) return false;
  Simplifier simplifier(ranges);
  Linear l = simplifier.linear(e);
  Linear self = simplifier.linear(
      std::static_pointer_cast<const ExprNode>(std::shared_ptr<const Var>(std::shared_ptr<void>(), var)));
  *coefficient = 0;
  for (auto it = l.terms.begin(); it != l.terms.end(); ++it)
    if (self.terms.size() == 1 && it->first == self.terms[0].first) {
      *coefficient = it->second;
      l.terms.erase(it);
      break;
    }
  *base = simplifier.algebra().toExpr(l);
  return !usesVar(*base, var);
}

bool bounds(const Expr& e, const Ranges& ranges, Range* out) {
  if (e->type.lanes != 1 || isFloat(e->type.dtype)) return false;
  if (!isIndex(e)) {
    int64_t v = 0;
    DType type = e->type.dtype;
    if (isConstInt(simplify(e, ranges), &v)) return *out = {v, v}, true;
    if (type == DType::U64) return false;
    return *out = {lowestInt(type), highestInt(type)}, true;
  }
  Simplifier simplifier(ranges);
  Linear l = simplifier.linear(e);
  Interval x = simplifier.algebra().bounds(l);
  if (simplifier.algebra().mayWrap(l) || !x.finite()) return false;
  *out = {x.lo, x.hi};
  return true;
}

}  // namespace locution::loop

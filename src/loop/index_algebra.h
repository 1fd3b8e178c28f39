// The algebra behind `simplify`: int64 scalars as linear combinations of atoms with known bounds. An atom is what is not a sum:
// a variable, a floor division or remainder of a combination by a constant, a product of atoms, or any other expression.
// Sums and products are taken modulo 2^64 and always exact; rules for division, remainder and comparison apply only where the
// combination can't wrap: atoms that may hold any value (loads) are `wild`, free variables are taken to be indices, which
// don't overflow.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loop/expr.h"

namespace locution::loop {

/// Inclusive; the extreme int64 values mean "unbounded".
struct Interval {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  int64_t lo = kMin, hi = kMax;
  bool finite() const { return lo != kMin && hi != kMax; }
};

using AtomId = int32_t;
/// constant + sum of coefficient * atom; terms by ascending atom, coefficients not zero.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<AtomId, int64_t>> terms;
  bool isConstant() const { return terms.empty(); }
  bool operator==(const Linear&) const = default;
};

class IndexAlgebra {
 public:
  static Linear constant(int64_t value) { return {value, {}}; }
  /// A variable or any other expression, taken as it is.
  Linear opaque(const Expr& e, Interval bounds, bool wild);

  /// Opaque atoms made from now on are others than those before: what is known of variables has changed.
  void forget() { opaque_.clear(); }

  static Linear add(const Linear& a, const Linear& b, int64_t scale = 1);
  Linear multiply(const Linear& a, const Linear& b);
  Linear floorDiv(const Linear& a, int64_t c);  ///< c > 0
  Linear floorMod(const Linear& a, int64_t c);  ///< c > 0
  /// Joins x // c * c + x %% c and its like.
  Linear recombine(Linear a);

  Interval bounds(const Linear& a) const;
  bool mayWrap(const Linear& a) const;
  Expr toExpr(const Linear& a);
  /// Sum of the terms with positive coefficients and sum of the negated others: a == first - second + constant.
  std::pair<Linear, Linear> sides(const Linear& a) const;
  /// Splits a = g * first + second with second within [0, g), if some such split into terms exists.
  bool splitBy(const Linear& a, int64_t g, Linear* first, Linear* second) const;

 private:
  enum class AtomKind : uint8_t { Opaque, Div, Mod, Product };
  struct Atom {
    AtomKind kind;
    Linear inner;  ///< Div, Mod
    int64_t c = 0;
    std::vector<AtomId> factors;  ///< Product, ascending
    Expr expr;                    ///< null until asked for
    Interval bounds;
    bool wild = false;
  };

  const Atom& atom(AtomId id) const { return atoms_[static_cast<size_t>(id)]; }
  AtomId intern(std::vector<int64_t> key, Atom atom);
  Linear divMod(AtomKind kind, const Linear& a, int64_t c);
  Linear product(std::vector<AtomId> factors, int64_t coefficient);
  Expr atomExpr(AtomId id);
  std::vector<int64_t> divisors(const Linear& a, int64_t c) const;

  std::vector<Atom> atoms_;
  std::map<std::vector<int64_t>, AtomId> interned_;
  std::unordered_map<uint64_t, std::vector<AtomId>> opaque_;
};

}  // namespace locution::loop

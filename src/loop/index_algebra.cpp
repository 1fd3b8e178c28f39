// Linear combinations of atoms: arithmetic, floor division and remainder by constants, recombination, back to expressions.
// Rules (c, m, g > 0): (c*q + r) // c = q + r // c;  (g*x + r) // (g*h) = x // h and (g*x + r) %% (g*h) = g * (x %% h) + r for
// 0 <= r < g;  (x // a) // c = x // (a*c);  (x %% (c*m)) // c = (x // c) %% m;  (x %% (c*m)) %% c = x %% c.
#include "loop/index_algebra.h"

#include <algorithm>
#include <numeric>

#include "loop/build.h"
#include "loop/passes.h"

namespace locution::loop {
namespace {

using Wide = __int128;

int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t floorQuotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t floorRemainder(int64_t a, int64_t b) { return a - floorQuotient(a, b) * b; }
bool fits(Wide v) { return v > Interval::kMin && v < Interval::kMax; }

/// [lo, hi] * c, unbounded where it must be or where it doesn't fit.
Interval scaled(Interval x, int64_t c) {
  if (c < 0) std::swap(x.lo, x.hi);
  auto end = [&](int64_t v, int64_t unbounded) {
    if (v == Interval::kMin || v == Interval::kMax || !fits(Wide(v) * c)) return unbounded;
    return v * c;
  };
  return {end(x.lo, Interval::kMin), end(x.hi, Interval::kMax)};
}

bool inOneBlock(const Interval& x, int64_t c, int64_t* block) {
  if (!x.finite() || floorQuotient(x.lo, c) != floorQuotient(x.hi, c)) return false;
  *block = floorQuotient(x.lo, c);
  return true;
}

int64_t coefficientOf(const Linear& a, AtomId id) {
  auto it = std::lower_bound(a.terms.begin(), a.terms.end(), std::pair<AtomId, int64_t>{id, Interval::kMin});
  return it != a.terms.end() && it->first == id ? it->second : 0;
}

}  // namespace

AtomId IndexAlgebra::intern(std::vector<int64_t> key, Atom atom) {
  auto [it, fresh] = interned_.emplace(std::move(key), static_cast<AtomId>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(atom));
  return it->second;
}

Linear IndexAlgebra::opaque(const Expr& e, Interval bounds, bool wild) {
  auto& bucket = opaque_[structuralHash(e)];
  for (AtomId id : bucket)
    if (sameExpr(atom(id).expr, e)) return {0, {{id, 1}}};
  auto id = static_cast<AtomId>(atoms_.size());
  bucket.push_back(id);
  Atom a;
  a.kind = AtomKind::Opaque;
  a.expr = e;
  a.bounds = bounds;
  a.wild = wild;
  atoms_.push_back(std::move(a));
  return {0, {{id, 1}}};
}

Linear IndexAlgebra::add(const Linear& a, const Linear& b, int64_t scale) {
  Linear out;
  out.constant = wrapAdd(a.constant, wrapMul(b.constant, scale));
  out.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  auto push = [&](AtomId id, int64_t c) {
    if (c != 0) out.terms.emplace_back(id, c);
  };
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->first < y->first)) {
      out.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->first < x->first) {
      push(y->first, wrapMul(y->second, scale));
      ++y;
    } else {
      push(x->first, wrapAdd(x->second, wrapMul(y->second, scale)));
      ++x, ++y;
    }
  }
  return out;
}

Interval IndexAlgebra::bounds(const Linear& a) const {
  Wide lo = a.constant, hi = a.constant;
  bool loKnown = true, hiKnown = true;
  for (auto [id, c] : a.terms) {
    Interval t = scaled(atom(id).bounds, c);
    if (t.lo == Interval::kMin) loKnown = false;
    if (t.hi == Interval::kMax) hiKnown = false;
    lo += t.lo;
    hi += t.hi;
  }
  return {loKnown && fits(lo) ? int64_t(lo) : Interval::kMin, hiKnown && fits(hi) ? int64_t(hi) : Interval::kMax};
}

bool IndexAlgebra::mayWrap(const Linear& a) const {
  Wide lo = a.constant, hi = a.constant;
  for (auto [id, c] : a.terms) {
    const Atom& t = atom(id);
    if (t.wild) return true;
    if (t.bounds.lo != Interval::kMin) (c > 0 ? lo : hi) += Wide(t.bounds.lo) * c;
    if (t.bounds.hi != Interval::kMax) (c > 0 ? hi : lo) += Wide(t.bounds.hi) * c;
  }
  return !fits(lo) || !fits(hi);
}

Linear IndexAlgebra::product(std::vector<AtomId> factors, int64_t coefficient) {
  std::sort(factors.begin(), factors.end());
  std::vector<int64_t> key{static_cast<int64_t>(AtomKind::Product)};
  key.insert(key.end(), factors.begin(), factors.end());
  Atom a;
  a.kind = AtomKind::Product;
  Interval x{1, 1};
  for (AtomId id : factors) {
    const Interval& y = atom(id).bounds;
    a.wild = a.wild || atom(id).wild;
    if (!x.finite() || !y.finite()) {
      bool natural = x.lo >= 0 && y.lo >= 0;
      x = {natural ? 0 : Interval::kMin, Interval::kMax};
      continue;
    }
    Wide ends[4] = {Wide(x.lo) * y.lo, Wide(x.lo) * y.hi, Wide(x.hi) * y.lo, Wide(x.hi) * y.hi};
    Wide lo = *std::min_element(ends, ends + 4), hi = *std::max_element(ends, ends + 4);
    if (!fits(lo) || !fits(hi)) a.wild = true;
    x = {fits(lo) ? int64_t(lo) : Interval::kMin, fits(hi) ? int64_t(hi) : Interval::kMax};
  }
  if (a.wild && !x.finite()) x = {};
  a.bounds = x;
  a.factors = std::move(factors);
  return {0, {{intern(std::move(key), std::move(a)), coefficient}}};
}

Linear IndexAlgebra::multiply(const Linear& a, const Linear& b) {
  if (b.isConstant()) return b.constant == 0 ? Linear{} : add(Linear{}, a, b.constant);
  if (a.isConstant()) return multiply(b, a);
  auto factorsOf = [&](AtomId id) {
    return atom(id).kind == AtomKind::Product ? atom(id).factors : std::vector<AtomId>{id};
  };
  // Long sums stay factors: distributing them would multiply the size.
  if (a.terms.size() * b.terms.size() > 16) {
    auto whole = [&](const Linear& x) {
      if (x.terms.size() == 1 && x.constant == 0 && x.terms[0].second == 1) return x;
      return opaque(toExpr(x), bounds(x), mayWrap(x));
    };
    return product({whole(a).terms[0].first, whole(b).terms[0].first}, 1);
  }
  Linear out =
      add(add(Linear{wrapMul(a.constant, b.constant), {}}, {0, a.terms}, b.constant), {0, b.terms}, a.constant);
  for (auto [x, cx] : a.terms)
    for (auto [y, cy] : b.terms) {
      std::vector<AtomId> factors = factorsOf(x), more = factorsOf(y);
      factors.insert(factors.end(), more.begin(), more.end());
      out = add(out, product(std::move(factors), wrapMul(cx, cy)));
    }
  return out;
}

Linear IndexAlgebra::divMod(AtomKind kind, const Linear& a, int64_t c) {
  std::vector<int64_t> key{static_cast<int64_t>(kind), c, a.constant};
  for (auto [id, coefficient] : a.terms) {
    key.push_back(id);
    key.push_back(coefficient);
  }
  Atom t;
  t.kind = kind;
  t.inner = a;
  t.c = c;
  if (kind == AtomKind::Mod) {
    t.bounds = {0, c - 1};
  } else {
    bool wraps = mayWrap(a);
    Interval x = wraps ? Interval{} : bounds(a);
    bool index = !wraps;  // of an index: unbounded stays unbounded; of a wild value: c > 1 bounds the quotient
    t.bounds.lo = x.lo == Interval::kMin && index ? x.lo : floorQuotient(x.lo, c);
    t.bounds.hi = x.hi == Interval::kMax && index ? x.hi : floorQuotient(x.hi, c);
  }
  return {0, {{intern(std::move(key), std::move(t)), 1}}};
}

std::vector<int64_t> IndexAlgebra::divisors(const Linear& a, int64_t c) const {
  std::vector<int64_t> out;
  for (auto [id, coefficient] : a.terms)
    if (int64_t g = coefficient == Interval::kMin ? 1 : std::gcd(coefficient, c); g > 1) out.push_back(g);
  std::sort(out.rbegin(), out.rend());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool IndexAlgebra::splitBy(const Linear& a, int64_t g, Linear* first, Linear* second) const {
  Linear x, rest;
  for (auto [id, c] : a.terms) {
    if (c % g == 0)
      x.terms.emplace_back(id, c / g);
    else
      rest.terms.emplace_back(id, c);
  }
  x.constant = floorQuotient(a.constant, g);
  rest.constant = floorRemainder(a.constant, g);
  int64_t blockIndex = 0;
  if (mayWrap(rest) || !inOneBlock(bounds(rest), g, &blockIndex)) return false;
  x.constant += blockIndex;
  rest.constant -= blockIndex * g;
  *first = std::move(x);
  *second = std::move(rest);
  return true;
}

Linear IndexAlgebra::floorDiv(const Linear& a, int64_t c) {
  if (c == 1) return a;
  if (a.isConstant()) return constant(floorQuotient(a.constant, c));
  int64_t blockIndex = 0;
  if (mayWrap(a)) {
    bool plain = a.constant == 0 && a.terms.size() == 1 && a.terms[0].second == 1;
    const Atom& t = atom(a.terms[0].first);
    if (plain && t.kind == AtomKind::Div && fits(Wide(t.c) * c)) return floorDiv(Linear(t.inner), t.c * c);
    return divMod(AtomKind::Div, a, c);
  }
  if (inOneBlock(bounds(a), c, &blockIndex)) return constant(blockIndex);
  // What divides goes out, and of larger coefficients all but the remainder: `floorMod` keeps the same rest.
  Linear quotient, rest;
  for (auto [id, coefficient] : a.terms) {
    const int64_t whole = coefficient % c == 0 || coefficient > c ? coefficient / c : 0;
    if (whole != 0) quotient.terms.emplace_back(id, whole);
    if (coefficient != whole * c) rest.terms.emplace_back(id, coefficient - whole * c);
  }
  quotient.constant = floorQuotient(a.constant, c);
  rest.constant = floorRemainder(a.constant, c);
  if (rest.isConstant()) return quotient;
  if (mayWrap(rest)) return divMod(AtomKind::Div, a, c);
  if (inOneBlock(bounds(rest), c, &blockIndex)) return add(quotient, constant(blockIndex));
  for (int64_t g : divisors(rest, c)) {
    Linear x, r;
    if (splitBy(rest, g, &x, &r)) return add(quotient, floorDiv(x, c / g));
  }
  if (rest.terms.size() == 1 && rest.terms[0].second == 1) {
    const Atom t = atom(rest.terms[0].first);
    if (t.kind == AtomKind::Div && fits(Wide(t.c) * c) && (rest.constant == 0 || !mayWrap(t.inner)))
      return add(quotient, floorDiv(add(t.inner, constant(rest.constant * t.c)), t.c * c));
    if (t.kind == AtomKind::Mod && t.c % c == 0 && rest.constant == 0 && !mayWrap(t.inner))
      return add(quotient, floorMod(floorDiv(t.inner, c), t.c / c));
  }
  return add(quotient, divMod(AtomKind::Div, rest, c));
}

Linear IndexAlgebra::floorMod(const Linear& a, int64_t c) {
  if (c == 1) return {};
  if (a.isConstant()) return constant(floorRemainder(a.constant, c));
  if (mayWrap(a)) return divMod(AtomKind::Mod, a, c);
  int64_t blockIndex = 0;
  if (inOneBlock(bounds(a), c, &blockIndex)) return add(a, constant(-blockIndex * c));
  Linear rest = a;
  for (bool again = true; again;) {
    again = false;
    Linear reduced = constant(floorRemainder(rest.constant, c));
    for (auto [id, coefficient] : rest.terms) {
      int64_t k = coefficient % c;
      if (k == 0) continue;
      const Atom t = atom(id);
      if (t.kind == AtomKind::Mod && Wide(k) * t.c % c == 0 && !mayWrap(t.inner)) {
        reduced = add(reduced, t.inner, k);
        again = true;
      } else {
        reduced = add(reduced, Linear{0, {{id, k}}});
      }
    }
    rest = std::move(reduced);
  }
  rest.constant = floorRemainder(rest.constant, c);
  if (rest.isConstant()) return rest;
  if (mayWrap(rest)) return divMod(AtomKind::Mod, a, c);
  if (inOneBlock(bounds(rest), c, &blockIndex)) return add(rest, constant(-blockIndex * c));
  for (int64_t g : divisors(rest, c)) {
    Linear x, r;
    if (splitBy(rest, g, &x, &r)) return add(r, floorMod(x, c / g), g);
  }
  return divMod(AtomKind::Mod, rest, c);
}

Linear IndexAlgebra::recombine(Linear a) {
  auto divModTerms = [&](const Linear& x) {
    return std::count_if(x.terms.begin(), x.terms.end(), [&](auto& t) {
      return atom(t.first).kind == AtomKind::Div || atom(t.first).kind == AtomKind::Mod;
    });
  };
  // Whether `part` times `scale` occurs in `a` term by term.
  auto contains = [&](const Linear& part, Wide scale) {
    if (part.isConstant() || !fits(scale)) return false;
    return std::all_of(part.terms.begin(), part.terms.end(),
                       [&](auto& t) { return Wide(coefficientOf(a, t.first)) == scale * t.second; });
  };
  for (bool again = true; again;) {
    again = false;
    auto before = divModTerms(a);
    if (before < 2) return a;
    auto accept = [&](Linear next) {
      if (divModTerms(next) >= before) return false;
      a = std::move(next);
      return again = true;
    };
    const auto terms = a.terms;
    for (auto [id, k] : terms) {
      const Atom mod = atom(id);
      if (mod.kind != AtomKind::Mod) continue;
      Linear quotient = floorDiv(mod.inner, mod.c), self{0, {{id, 1}}};
      Wide scale = Wide(k) * mod.c;
      if (contains(quotient, scale) && accept(add(add(add(a, self, -k), quotient, -int64_t(scale)), mod.inner, k)))
        break;
      for (auto [otherId, unused] : terms) {
        const Atom other = atom(otherId);
        if (other.kind != AtomKind::Mod || otherId == id || mayWrap(mod.inner) || !fits(Wide(mod.c) * other.c))
          continue;
        Linear upper = floorMod(quotient, other.c);
        if (contains(upper, scale) &&
            accept(add(add(add(a, self, -k), upper, -int64_t(scale)), floorMod(mod.inner, mod.c * other.c), k)))
          break;
      }
      if (again) break;
    }
  }
  return a;
}

std::pair<Linear, Linear> IndexAlgebra::sides(const Linear& a) const {
  Linear positive, negative;
  for (auto [id, c] : a.terms) {
    if (c > 0)
      positive.terms.emplace_back(id, c);
    else
      negative.terms.emplace_back(id, wrapMul(c, -1));
  }
  return {positive, negative};
}

Expr IndexAlgebra::atomExpr(AtomId id) {
  if (Expr e = atom(id).expr) return e;
  const Atom t = atom(id);  // a copy: building may add atoms
  Expr e;
  if (t.kind == AtomKind::Product) {
    for (AtomId f : t.factors) e = e ? e * atomExpr(f) : atomExpr(f);
  } else {
    e = binary(t.kind == AtomKind::Div ? BinaryOp::FloorDiv : BinaryOp::FloorMod, toExpr(t.inner), loop::index(t.c));
  }
  atoms_[static_cast<size_t>(id)].expr = e;
  return e;
}

Expr IndexAlgebra::toExpr(const Linear& a) {
  // Large strides first, as indices are written by people; atoms are numbered by first appearance, so equal inputs print equal.
  auto terms = a.terms;
  auto magnitude = [](int64_t c) { return c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c); };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](auto& x, auto& y) { return magnitude(x.second) > magnitude(y.second); });
  Expr sum;
  for (auto [id, c] : terms) {
    if (c < 0 && c != Interval::kMin) continue;
    Expr t = c == 1 ? atomExpr(id) : atomExpr(id) * loop::index(c);
    sum = sum ? sum + t : t;
  }
  bool constantDone = !sum;
  if (!sum) sum = loop::index(a.constant);
  for (auto [id, c] : terms) {
    if (c >= 0 || c == Interval::kMin) continue;
    sum = sum - (c == -1 ? atomExpr(id) : atomExpr(id) * loop::index(-c));
  }
  return constantDone ? sum : sum + loop::index(a.constant);
}

}  // namespace locution::loop

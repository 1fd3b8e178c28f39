// Dims as polynomials: a sum of terms, each an integer times a sorted list of atoms. Rounding divisions are reduced to one
// form (whole parts taken out, nested divisors merged, ceilings by numbers written as floors), so that the extents which
// convolutions, pools and slices produce along different paths compare equal.
#include "core/dim.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/saturate.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// Beyond these an expression is no help to anyone and costs time: hostile models could grow it without end.
constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxText = 1000;

enum class AtomKind : uint8_t { Symbol, FloorDiv, CeilDiv, Max, Min };

struct DimAtom {
  AtomKind kind = AtomKind::Symbol;
  std::string name;  // of a symbol
  Dim a, b;          // operands of the others
  std::string text;
  bool nonNegative = true;
};
// Shared between the expressions that the atom stands in; immutable.
using AtomPtr = std::shared_ptr<const DimAtom>;

struct Term {
  std::vector<AtomPtr> factors;  // sorted by text, powers repeated; empty: the constant term
  int64_t coefficient = 1;
};
using Terms = std::vector<Term>;  // sorted by `before`, no zero coefficients, no two with the same factors

bool sameAtom(const AtomPtr& a, const AtomPtr& b) { return a == b || a->text == b->text; }
bool sameFactors(const Term& a, const Term& b) {
  return std::equal(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(), sameAtom);
}
// Graded lexicographic: higher degrees first. A monomial order, which exact division below relies on.
bool before(const Term& a, const Term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  for (size_t i = 0; i < a.factors.size(); ++i)
    if (!sameAtom(a.factors[i], b.factors[i])) return a.factors[i]->text < b.factors[i]->text;
  return false;
}

Terms normalised(Terms terms) {
  std::sort(terms.begin(), terms.end(), before);
  Terms out;
  for (Term& term : terms) {
    term.coefficient = std::max(term.coefficient, -kMax);  // symmetric, so that it can be negated
    if (!out.empty() && sameFactors(out.back(), term)) {
      out.back().coefficient = std::max(saturatingAdd(out.back().coefficient, term.coefficient), -kMax);
    } else {
      if (!out.empty() && out.back().coefficient == 0) out.pop_back();
      out.push_back(std::move(term));
    }
  }
  if (!out.empty() && out.back().coefficient == 0) out.pop_back();
  return out;
}

Terms scaled(Terms terms, int64_t factor) {
  for (Term& term : terms) term.coefficient = saturatingMul(term.coefficient, factor);
  return normalised(std::move(terms));
}
Terms sum(Terms a, const Terms& b) {
  a.insert(a.end(), b.begin(), b.end());
  return normalised(std::move(a));
}
Term product(const Term& a, const Term& b) {
  Term out;
  out.coefficient = saturatingMul(a.coefficient, b.coefficient);
  std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(), std::back_inserter(out.factors),
             [](const AtomPtr& x, const AtomPtr& y) { return x->text < y->text; });
  return out;
}
Terms product(const Terms& a, const Terms& b) {
  Terms out;
  out.reserve(a.size() * b.size());
  for (const Term& x : a)
    for (const Term& y : b) out.push_back(product(x, y));
  return normalised(std::move(out));
}
// Takes the factors of `b` out of those of `a`; false (and `a` unspecified) when they aren't all there.
bool divideFactors(std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  for (const AtomPtr& atom : b) {
    auto at = std::find_if(a.begin(), a.end(), [&](const AtomPtr& x) { return sameAtom(x, atom); });
    if (at == a.end()) return false;
    a.erase(at);
  }
  return true;
}
// The polynomial q with a = q * b, if there is one.
bool divideExactly(Terms a, const Terms& b, Terms& quotient) {
  quotient.clear();
  for (size_t step = 0; !a.empty(); ++step) {
    Term q = a.front();
    if (step == kMaxTerms || q.coefficient % b.front().coefficient != 0 || !divideFactors(q.factors, b.front().factors))
      return false;
    q.coefficient /= b.front().coefficient;
    a = sum(std::move(a), scaled(product({q}, b), -1));
    quotient.push_back(std::move(q));
  }
  quotient = normalised(std::move(quotient));
  return true;
}

bool isPlain(std::string_view text) { return std::all_of(text.begin(), text.end(), isDimNameChar); }

std::string termText(const Term& term, bool leading) {
  int64_t c = term.coefficient;
  std::string out = leading ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
  bool showNumber = term.factors.empty() || (c != 1 && c != -1);
  if (showNumber) out += std::to_string(c < 0 ? -c : c);
  // A lone division needs no parentheses unless something before it would bind to its numerator.
  bool alone = term.factors.size() == 1 && !showNumber && !(leading && c < 0);
  for (size_t i = 0; i < term.factors.size(); ++i) {
    const DimAtom& atom = *term.factors[i];
    if (showNumber || i > 0) out += "*";
    out += atom.kind == AtomKind::FloorDiv && !alone ? "(" + atom.text + ")" : atom.text;
  }
  return out;
}

}  // namespace

struct DimExpr {
  Terms terms;
  std::string text;
  bool nonNegative = false;

  static Terms termsOf(const Dim& d) {
    if (d.expr_) return d.expr_->terms;
    return d.value_ == 0 ? Terms{} : Terms{Term{{}, std::max(d.value_, -kMax)}};
  }
  static std::string operandText(const Dim& d);
  static Dim ofTerms(Terms terms);
  static Dim ofAtom(AtomKind kind, const Dim& a, const Dim& b);
  static Dim ofSymbol(const std::string& name);
  static Dim divide(AtomKind kind, const Dim& a, const Dim& b);
  static Dim divideByNumber(Terms a, int64_t b);
  static Dim extremum(AtomKind kind, const Dim& a, const Dim& b);
  static void collect(AtomKind kind, const Dim& d, std::vector<Dim>& out);
  static Dim substitute(const Dim& d, const SymbolBinding& binding);
};

// As an operand of a division: in parentheses unless it is a single word.
std::string DimExpr::operandText(const Dim& d) {
  bool bare = d.isNonNegative();
  if (d.expr_) {
    const Term& term = d.expr_->terms[0];
    bare = d.expr_->terms.size() == 1 && term.coefficient == 1 && term.factors.size() == 1 &&
           term.factors[0]->kind != AtomKind::FloorDiv;
  }
  return bare ? d.str() : "(" + d.str() + ")";
}

Dim DimExpr::ofTerms(Terms terms) {
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1 && terms[0].factors.empty()) return Dim(terms[0].coefficient);
  auto expr = std::make_shared<DimExpr>();
  expr->nonNegative = true;
  for (const Term& term : terms) {
    expr->text += termText(term, &term == &terms.front());
    expr->nonNegative &= term.coefficient > 0;
    for (const AtomPtr& atom : term.factors) expr->nonNegative &= atom->nonNegative;
  }
  if (terms.size() > kMaxTerms || expr->text.size() > kMaxText)
    return ofSymbol("dim_" + hexDigits(hashText(expr->text)));
  expr->terms = std::move(terms);
  Dim out;
  out.expr_ = std::move(expr);
  return out;
}

Dim DimExpr::ofSymbol(const std::string& name) {
  auto atom = std::make_shared<DimAtom>();
  atom->name = name;
  atom->text = isDimName(name) ? name : quoted(name);
  if (atom->text.size() > kMaxText) atom->text = atom->name = "dim_" + hexDigits(hashText(name));
  return ofTerms({Term{{std::move(atom)}, 1}});
}

Dim DimExpr::ofAtom(AtomKind kind, const Dim& a, const Dim& b) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  bool aOk = a.isNonNegative(), bOk = b.isNonNegative();
  atom->nonNegative = kind == AtomKind::Max ? aOk || bOk : aOk && bOk;
  if (kind == AtomKind::FloorDiv) {
    atom->text = operandText(a) + " / " + operandText(b);
  } else {
    const char* name = kind == AtomKind::CeilDiv ? "ceildiv" : kind == AtomKind::Max ? "max" : "min";
    atom->text = std::string(name) + "(" + a.str() + ", " + b.str() + ")";
  }
  return ofTerms({Term{{std::move(atom)}, 1}});
}

// floor(a / b) for b > 0. Whole multiples of b leave the division: floor((q*b + r) / b) = q + floor(r / b).
Dim DimExpr::divideByNumber(Terms a, int64_t b) {
  Terms whole, rest;
  int64_t common = b;
  for (Term& term : a) {
    Term q = term;
    q.coefficient = floorDivide(term.coefficient, b);
    term.coefficient = floorModulo(term.coefficient, b);
    if (q.coefficient != 0) whole.push_back(std::move(q));
    if (term.coefficient == 0) continue;
    if (!term.factors.empty()) common = std::gcd(common, term.coefficient);
    rest.push_back(std::move(term));
  }
  Dim out = ofTerms(normalised(std::move(whole)));
  if (rest.empty() || (rest.size() == 1 && rest[0].factors.empty())) return out;
  // floor((g*x + c) / (g*b)) = floor((x + floor(c/g)) / b).
  if (common > 1) {
    for (Term& term : rest) term.coefficient = floorDivide(term.coefficient, common);
    rest.erase(std::remove_if(rest.begin(), rest.end(), [](const Term& t) { return t.coefficient == 0; }), rest.end());
    return out + divideByNumber(std::move(rest), b / common);
  }
  // floor((floor(x/n) + s) / b) = floor((x + n*s) / (n*b)).
  auto isDivision = [](const Term& t) {
    return t.factors.size() == 1 && t.coefficient == 1 && t.factors[0]->kind == AtomKind::FloorDiv &&
           t.factors[0]->b.isKnown();
  };
  auto at = std::find_if(rest.begin(), rest.end(), isDivision);
  int64_t divisor = 0;
  if (at != rest.end() && !__builtin_mul_overflow(at->factors[0]->b.value(), b, &divisor)) {
    AtomPtr inner = at->factors[0];
    rest.erase(at);
    return out + divideByNumber(sum(scaled(std::move(rest), inner->b.value()), termsOf(inner->a)), divisor);
  }
  return out + ofAtom(AtomKind::FloorDiv, ofTerms(normalised(std::move(rest))), Dim(b));
}

Dim DimExpr::divide(AtomKind kind, const Dim& a, const Dim& b) {
  bool ceiling = kind == AtomKind::CeilDiv;
  if (b.isKnown() && b.value_ == 0) return Dim(0);
  if (a.isKnown() && b.isKnown()) return ceiling ? ceilDivide(a.value_, b.value_) : floorDivide(a.value_, b.value_);
  if (b.isKnown()) {
    int64_t n = std::max(b.value_, -kMax);
    Terms terms = termsOf(a);
    if (n < 0) {
      terms = scaled(std::move(terms), -1);
      n = -n;
    }
    return divideByNumber(ceiling ? sum(std::move(terms), {Term{{}, n - 1}}) : std::move(terms), n);
  }
  Terms terms = termsOf(a), divisor = termsOf(b), quotient;
  if (divideExactly(terms, divisor, quotient)) return ofTerms(std::move(quotient));
  if (divisor.size() > 1) return ofAtom(kind, a, b);
  if (divisor[0].coefficient < 0) {
    divisor = scaled(std::move(divisor), -1);
    terms = scaled(std::move(terms), -1);
  }
  // One term below the line: whole multiples leave the division, then common factors are cancelled.
  Terms whole, rest;
  for (Term& term : terms) {
    Term q = term;
    if (divideFactors(q.factors, divisor[0].factors)) {
      q.coefficient = floorDivide(term.coefficient, divisor[0].coefficient);
      term.coefficient = floorModulo(term.coefficient, divisor[0].coefficient);
      if (q.coefficient != 0) whole.push_back(std::move(q));
    }
    if (term.coefficient != 0) rest.push_back(std::move(term));
  }
  Dim out = ofTerms(normalised(std::move(whole)));
  if (rest.empty()) return out;
  bool reduced = false;
  int64_t common = divisor[0].coefficient;
  for (const Term& term : rest) common = std::gcd(common, term.coefficient);
  if (common > 1) {
    for (Term& term : rest) term.coefficient /= common;
    divisor[0].coefficient /= common;
    reduced = true;
  }
  for (const AtomPtr& atom : std::vector<AtomPtr>(divisor[0].factors)) {
    auto reducedRest = rest;
    bool inAll = true;
    for (Term& term : reducedRest) inAll = inAll && divideFactors(term.factors, {atom});
    if (!inAll) continue;
    rest = std::move(reducedRest);
    divideFactors(divisor[0].factors, {atom});
    reduced = true;
  }
  Dim numerator = ofTerms(normalised(std::move(rest))), denominator = ofTerms(std::move(divisor));
  return out + (reduced ? divide(kind, numerator, denominator) : ofAtom(kind, numerator, denominator));
}

void DimExpr::collect(AtomKind kind, const Dim& d, std::vector<Dim>& out) {
  if (d.expr_ && d.expr_->terms.size() == 1) {
    const Term& term = d.expr_->terms[0];
    if (term.coefficient == 1 && term.factors.size() == 1 && term.factors[0]->kind == kind) {
      collect(kind, term.factors[0]->a, out);
      collect(kind, term.factors[0]->b, out);
      return;
    }
  }
  out.push_back(d);
}

// Operands are flattened, those that another one makes redundant dropped, the others sorted.
Dim DimExpr::extremum(AtomKind kind, const Dim& a, const Dim& b) {
  bool isMax = kind == AtomKind::Max;
  if (a.isKnown() && b.isKnown()) return isMax ? std::max(a.value_, b.value_) : std::min(a.value_, b.value_);
  std::vector<Dim> operands, kept;
  collect(kind, a, operands);
  collect(kind, b, operands);
  for (const Dim& d : operands) {
    auto covers = [&](const Dim& x, const Dim& y) { return (isMax ? x - y : y - x).isNonNegative(); };
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& k) { return covers(k, d); })) continue;
    kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const Dim& k) { return covers(d, k); }), kept.end());
    kept.push_back(d);
  }
  std::sort(kept.begin(), kept.end(), [](const Dim& x, const Dim& y) { return x.str() < y.str(); });
  Dim out = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) out = ofAtom(kind, out, kept[i]);
  return out;
}

Dim DimExpr::substitute(const Dim& d, const SymbolBinding& binding) {
  if (d.isKnown()) return d;
  Dim out;
  for (const Term& term : d.expr_->terms) {
    Dim value = term.coefficient;
    for (const AtomPtr& atom : term.factors) {
      if (atom->kind == AtomKind::Symbol) {
        auto bound = binding.find(atom->name);
        value = value * (bound != binding.end() ? Dim(bound->second) : ofTerms({Term{{atom}, 1}}));
        continue;
      }
      Dim a = substitute(atom->a, binding), b = substitute(atom->b, binding);
      bool division = atom->kind == AtomKind::FloorDiv || atom->kind == AtomKind::CeilDiv;
      value = value * (division ? divide(atom->kind, a, b) : extremum(atom->kind, a, b));
    }
    out = out + value;
  }
  return out;
}

bool isDimNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool isDimName(std::string_view text) {
  return !text.empty() && isPlain(text) && !(text[0] >= '0' && text[0] <= '9') && text[0] != '.' && text != "max" &&
         text != "min" && text != "ceildiv" && text != "scalar";
}

Dim Dim::symbol(const std::string& name) { return DimExpr::ofSymbol(name); }

int64_t Dim::value() const {
  LOCUTION_CHECK(isKnown()) << "the dim " << str() << " isn't a number";
  return value_;
}
bool Dim::isNonNegative() const { return expr_ ? expr_->nonNegative : value_ >= 0; }
std::string Dim::str() const { return expr_ ? expr_->text : std::to_string(value_); }
Dim Dim::substitute(const SymbolBinding& binding) const { return DimExpr::substitute(*this, binding); }
bool Dim::operator==(const Dim& other) const {
  if (!expr_ || !other.expr_) return !expr_ && !other.expr_ && value_ == other.value_;
  return expr_ == other.expr_ || expr_->text == other.expr_->text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.isKnown() && b.isKnown()) return saturatingAdd(a.value_, b.value_);
  return DimExpr::ofTerms(sum(DimExpr::termsOf(a), DimExpr::termsOf(b)));
}
Dim operator-(const Dim& a, const Dim& b) {
  if (a.isKnown() && b.isKnown()) return saturatingSub(a.value_, b.value_);
  return DimExpr::ofTerms(sum(DimExpr::termsOf(a), scaled(DimExpr::termsOf(b), -1)));
}
Dim operator*(const Dim& a, const Dim& b) {
  if (a.isKnown() && b.isKnown()) return saturatingMul(a.value_, b.value_);
  return DimExpr::ofTerms(product(DimExpr::termsOf(a), DimExpr::termsOf(b)));
}
Dim floorDiv(const Dim& a, const Dim& b) {
  LOCUTION_CHECK(!b.isKnown() || b.value() != 0) << "division of the dim " << a.str() << " by zero";
  return DimExpr::divide(AtomKind::FloorDiv, a, b);
}
Dim ceilDiv(const Dim& a, const Dim& b) {
  LOCUTION_CHECK(!b.isKnown() || b.value() != 0) << "division of the dim " << a.str() << " by zero";
  return DimExpr::divide(AtomKind::CeilDiv, a, b);
}
Dim maxDim(const Dim& a, const Dim& b) { return DimExpr::extremum(AtomKind::Max, a, b); }
Dim minDim(const Dim& a, const Dim& b) { return DimExpr::extremum(AtomKind::Min, a, b); }

}  // namespace locution

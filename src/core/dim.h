// One extent of a shape: a number, or an expression over named symbols ("batch", "2*height + 1").
// Invariant: an expression without symbols is always folded to a number, and every expression is kept as a polynomial in
// canonical order over atoms (symbols, divisions, maxima, minima), so that equal texts mean equal dims.
// A symbol stands for an extent, so it is at least 0; where it divides, it isn't 0. Numbers saturate instead of overflowing;
// an expression too large to keep becomes an opaque symbol of which nothing is known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace locution {

struct DimExpr;

/// Values for symbols: what a dynamic model is specialised to.
using SymbolBinding = std::map<std::string, int64_t>;

class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT: numbers are dims
  static Dim symbol(const std::string& name);

  bool isKnown() const { return expr_ == nullptr; }
  /// The number; the dim must be known.
  int64_t value() const;
  /// At least 0 whatever the symbols stand for; false when that can't be told.
  bool isNonNegative() const;
  /// "3", "batch", "(2*h + 1) / 3"; `/` rounds down. `parseDim` (type_text.h) reads it back.
  std::string str() const;
  /// With the symbols of `binding` replaced; others stay. A division by a symbol bound to 0 gives 0.
  Dim substitute(const SymbolBinding& binding) const;
  bool operator==(const Dim& other) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Towards minus infinity (ceilDiv: plus infinity). Division by a known zero is the caller's error.
  friend Dim floorDiv(const Dim& a, const Dim& b);
  friend Dim ceilDiv(const Dim& a, const Dim& b);
  friend Dim maxDim(const Dim& a, const Dim& b);
  friend Dim minDim(const Dim& a, const Dim& b);

 private:
  friend struct DimExpr;
  int64_t value_ = 0;
  // Shared because expressions are immutable and every copy of a shape would otherwise clone the tree.
  std::shared_ptr<const DimExpr> expr_;
};

/// Symbols of such names are printed bare, all others in quotes.
bool isDimName(std::string_view text);
bool isDimNameChar(char c);

}  // namespace locution

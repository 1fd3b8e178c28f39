#include "ops/power.h"

#include <cmath>
#include <limits>

#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

Expr imm(const Expr& like, double value) { return loop::constant(like->type.dtype, value); }

/// x ^ 0.5: unlike sqrt, +0 for -0 and inf for -inf.
Expr squareRoot(const Expr& x) {
  return loop::select(eq(x, imm(x, -INFINITY)), imm(x, INFINITY), loop::call("sqrt", {x + imm(x, 0.0)}));
}

Expr integerPower(const Expr& base, const Expr& exponent) {
  DType t = base->type.dtype;
  Expr one = loop::constant(t, 1), zero = loop::constant(t, 0);
  Expr e = loop::cast(DType::I64, exponent);
  return shared(base, [&](const Expr& b) {
    return shared(e, [&](const Expr& n) {
      Expr odd = loop::ne(loop::binary(loop::BinaryOp::And, n, loop::index(1)), loop::index(0));
      // Six squarings reach every exponent below 64; above, whatever isn't 0, 1 or -1 has overflowed.
      std::function<Expr(const Expr&, const Expr&, int)> step = [&](const Expr& square, const Expr& product,
                                                                    int bit) -> Expr {
        Expr set = loop::ne(loop::binary(loop::BinaryOp::And, n, loop::index(int64_t{1} << bit)), loop::index(0));
        Expr next = loop::select(set, product * square, product);
        if (bit == 5) return next;
        return shared(square * square,
                      [&](const Expr& s) { return shared(next, [&](const Expr& p) { return step(s, p, bit + 1); }); });
      };
      Expr usual = step(b, one, 0);
      Expr out = loop::select(lt(n, loop::index(0)), zero, usual);
      out = loop::select(eq(b, one), one, out);
      if (isSignedInt(t)) {
        Expr minus = loop::constant(t, -1);
        out = loop::select(eq(b, minus), loop::select(odd, minus, one), out);
      }
      return loop::select(logicalAnd(eq(b, zero), loop::ne(n, loop::index(0))), zero, out);
    });
  });
}

}  // namespace

Expr power(const Expr& base, const Expr& exponent) {
  DType b = base->type.dtype, e = exponent->type.dtype;
  if (isFloat(b)) {
    if (e == DType::F64 && b != DType::F64)
      return loop::cast(b, loop::call("pow", {loop::cast(DType::F64, base), exponent}));
    return loop::call("pow", {base, loop::cast(b, exponent)});
  }
  if (isInteger(e)) return integerPower(base, exponent);
  return loop::cast(b, loop::call("pow", {loop::cast(DType::F64, base), loop::cast(DType::F64, exponent)}));
}

Expr constantPower(const Expr& base, double exponent) {
  if (exponent == 0) return imm(base, 1);
  bool known = exponent == 1 || exponent == 2 || exponent == 3 || exponent == 4;
  if (isFloat(base->type.dtype))
    for (double e : {-2.0, -1.0, -0.5, 0.5, 0.75, 1.5}) known = known || exponent == e;
  if (!known) return nullptr;
  return shared(base, [&](const Expr& x) -> Expr {
    if (exponent == 1) return x;
    if (exponent == 2) return x * x;
    if (exponent == 3) return x * x * x;
    if (exponent == 4) return shared(x * x, [](const Expr& s) { return s * s; });
    if (exponent == -1) return imm(x, 1) / x;
    if (exponent == -2) return shared(imm(x, 1) / x, [](const Expr& r) { return r * r; });
    if (exponent == -0.5) return imm(x, 1) / squareRoot(x);
    if (exponent == 0.5) return squareRoot(x);
    return shared(squareRoot(x), [&](const Expr& r) {
      if (exponent == 0.75) return r * loop::call("sqrt", {r});
      return loop::select(eq(x, imm(x, -INFINITY)), r, (x + imm(x, 0.0)) * r);
    });
  });
}

}  // namespace locution::ops

// Powers: of floats by the C library's rules, of integers by repeated squaring.
#pragma once

#include "loop/build.h"

namespace locution::ops {

/// base ^ exponent, of base's type. Float bases: pow(). Integer bases: wraps; a negative exponent gives the truncated quotient
/// (0, 1 or -1), and 0 for a base of 0; a float exponent computes in float64.
loop::Expr power(const loop::Expr& base, const loop::Expr& exponent);
/// base ^ exponent without a library call, equal to pow() up to rounding and for every special value; null when there is no such
/// form.
loop::Expr constantPower(const loop::Expr& base, double exponent);

}  // namespace locution::ops

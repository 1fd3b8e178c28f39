// Transcendental functions as arithmetic, for targets without library calls.
#pragma once

#include "loop/compute.h"

namespace locution::codegen {

/// Replaces calls of the Vector group (exp, log, tanh, erf, sigmoid) on float32, float16 and bfloat16 by polynomials; float64
/// sigmoid by its definition. Largest error in float32: 2 units in the last place, over all inputs; NaN, infinities and denormals
/// as the C library gives them. Other calls stay.
loop::Function expandMath(const loop::Function& f);

}  // namespace locution::codegen

// Conditions leave the unrolled and vector loops that they don't depend on, so that a tile takes one branch and not one a vector:
//     unrolled j { vector v { acc[j, v] = max(acc[j, v], select(c, x[j, v], -inf)) } }
//     ->  if c { unrolled j { vector v { acc[j, v] = max(acc[j, v], x[j, v]) } } }
#pragma once

#include "loop/expr.h"

namespace locution::schedule {

loop::Stmt hoistConditions(const loop::Stmt& s);

}  // namespace locution::schedule

// Register and stack buffers that are only touched in whole vectors get vector elements:
//     register acc: float32[4, 32]; acc[r, ramp(16*j, 1, 16)]  ->  register acc: float32x16[4, 2]; acc[r, j]
// so that code generation keeps each element in one vector register.
#pragma once

#include "loop/expr.h"

namespace locution::loop {

Stmt promoteVectorBuffers(const Stmt& s);

}  // namespace locution::loop

// Declarations of the functions that ops.inc names.
#pragma once

#include "ops/op.h"

namespace locution::ops {

#define OP(Name, pattern, inferFunction, computeFunction) \
  Status inferFunction(InferContext&);                    \
  Status computeFunction(ComputeContext&);
#define OP_NO_COMPUTE(Name, pattern, inferFunction) Status inferFunction(InferContext&);
#include "ops/ops.inc"
#undef OP
#undef OP_NO_COMPUTE

}  // namespace locution::ops

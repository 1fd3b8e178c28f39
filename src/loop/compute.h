// What a kernel computes, before any schedule: tensors defined point by point ("stages"), each optionally reducing over further
// axes. Ops give stages (ops/op.h), fusion inlines and joins them, a Plan turns them into loops (schedule/).
//
//     out[axes] = epilogue(acc),  acc = combine over reduce axes of body(axes, reduce)        (combiner != None)
//     out[axes] = epilogue(acc),  acc = body(axes)                                            (combiner == None)
//
// A scan stores the running accumulator: its last axis is both an axis and the order of combination.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loop/build.h"
#include "loop/expr.h"

namespace locution::loop {

struct Axis {
  VarRef var;
  int64_t extent = 0;
};

struct Stage {
  BufferRef out;
  std::vector<Axis> axes;  ///< one for each dim of `out`, in order; store goes to out[axes]
  std::vector<Axis> reduce;
  Combiner combiner = Combiner::None;
  Expr body;          ///< of `accumulator` type
  VarRef acc;         ///< stands for the reduced value in `epilogue`; null when epilogue is null
  Expr epilogue;      ///< null: the accumulator itself
  bool scan = false;  ///< the last axis is scanned in order (see above); `reduce` is empty
  bool scanExclusive = false, scanReverse = false;
};

/// A kernel: stages in order (each may read the ones before it), or `raw` loops for what has no such form (scatter ...).
struct Computation {
  std::string name;
  std::vector<BufferRef> inputs;  ///< read, defined outside
  std::vector<BufferRef>
      constants;                   ///< those of `inputs` whose contents are known at compile time: packing them is free
  std::vector<BufferRef> outputs;  ///< written; the rest of the stages' buffers are temporaries of the kernel
  std::vector<Stage> stages;
  Stmt raw;  ///< if set, `stages` is empty
};

/// A loop nest ready for a target: `params` are handed as pointers in this order; the outermost loop of `body` may be
/// Parallel, in which case the caller runs any partition of its range.
struct Function {
  std::string name;
  std::vector<BufferRef> params;
  size_t outputCount = 0;  ///< the last `outputCount` params are written
  Stmt body;
  int64_t parallelExtent = 1;  ///< of the outermost loop when it is Parallel, else 1
};

}  // namespace locution::loop

// The oracle: runs a Function on tensors, one node at a time, checking every index. Defines what loop IR means.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::loop {

struct InterpretOptions {
  bool float64 =
      false;  ///< compute float32 in double (accumulators and temporaries too), round only at stores to params
  int64_t maxSteps = -1;  ///< an error past that many stores; -1: no limit
};

/// Runs `f` on `params` (in the order of f.params; the last f.outputCount are written). An index out of a buffer's extents is an
/// error that names buffer, index and extent; so is a tensor whose dtype or dims differ from its buffer's.
Status interpret(const Function& f, std::vector<Tensor>& params, const InterpretOptions& options = {});

}  // namespace locution::loop

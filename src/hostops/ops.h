// Declarations of the functions that hostops.inc names.
#pragma once

#include <vector>

#include "hostops/host_op.h"

namespace locution::hostops {

#define HOSTOP(Name, minInputs, maxInputs, maxOutputs, first, function) \
  Status function(const HostCall& call, std::vector<HostValue>& outputs);
#include "hostops/hostops.inc"
#undef HOSTOP

}  // namespace locution::hostops

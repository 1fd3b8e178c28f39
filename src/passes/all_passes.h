// Declarations of the functions that passes.inc names.
#pragma once

#include "passes/pass.h"

namespace locution::passes {

#define PASS(name, function, summary) Status function(graph::Patch&, PassContext&);
#include "passes/passes.inc"
#undef PASS

}  // namespace locution::passes

// Fusion of stages, before any plan: what can be computed in place of being stored is.
#pragma once

#include <vector>

#include "core/target.h"
#include "loop/compute.h"

namespace locution::schedule {

/// Inlines point-by-point stages into their readers (when one load reads them, or they are cheap), and stages that read a reduction
/// at its own index into its epilogue. The meaning stays; outputs are kept.
loop::Computation fuseStages(const loop::Computation& computation);

/// Cuts a computation into kernels: each has one stage, or several that share leading axes worth running in common. Temporaries
/// that cross a cut become outputs of one and inputs of the next. In order of execution.
std::vector<loop::Computation> cutKernels(const loop::Computation& computation, const TargetSpec& target = {});

/// Whether a kernel of one stage may write its output over `input`: it reads each element of `input` (of the output's shape and element
/// size) just before it writes the same element, and nowhere else.
bool mayWriteOver(const loop::Computation& kernel, const loop::BufferRef& input);

/// The number of leading axes that all stages of a kernel have in common, reading each other's temporaries at exactly those.
int64_t sharedAxes(const loop::Computation& computation);

/// The parts of a condition that must all hold, appended to `out`.
void conjuncts(const loop::Expr& condition, std::vector<loop::Expr>* out);

}  // namespace locution::schedule

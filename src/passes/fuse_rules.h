// Which nodes go into one kernel.
#pragma once

#include "core/target.h"
#include "passes/fuse_groups.h"

namespace locution::passes {

/// Merges the groups of a region, one node each at first, into those that become kernels. Contractions first, then reductions,
/// then what is left of elementwise and injective nodes.
void formGroups(const Graph& graph, FuseGroups& groups, const TargetSpec& target);

/// What a kernel is named after: its contraction, else its (first) reduction, else its last node.
int anchorOf(const FuseGroups& groups, int group);

}  // namespace locution::passes

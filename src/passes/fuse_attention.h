// Attention as one kernel: softmax(q k^T ...) v with what scales and masks the scores, and the views that its operands are read through.
#pragma once

#include "passes/fuse_groups.h"

namespace locution::passes {

/// Merges the groups of each attention in the region. Before all other rules: they would take its products apart.
void formAttention(const Graph& graph, FuseGroups& groups);

}  // namespace locution::passes

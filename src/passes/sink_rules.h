// What each op becomes when it computes on data below a transpose.
#pragma once

#include "passes/transpose_sinker.h"

namespace locution::passes {

/// Rewrites `node`, some input of which is a transpose by `perm`, to read what lies below; false when its op has no rule or the rule
/// doesn't apply.
bool sinkByRule(TransposeSinker& sinker, NodeId node, const Ints& perm);

}  // namespace locution::passes

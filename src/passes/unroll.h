// Loops that run a number of times that is known become their iterations, one after the other.
#pragma once

#include <optional>
#include <vector>

#include "passes/rewrite.h"

namespace locution::passes {

/// A Loop with a constant trip count whose condition stays true, or a Scan over axes of known extent: the iterations are put where it
/// stands, and it goes. Returns their nodes, types still to be inferred; nothing for any other node, and when that would be
/// thousands of nodes.
///     %y = Loop(2, true, %x) region { input %i, %c, %p; %q = Mul(%p, %p); output %c, %q }   ->   %q = Mul(%x, %x); %y = Mul(%q, %q)
std::optional<std::vector<NodeId>> unrollLoop(Patch& patch, NodeId node);

}  // namespace locution::passes

// Projections (products with constant weights) whose result is taken apart into heads: they can store it in the order that the heads
// want, so that no transpose remains.
#pragma once

#include "passes/rewrite.h"

namespace locution::passes {

/// Made by a product with constant weights, perhaps with a constant added, that nobody else reads.
bool isProjection(const Graph& graph, ValueId value);
/// A transpose that leaves the last dim where it is.
bool keepsLastDim(const Graph& graph, const Node& node);
/// The value that a chain of reshapes starts from, each read by the next one only.
ValueId throughReshapes(const Graph& graph, ValueId value);

/// Keys of a projection are transposed for its store, then for the product: one Transpose becomes two.
///     Transpose(Reshape(projection)) {perm = [0, 2, 3, 1]}   ->   Transpose {0, 1, 3, 2} of Transpose {0, 2, 1, 3}
void splitKeyTransposes(Patch& patch, RegionId region);

}  // namespace locution::passes

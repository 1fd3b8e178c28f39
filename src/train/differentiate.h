// Reverse-mode differentiation as a transformation of the graph: for a scalar and some of the values it is computed from, appends the
// nodes that compute its gradients. What an operator's gradient is the operator says (ops/gradient.h); this walks.
//     %y = Mul(%w, %x); %l = ReduceSum(%y)   ->   ... %g = Expand(1, dims of %y); %gw = Mul(%g, %x)
#pragma once

#include <vector>

#include "graph/patch.h"
#include "support/status.h"

namespace locution::train {

/// The gradient of `loss` with respect to each of `wanted`, of its type. What the loss doesn't depend on gets zeros.
/// Needs: types of all values (infer-shapes), static ones where gradients flow. Errors: a loss that isn't one float; everything on the
/// way that has no gradient, all named in one message.
Result<std::vector<graph::ValueId>> differentiate(graph::Patch& patch, graph::ValueId loss,
                                                  const std::vector<graph::ValueId>& wanted);

}  // namespace locution::train

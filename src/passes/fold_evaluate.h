// One node on constants: how constant folding computes.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "passes/pass.h"

namespace locution::passes {

/// float32 Add, Sub, Mul, Div of two constants with broadcasting, as a plain loop at memory speed; nullopt for anything else.
std::optional<Tensor> foldBinary(std::string_view op, const Tensor& a, const Tensor& b);

/// The outputs (invalid tensors where the node leaves one out) of a node whose inputs are all constant and whose output types are
/// inferred. Nothing is copied where the bytes stay the same. Errors: what can't be computed at compile time, with the reason.
Result<std::vector<Tensor>> evaluateNode(const graph::Graph& graph, graph::NodeId node, const PassContext& context);

}  // namespace locution::passes

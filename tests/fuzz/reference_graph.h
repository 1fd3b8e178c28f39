// What a graph computes, by the loop interpreter on each node's unscheduled, unfused loops; and how far a result may be off. Floats
// that vary in their last bits (another order of a sum, another exp) can grow to any difference in what follows: a runs of the same
// graph with such bits shaken tells how far, element by element.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace locution::fuzz {

/// The main outputs. `shake` > 0: floats that arithmetic reads are off by up to so many roundings of their type, drawn from `seed`.
/// Error: an index out of range, where a compiled run has to refuse as well.
Result<std::vector<Tensor>> runReference(const graph::Graph& graph, const std::map<std::string, Tensor>& inputs,
                                         double shake = 0, uint64_t seed = 0);

/// Empty when `have` is what the graph computes: else the first output and element that is off.
std::string differenceFromReference(const graph::Graph& graph, const std::map<std::string, Tensor>& inputs,
                                    const std::vector<Tensor>& want, const std::vector<Tensor>& have, uint64_t seed);

}  // namespace locution::fuzz

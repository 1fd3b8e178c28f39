// Fits a model to the shapes it will be run with, before any pass: a model is compiled for static shapes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "graph/patch.h"
#include "support/status.h"

namespace locution::passes {

/// Gives main inputs the shapes named in `inputShapes` (of static dims) and those of the tensors in `inputValues`. A symbol is bound
/// once, for all inputs and every type in the graph. An input among `shapeInputs` whose value is given becomes that constant: it stays
/// an input, which nobody reads (`frozen`, when not null, takes these). Errors name the input, the dim, what the model wants and
/// what was given: unknown input, wrong rank, dtype or extent, a symbol given two numbers.
Status specialise(graph::Patch& patch, const std::map<std::string, Shape>& inputShapes,
                  const std::map<std::string, Tensor>& inputValues, std::vector<graph::ValueId>* frozen = nullptr);

/// Inputs whose values the op needs when it is compiled, unless it is a view (needed_inputs.inc); nullptr: none.
const std::vector<size_t>* neededInputs(const std::string& op);

/// Main inputs whose values decide shapes (or are otherwise needed to compile: axes, pads, scales) through any chain of nodes: they
/// have to be given as values. In the order of the model's inputs.
std::vector<graph::ValueId> shapeInputs(const graph::Graph& graph);

/// Dims of main inputs that are still dynamic.
struct DynamicDim {
  graph::ValueId input;
  int64_t axis = -1;   ///< -1: not even the rank is known
  std::string symbol;  ///< its name as the file has it, "" when unranked
};
std::vector<DynamicDim> dynamicDims(const graph::Graph& graph);
/// ok when there are none; else one message that names each: "input 'x': dim 0 ('batch') is dynamic; give --shape x=BATCHx3"
Status needStaticInputs(const graph::Graph& graph);

}  // namespace locution::passes

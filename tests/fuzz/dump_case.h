// A case on disk, for a second implementation: a line for each value and node in `case.txt`, an .npy file for each tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace locution::fuzz {

/// Lines of `case.txt`: "input v0 float32", "constant v1 int64", "node OP|v0,,v1|v2|axis=i:1|to=s:int8", "output v2"; what stands in
/// v0.npy and v1.npy are values, in v2.npy what Locution made of them. Kinds of attributes: i, f, s, I, F, S, and t for a file.
Status dumpCase(const std::string& folder, const graph::Graph& graph, const std::map<std::string, Tensor>& inputs,
                const std::vector<Tensor>& outputs);

}  // namespace locution::fuzz

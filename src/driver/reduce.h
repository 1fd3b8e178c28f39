// Delta debugging of graphs: the smallest one that still shows a failure. `reduceGraph` knows nothing of what fails: it asks.
// A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input (2002).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/tensor.h"
#include "driver/options.h"
#include "driver/verify_model.h"
#include "graph/graph.h"
#include "support/status.h"

namespace locution::driver {

/// Whether a candidate, all of whose types are inferred, still fails.
using StillFails = std::function<bool(const graph::Graph&)>;

struct ReduceStats {
  int tried = 0, kept = 0;
};

/// `graph` has inferred types and fails. Candidates have fewer outputs, nodes, attributes and constants, or smaller extents: a node
/// goes when its outputs become inputs of the same type or one of its own inputs takes their place. Deterministic; ends when no
/// single step is left that keeps the failure. `onStep` is told after each candidate, and stops the search by returning false.
graph::Graph reduceGraph(graph::Graph graph, const StillFails& stillFails,
                         const std::function<bool(const graph::Graph&, const ReduceStats&)>& onStep = {});

/// How a graph fails.
struct Failure {
  enum class Kind { None, Off, Crash, Hang, Refused } kind = Kind::None;
  std::string text;  ///< the kernel and its difference, the signal, the failed check
};
/// Compiles and verifies the graph in a child process of at most `seconds`. Refused (a message a user can mend, such as an operator
/// that isn't supported) is no failure of ours.
Failure failureOf(const graph::Graph& graph, const CompileOptions& options, const std::map<std::string, Tensor>& inputs,
                  const MakeInput& makeInput, uint64_t seed, unsigned seconds);

}  // namespace locution::driver

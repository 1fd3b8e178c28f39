// Graph passes: each is a function on a Graph that edits it through a Patch. The list is passes.inc; the order in which the driver
// runs them is driver/pipeline.cpp. `runPass` is the one wrapper: timing, verification, dumps, "(unchanged)", disabling by name.
#pragma once

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/target.h"
#include "core/tensor.h"
#include "graph/graph.h"
#include "graph/patch.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::passes {

/// Runs a Computation on tensors: the interpreter for small work, compiled code (handed in by the driver) for large.
/// Outputs in the order of computation.outputs.
using Evaluator =
    std::function<Result<std::vector<Tensor>>(const loop::Computation&, const std::vector<Tensor>& inputs)>;

struct PassContext {
  const TargetSpec* target = nullptr;
  Evaluator evaluate;
  /// Folding makes no constant larger than this many bytes, unless it is not larger than the constants it is made of.
  int64_t foldCapBytes = int64_t{64} << 20;
  std::vector<std::string> warnings;
};

struct PassDef {
  std::string_view name;
  std::string_view summary;
  Status (*run)(graph::Patch&, PassContext&);
};

const std::vector<PassDef>& allPasses();
const PassDef* findPass(std::string_view name);

struct PassTiming {
  std::string name;
  double seconds = 0;
  int edits = 0;
};

struct RunOptions {
  std::set<std::string, std::less<>> disabled;
  std::set<std::string, std::less<>> dumpAfter;  ///< "all" dumps after each
  std::ostream* dump = nullptr;
  bool verify = true;
  std::vector<PassTiming>* timings = nullptr;
};

/// Runs the pass under a CheckScope, verifies the graph after it (a broken invariant is our bug), prints the dump.
Status runPass(const PassDef& pass, graph::Graph& graph, PassContext& context, const RunOptions& options);

}  // namespace locution::passes

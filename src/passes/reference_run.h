// Runs a graph in the loop IR's interpreter, node by node: what passes must not change. Header only, for tests.
#pragma once

#include <map>
#include <vector>

#include "graph/graph.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "ops/contexts.h"

namespace locution::passes {

class ReferenceRun {
 public:
  explicit ReferenceRun(const graph::Graph& graph) : graph_(graph) {}

  /// Inputs and outputs in the order of the main region's. Kernels are run node by node.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    values_.clear();
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.main().inputs[i]] = inputs[i];
    LOCUTION_RETURN_IF_ERROR(region(graph_.mainRegion()));
    std::vector<Tensor> out;
    for (graph::ValueId v : graph_.main().outputs) out.push_back(at(v));
    return out;
  }

 private:
  Tensor at(graph::ValueId v) const {
    if (const Tensor* t = graph_.constant(v)) return *t;
    auto found = values_.find(v);
    LOCUTION_CHECK(found != values_.end()) << "%" << graph_.value(v).name << " isn't computed yet";
    return found->second;
  }

  Status region(graph::RegionId id) {
    for (graph::NodeId n : graph_.region(id).nodes) {
      const graph::Node& node = graph_.node(n);
      if (node.op == "Kernel") {
        LOCUTION_RETURN_IF_ERROR(region(node.regions[0]));
        const auto& inner = graph_.region(node.regions[0]).outputs;
        for (size_t i = 0; i < inner.size(); ++i) values_[node.outputs[i]] = at(inner[i]);
        continue;
      }
      Status s = one(n);
      if (!s.isOk()) return s.withContext(graph::describe(graph_, n));
    }
    return Status::ok();
  }

  Status one(graph::NodeId n) {
    LOCUTION_ASSIGN_OR_RETURN(ops::NodeComputation loops, ops::computeNodeWithValues(graph_, n));
    std::vector<Tensor> params;
    for (graph::ValueId v : loops.inputs) params.push_back(at(v));
    for (const loop::BufferRef& b : loops.computation.outputs) params.emplace_back(b->element.dtype, loop::extents(*b));
    LOCUTION_RETURN_IF_ERROR(loop::interpret(loop::naiveLoops(loops.computation), params));
    for (size_t i = 0; i < loops.outputs.size(); ++i) values_[loops.outputs[i]] = params[loops.inputs.size() + i];
    return Status::ok();
  }

  const graph::Graph& graph_;
  std::map<graph::ValueId, Tensor> values_;
};

}  // namespace locution::passes

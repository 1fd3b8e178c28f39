// THE ordered list of graph passes.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "passes/pass.h"
#include "support/status.h"

namespace locution::driver {

struct PipelineStep {
  std::string_view pass;
  std::string_view whyHere;
};
const std::vector<PipelineStep>& pipeline();

/// Runs the list on `graph`.
Status runPipeline(graph::Graph& graph, passes::PassContext& context, const passes::RunOptions& options);

}  // namespace locution::driver

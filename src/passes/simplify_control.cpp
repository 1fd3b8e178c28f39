// Branches whose condition is known.
#include <algorithm>

#include "passes/simplify_rules.h"

namespace locution::passes {
namespace {

/// The nodes of the branch that is taken move to where the If stands.
void decidedIf(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  std::optional<double> condition = splatOf(graph, node.input(0));
  if (!condition || node.regions.size() != 2) return;
  const RegionId branch = node.regions[*condition != 0 ? 0 : 1], parent = node.parent;
  const std::vector<NodeId> moved = graph.region(branch).nodes;
  std::vector<NodeId> order;
  for (NodeId n : graph.region(parent).nodes) {
    if (n == id) order.insert(order.end(), moved.begin(), moved.end());
    order.push_back(n);
  }
  for (NodeId n : moved) patch.moveToEnd(n, parent);
  patch.reorder(parent, std::move(order));
  const std::vector<ValueId> results = graph.region(branch).outputs, outputs = node.outputs;
  for (size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
    if (!outputs[i].isValid()) continue;
    ValueId result = results[i];
    if (const Tensor* t = graph.constant(result)) result = patch.addConstant(graph.value(outputs[i]).name, *t, parent);
    patch.replaceUses(outputs[i], result);
  }
  patch.remove(id);
}

}  // namespace

const std::vector<SimplifyRule>& controlRules() {
  static const std::vector<SimplifyRule> kRules = {{"If", decidedIf}};
  return kRules;
}

}  // namespace locution::passes

// dce: what nobody uses goes: nodes, second outputs (MaxPool's indices, Dropout's mask), constants.
// Needs: nothing. Gives: every node has a used output, every constant a user.
//     %y, %i = MaxPool(%x); output %y   ->   %y, _ = MaxPool(%x); output %y
#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {

Status eliminateDeadCode(Patch& patch, PassContext&) {
  const Graph& graph = patch.graph();
  patch.removeDead();
  graph.forEachNode([&](NodeId id) {
    const Node& node = graph.node(id);
    // The outputs of a node with regions mirror those of its regions.
    if (node.outputs.size() < 2 || !node.regions.empty()) return;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i].isValid() && !graph.isUsed(node.outputs[i])) patch.dropOutput(id, i);
  });
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes

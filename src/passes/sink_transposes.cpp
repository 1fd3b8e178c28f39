// sink-transposes: a transpose moves down a chain of ops that work on any order of dims, if another transpose waits at its end.
// Needs: types. Gives: no two transposes in a row, nor with only such ops between them.
//     %a = Transpose(%x); %b = Relu(%a); %y = Transpose(%b)   ->   %y = Relu(%x)        (inverse permutations)
#include "passes/all_passes.h"
#include "passes/transpose_sinker.h"

namespace locution::passes {
namespace {

constexpr int kMaxChain = 24;

/// One input, however often, decides about the transpose; the others are constants.
bool hasOneVariable(const Graph& graph, const Node& node) {
  ValueId variable;
  for (ValueId v : node.inputs) {
    if (!v.isValid() || graph.value(v).isConstant()) continue;
    if (variable.isValid() && v != variable) return false;
    variable = v;
  }
  return variable.isValid();
}

/// Following the only reader of each output from `node` on, a Transpose comes before anything that may not let one through.
bool leadsToTranspose(const Graph& graph, NodeId id) {
  for (int step = 0; step < kMaxChain; ++step) {
    const Node& node = graph.node(id);
    if (node.op == "Transpose") return true;
    const ops::Pattern pattern = patternOf(node);
    bool passes = pattern == ops::Pattern::Elementwise || pattern == ops::Pattern::Injective ||
                  pattern == ops::Pattern::Alias || node.op.starts_with("Reduce") || node.op == "Softmax";
    if (!passes || node.outputs.size() != 1 || !hasOneVariable(graph, node)) return false;
    id = soleUser(graph, node.outputs[0]);
    if (!id.isValid()) return false;
  }
  return false;
}

}  // namespace

Status sinkTransposes(Patch& patch, PassContext&) {
  const Graph& graph = patch.graph();
  TransposeSinker sinker(patch);
  graph.forEachNode([&](NodeId id) {
    const Node& node = graph.node(id);
    bool readsTranspose = false;
    for (ValueId v : node.inputs) readsTranspose = readsTranspose || producerIs(graph, v, "Transpose").isValid();
    if (readsTranspose && (node.op == "Transpose" || leadsToTranspose(graph, id))) sinker.sink(id);
  });
  patch.removeDead();
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes

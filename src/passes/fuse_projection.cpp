#include "passes/fuse_projection.h"

#include <utility>

namespace locution::passes {

bool isProjection(const Graph& graph, ValueId value) {
  constexpr int kMaxSteps = 3;
  for (int step = 0; step < kMaxSteps; ++step) {
    const NodeId p = graph.value(value).producer;
    if (!p.isValid()) return false;
    const Node& node = graph.node(p);
    if (node.op == "MatMul" || node.op == "Gemm") return graph.constant(node.input(1)) != nullptr;
    if (node.op != "Add" || !staticExtents(graph, value)) return false;
    ValueId next;
    for (size_t i = 0; i < 2; ++i)
      if (graph.constant(node.input(1 - i)) && staticExtents(graph, node.input(i)) == staticExtents(graph, value))
        next = node.input(i);
    if (!next.isValid() || soleUser(graph, next) != p) return false;
    value = next;
  }
  return false;
}

bool keepsLastDim(const Graph& graph, const Node& node) {
  if (node.op != "Transpose") return false;
  const Ints perm = permutationOf(graph, node);
  return !perm.empty() && perm.back() == static_cast<int64_t>(perm.size()) - 1;
}

ValueId throughReshapes(const Graph& graph, ValueId value) {
  for (NodeId p = graph.value(value).producer; p.isValid() && patternOf(graph.node(p)) == ops::Pattern::Alias;
       p = graph.value(value).producer) {
    const ValueId next = graph.node(p).input(0);
    if (soleUser(graph, next) != p) break;
    value = next;
  }
  return value;
}

void splitKeyTransposes(Patch& patch, RegionId region) {
  const Graph& graph = patch.graph();
  const std::vector<NodeId> nodes = graph.region(region).nodes;
  for (NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (node.op != "Transpose") continue;
    Ints first = permutationOf(graph, node);
    const size_t rank = first.size();
    const NodeId user = soleUser(graph, node.outputs[0]);
    const ValueId source = node.input(0);
    if (rank < 3 || !user.isValid() || graph.node(user).op != "MatMul" || !staticExtents(graph, source)) continue;
    std::swap(first[rank - 1], first[rank - 2]);
    if (first.back() != static_cast<int64_t>(rank) - 1 || isIdentity(first) || soleUser(graph, source) != id ||
        !isProjection(graph, throughReshapes(graph, source)))
      continue;
    Ints last;
    for (size_t i = 0; i < rank; ++i) last.push_back(static_cast<int64_t>(i));
    std::swap(last[rank - 1], last[rank - 2]);
    ValueType type = graph.type(source);
    type.shape = Shape::of(permuteList(*staticExtents(graph, source), first));
    const ValueId heads = emitBefore(patch, id, id, "Transpose", {source}, {{"perm", first}}, std::move(type));
    patch.setInput(id, 0, heads);
    patch.setAttr(id, "perm", last);
  }
}

}  // namespace locution::passes

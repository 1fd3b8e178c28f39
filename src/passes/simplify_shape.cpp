// Reshapes and transposes: to canonical form, merged, dropped.
#include <algorithm>

#include "passes/simplify_rules.h"

namespace locution::passes {
namespace {

bool isAlias(const Graph& graph, NodeId id) { return patternOf(graph.node(id)) == ops::Pattern::Alias; }

/// Where a chain of aliases and transposes that move unit dims only starts: the same bytes in the same order.
ValueId sameBytes(const Graph& graph, ValueId value) {
  for (NodeId p = graph.value(value).producer; p.isValid(); p = graph.value(value).producer) {
    const Node& node = graph.node(p);
    if (!node.hasInput(0) || graph.type(node.input(0)).dtype != graph.type(value).dtype) break;
    if (node.op == "Transpose") {
      std::optional<Ints> dims = staticExtents(graph, node.input(0));
      if (!dims || !movesUnitDimsOnly(*dims, permutationOf(graph, node))) break;
    } else if (!isAlias(graph, p) || !staticExtents(graph, node.input(0))) {
      break;
    }
    value = node.input(0);
  }
  return value;
}

/// Flatten, Squeeze, Unsqueeze and any Reshape to one Reshape with a constant shape without 0 and -1.
void canonicalReshape(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  if (becomeInput(patch, id, 0)) return;
  const Node& node = graph.node(id);
  ValueId out = node.outputs[0];
  std::optional<Ints> dims = staticExtents(graph, out);
  if (!dims || !staticExtents(graph, node.input(0))) return;
  ValueId source = sameBytes(graph, node.input(0));
  if (sameType(graph, source, out)) {
    replaceOutput(patch, id, source);
    return;
  }
  bool isCanonical = node.op == "Reshape" && constantInts(graph, node.input(1)) == *dims;
  if (isCanonical && source == node.input(0)) return;
  if (graph.value(source).isConstant())
    replaceOutput(patch, id, emitReshape(patch, id, id, source, *dims));
  else
    becomeReshape(patch, id, source);
}

void transposeRules(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  ValueId in = graph.node(id).input(0), out = graph.node(id).outputs[0];
  Ints perm = permutationOf(graph, graph.node(id));
  if (perm.empty() && rankOf(graph, in) != 0) return;
  if (isIdentity(perm)) {
    replaceOutput(patch, id, in);
    return;
  }
  if (NodeId inner = producerIs(graph, in, "Transpose"); inner.isValid()) {
    Ints first = permutationOf(graph, graph.node(inner));
    if (first.size() != perm.size()) return;
    Ints both = compose(first, perm);
    ValueId source = graph.node(inner).input(0);
    if (isIdentity(both)) {
      replaceOutput(patch, id, source);
    } else {
      patch.setInput(id, 0, source);
      patch.setAttr(id, "perm", both);
    }
    return;
  }
  std::optional<Ints> dims = staticExtents(graph, in), outDims = staticExtents(graph, out);
  if (dims && outDims && movesUnitDimsOnly(*dims, perm)) becomeReshape(patch, id, in);
}

}  // namespace

const std::vector<SimplifyRule>& shapeRules() {
  static const std::vector<SimplifyRule> kRules = {
      {"Reshape", canonicalReshape},   {"Flatten", canonicalReshape}, {"Squeeze", canonicalReshape},
      {"Unsqueeze", canonicalReshape}, {"Transpose", transposeRules},
  };
  return kRules;
}

}  // namespace locution::passes

// simplify: identities go, chains of reshapes and transposes merge, decided branches are inlined, costly forms become cheap ones.
// Needs: types (rules look at static shapes). Gives: the same function with fewer nodes. NaN and infinity keep their meaning (x * 0
// and x - x stay); only the sign of a zero may differ (x + 0).
//     %a = Add(%x, 0); %b = Transpose(Transpose(%a)); %y = Pow(%b, 2)   ->   %y = Mul(%x, %x)
#include <map>
#include <string_view>

#include "passes/all_passes.h"
#include "passes/simplify_rules.h"

namespace locution::passes {
namespace {

/// Each sweep sees what the one before left; graphs settle after two or three.
constexpr int kMaxSweeps = 8;

using RuleTable = std::map<std::string_view, std::vector<void (*)(Patch&, NodeId)>>;

RuleTable makeTable() {
  RuleTable table;
  for (const auto* rules : {&arithmeticRules(), &shapeRules(), &movementRules()})
    for (const SimplifyRule& rule : *rules) table[rule.op].push_back(rule.apply);
  return table;
}

}  // namespace

bool becomeInput(Patch& patch, NodeId node, size_t i) {
  const Graph& graph = patch.graph();
  ValueId in = graph.node(node).input(i), out = graph.node(node).outputs[0];
  if (!in.isValid() || !out.isValid() || !sameType(graph, in, out)) return false;
  replaceOutput(patch, node, in);
  return true;
}

Status simplify(Patch& patch, PassContext&) {
  const Graph& graph = patch.graph();
  const RuleTable table = makeTable();
  patch.removeDead();
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    const int before = patch.edits();
    graph.forEachNode([&](NodeId id) {
      auto rules = table.find(graph.node(id).op);
      if (rules == table.end()) return;
      for (auto* apply : rules->second) {
        if (graph.node(id).dead || graph.node(id).op != rules->first) return;
        apply(patch, id);
      }
    });
    if (patch.edits() == before) break;
    patch.removeDead();
  }
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes

// fuse: nodes become kernels. Each is a node "Kernel" with one region, whose nodes read outer values directly.
// Needs: all types, no dead nodes. Gives: every node that is loops over static shapes stands in some Kernel; plain nodes are left for
// aliases (free: the same bytes), control flow, host operators, and what has no static shape. attr "anchor": the op the kernel is
// named after. Region outputs and node outputs are the same values, one for one.
//     %c = Conv(%x, %w); %r = Relu(%c); %y = Add(%r, %z)
// ->  %y = Kernel(%x, %w, %z) {anchor = "Conv"} region { %c = Conv(%x, %w); %r = Relu(%c); %y.in = Add(%r, %z); output %y.in }
#include <algorithm>

#include "passes/all_passes.h"
#include "passes/fuse_groups.h"
#include "passes/fuse_projection.h"
#include "passes/fuse_rules.h"

namespace locution::passes {
namespace {

/// Split as one Slice an output, each of which can go where it is read.
void splitToSlices(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  const std::vector<ValueId> outputs = node.outputs;
  if (!isNumericTensor(graph.type(node.input(0))) || !staticExtents(graph, node.input(0))) return;
  for (ValueId v : outputs)
    if (!v.isValid() || !staticExtents(graph, v)) return;
  int64_t axis = node.intAttr("axis", 0), start = 0;
  if (axis < 0) axis += rankOf(graph, node.input(0));
  const ValueId data = node.input(0), axes = addInts(patch, "axis", {axis});
  std::vector<std::pair<ValueId, std::string>> made;
  for (ValueId v : outputs) {
    const int64_t end = start + (*staticExtents(graph, v))[static_cast<size_t>(axis)];
    ValueId slice =
        emitBefore(patch, id, id, "Slice", {data, addInts(patch, "start", {start}), addInts(patch, "end", {end}), axes},
                   {}, graph.type(v));
    made.emplace_back(slice, graph.value(v).name);
    patch.replaceUses(v, slice);
    start = end;
  }
  patch.remove(id);
  for (const auto& [slice, name] : made)
    if (graph.value(slice).name != name && !graph.isMainOutput(slice)) patch.rename(slice, name);
}

class Fusion {
 public:
  Fusion(Patch& patch, const TargetSpec& target) : patch_(patch), graph_(patch.graph()), target_(target) {}

  void region(RegionId region) {
    const std::vector<NodeId> before = graph_.region(region).nodes;
    for (NodeId id : before)
      if (graph_.node(id).op == "Split") splitToSlices(patch_, id);
    splitKeyTransposes(patch_, region);
    FuseGroups groups(graph_, region);
    formGroups(graph_, groups, target_);
    // Asked before the first edit: uses move into kernels.
    const std::vector<int> sequence = groups.order();
    std::vector<std::vector<ValueId>> results;
    for (int group : sequence) results.push_back(resultsOf(groups, group));
    std::vector<NodeId> order;
    for (size_t i = 0; i < sequence.size(); ++i) {
      const std::vector<int>& members = groups.members(sequence[i]);
      const FuseKind kind = groups.kind(members[0]);
      const bool isPlain = members.size() == 1 && (kind == FuseKind::Plain || kind == FuseKind::Alias);
      order.push_back(isPlain ? groups.id(members[0]) : makeKernel(region, groups, sequence[i], results[i]));
    }
    patch_.reorder(region, order);
    for (NodeId id : order) {
      if (graph_.node(id).op == "Kernel") continue;
      const std::vector<RegionId> inner = graph_.node(id).regions;
      for (RegionId r : inner) this->region(r);
    }
  }

 private:
  static bool isMember(const FuseGroups& groups, int group, int n) {
    const std::vector<int>& members = groups.members(group);
    return std::binary_search(members.begin(), members.end(), n);
  }

  /// Values that the group makes and others read.
  std::vector<ValueId> resultsOf(const FuseGroups& groups, int group) const {
    std::vector<ValueId> out;
    for (int n : groups.members(group))
      for (ValueId v : groups.node(n).outputs) {
        if (!v.isValid()) continue;
        const std::vector<int>& readers = groups.readers(v);
        if (groups.escapes(v) ||
            !std::all_of(readers.begin(), readers.end(), [&](int r) { return isMember(groups, group, r); }))
          out.push_back(v);
      }
    return out;
  }

  NodeId makeKernel(RegionId region, const FuseGroups& groups, int group, const std::vector<ValueId>& inner) {
    const std::vector<int>& members = groups.members(group);
    std::vector<ValueId> inputs;
    for (int n : members)
      for (ValueId v : groups.node(n).inputs)
        if (v.isValid() && !isMember(groups, group, groups.producer(v)) &&
            std::find(inputs.begin(), inputs.end(), v) == inputs.end())
          inputs.push_back(v);
    const Node& anchor = groups.node(anchorOf(groups, group));
    Patch::NewNode kernel{"Kernel", inputs, {{"anchor", anchor.op}}, {}, {}, anchor.name, anchor.sourceIndex};
    std::vector<std::string> names;
    for (ValueId v : inner) {
      kernel.types.push_back(graph_.type(v));
      names.push_back(graph_.value(v).name);
      kernel.names.push_back(names.back());
    }
    const NodeId id = patch_.append(region, std::move(kernel));
    const RegionId body = patch_.addRegion(id);
    for (size_t i = 0; i < inner.size(); ++i) {
      const ValueId outer = patch_.output(id, i);
      patch_.replaceUses(inner[i], outer);
      // The kernel's own nodes go on reading the value inside.
      for (int n : members) {
        const std::vector<ValueId> reads = groups.node(n).inputs;
        for (size_t k = 0; k < reads.size(); ++k)
          if (reads[k] == outer) patch_.setInput(groups.id(n), k, inner[i]);
      }
      patch_.rename(inner[i], names[i] + ".in");
      if (graph_.value(outer).name != names[i]) patch_.rename(outer, names[i]);
    }
    for (int n : members) patch_.moveToEnd(groups.id(n), body);
    patch_.setRegionOutputs(body, inner);
    return id;
  }

  Patch& patch_;
  const Graph& graph_;
  const TargetSpec& target_;
};

}  // namespace

Status fuse(Patch& patch, PassContext& context) {
  const TargetSpec usual;
  Fusion(patch, context.target ? *context.target : usual).region(patch.graph().mainRegion());
  return Status::ok();
}

}  // namespace locution::passes

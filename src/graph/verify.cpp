// Checks every invariant of graph.h, in time linear in the graph.
#include <algorithm>

#include "graph/graph.h"
#include "support/check.h"

namespace locution::graph {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph) : graph_(graph) {
    auto values = static_cast<size_t>(graph.valueCount());
    visible_.resize(values);
    defined_.resize(values);
    reads_.resize(values);
    outputReads_.resize(values);
    seenNodes_.resize(static_cast<size_t>(graph.nodeCount()));
    seenRegions_.resize(static_cast<size_t>(graph.regionCount()));
    constants_.resize(seenRegions_.size());
  }

  Status run() {
    for (int32_t i = 0; i < graph_.valueCount(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      if (!value.isConstant()) continue;
      if (!isRegion(value.region)) return Status::error("the constant %" + value.name + " lies in no region");
      constants_[static_cast<size_t>(value.region.index)].push_back(ValueId{i});
    }
    if (graph_.main().owner.isValid()) return Status::error("the main region has an owner");
    LOCUTION_RETURN_IF_ERROR(checkRegion(graph_.mainRegion()));
    return checkUsers();
  }

 private:
  bool isRegion(RegionId id) const { return id.isValid() && id.index < graph_.regionCount(); }
  bool isValue(ValueId id) const { return id.isValid() && id.index < graph_.valueCount(); }

  Status define(ValueId id, RegionId region, std::vector<ValueId>& scope) {
    if (!isValue(id)) return Status::error("a value that isn't in the graph");
    const Value& value = graph_.value(id);
    auto at = static_cast<size_t>(id.index);
    if (value.name.empty()) return Status::error("a value without a name");
    if (defined_[at]) return Status::error("%" + value.name + " is defined twice");
    if (graph_.findValue(value.name) != id) return Status::error("the name %" + value.name + " isn't unique");
    if (value.region != region)
      return Status::error("%" + value.name + " names another region than the one that defines it");
    LOCUTION_RETURN_IF_ERROR(checkType(value));
    defined_[at] = visible_[at] = true;
    scope.push_back(id);
    return Status::ok();
  }

  static Status checkType(const Value& value) {
    const ValueType& type = value.type;
    auto fail = [&](const char* what) { return Status::error("%" + value.name + ": " + type.str() + ": " + what); };
    if (!type.shape.isRanked() && !type.shape.dims().empty()) return fail("an unranked shape with dims");
    for (const Dim& d : type.shape.dims())
      if (d.isKnown() && d.value() < 0) return fail("a negative extent");
    if (!type.layout.order.empty()) {
      std::vector<int64_t> sorted = type.layout.order;
      std::sort(sorted.begin(), sorted.end());
      for (size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i] != static_cast<int64_t>(i)) return fail("the layout's order isn't a permutation");
      if (!type.shape.isRanked() || type.shape.rank() != static_cast<int64_t>(sorted.size()))
        return fail("the layout's order has another rank");
    }
    if (type.layout.blockedDim >= 0 && (type.layout.blockedDim >= type.shape.rank() || type.layout.block <= 0))
      return fail("the layout's block");
    if (!value.isConstant()) return Status::ok();
    if (value.producer.isValid()) return fail("a constant with a producer");
    if (value.constant.dtype() != type.dtype) return fail("the constant has another element type");
    if (type.layout.isRowMajor() && !(value.constant.shape() == type.shape))
      return fail("the constant has another shape");
    return Status::ok();
  }

  Status checkNode(NodeId id, RegionId region, std::vector<ValueId>& scope) {
    if (!id.isValid() || id.index >= graph_.nodeCount()) return Status::error("a node that isn't in the graph");
    auto at = static_cast<size_t>(id.index);
    const Node& node = graph_.node(id);
    if (seenNodes_[at]) return Status::error("stands in two places");
    seenNodes_[at] = true;
    if (node.dead) return Status::error("is dead but still in a region");
    if (node.parent != region) return Status::error("names another region than the one it stands in");
    if (node.op.empty()) return Status::error("has no op");
    for (ValueId input : node.inputs) {
      if (!input.isValid()) continue;
      if (!isValue(input)) return Status::error("reads a value that isn't in the graph");
      if (!visible_[static_cast<size_t>(input.index)])
        return Status::error("reads %" + graph_.value(input).name +
                             ", which isn't defined before it in its region or around it");
      reads_[static_cast<size_t>(input.index)].push_back(id);
    }
    for (RegionId inner : node.regions) {
      if (!isRegion(inner)) return Status::error("owns a region that isn't in the graph");
      if (graph_.region(inner).owner != id) return Status::error("lists a region that another node owns");
      LOCUTION_RETURN_IF_ERROR(checkRegion(inner));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId output = node.outputs[i];
      if (!output.isValid()) continue;
      if (!isValue(output)) return Status::error("makes a value that isn't in the graph");
      const Value& value = graph_.value(output);
      if (value.producer != id || value.producerOutput != static_cast<int32_t>(i) || value.isConstant())
        return Status::error("makes %" + value.name + ", which has another definition");
      LOCUTION_RETURN_IF_ERROR(define(output, region, scope));
    }
    return Status::ok();
  }

  Status checkRegion(RegionId id) {
    auto at = static_cast<size_t>(id.index);
    const Region& region = graph_.region(id);
    if (seenRegions_[at] || region.dead) return Status::error("a region that is dead or owned twice");
    seenRegions_[at] = true;
    std::vector<ValueId> scope;
    for (ValueId input : region.inputs) {
      LOCUTION_RETURN_IF_ERROR(define(input, id, scope));
      const Value& value = graph_.value(input);
      if (value.producer.isValid() || value.isConstant())
        return Status::error("the region input %" + value.name + " has another definition");
    }
    for (ValueId constant : constants_[at]) LOCUTION_RETURN_IF_ERROR(define(constant, id, scope));
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      NodeId node = region.nodes[i];
      if (Status status = checkNode(node, id, scope); !status.isOk())
        return node.isValid() && node.index < graph_.nodeCount() ? status.withContext(describe(graph_, node)) : status;
      if (i > 0 && !graph_.isBefore(region.nodes[i - 1], node))
        return Status::error("order keys are out of step").withContext(describe(graph_, node));
    }
    for (ValueId output : region.outputs) {
      if (!isValue(output)) return Status::error("a region output that isn't in the graph");
      if (!visible_[static_cast<size_t>(output.index)])
        return Status::error("the region output %" + graph_.value(output).name +
                             " isn't defined in the region or around it");
      outputReads_[static_cast<size_t>(output.index)].push_back(id);
    }
    for (ValueId value : scope) visible_[static_cast<size_t>(value.index)] = false;
    return Status::ok();
  }

  // What was read on the walk, which went in program order, against the index that Patch keeps.
  Status checkUsers() {
    for (int32_t i = 0; i < graph_.valueCount(); ++i) {
      ValueId id{i};
      auto at = static_cast<size_t>(i);
      auto outputRegions = graph_.outputRegionsOf(id);
      std::sort(outputRegions.begin(), outputRegions.end());
      std::sort(outputReads_[at].begin(), outputReads_[at].end());
      if (reads_[at] != graph_.users(id) || outputReads_[at] != outputRegions)
        return Status::error("the users of %" + graph_.value(id).name + " are out of step");
    }
    return Status::ok();
  }

  const Graph& graph_;
  std::vector<bool> visible_, defined_, seenNodes_, seenRegions_;
  std::vector<std::vector<NodeId>> reads_;
  std::vector<std::vector<RegionId>> outputReads_;
  std::vector<std::vector<ValueId>> constants_;
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace locution::graph

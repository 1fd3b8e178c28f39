// If, Loop, Scan and SequenceMap: graphs in attributes become regions.
#include <algorithm>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {
namespace {

using graph::NodeId;
using graph::ValueId;

Status addCheckedRegion(NodeContext& c, const char* attribute, NodeId owner, size_t inputs, size_t outputs) {
  LOCUTION_ASSIGN_OR_RETURN(ImportedRegion region, c.addRegion(attribute, owner));
  if (region.inputs == inputs && region.outputs == outputs) return Status::ok();
  return Status::error(std::string(attribute) + " has " + std::to_string(region.inputs) + " inputs and " +
                       std::to_string(region.outputs) + " outputs, " + std::to_string(inputs) + " and " +
                       std::to_string(outputs) + " are needed");
}

}  // namespace

Status conditional(NodeContext& c) {
  NodeId node = c.finish("If", c.inputs(), c.attrs());
  LOCUTION_RETURN_IF_ERROR(addCheckedRegion(c, "then_branch", node, 0, c.outputCount()));
  return addCheckedRegion(c, "else_branch", node, 0, c.outputCount());
}

Status loop(NodeContext& c) {
  NodeContext::Inputs inputs = c.inputs();
  if (inputs.size() < 2) inputs.resize(2);
  size_t carried = inputs.size() - 2;
  for (size_t i = 2; i < inputs.size(); ++i)
    if (!inputs[i].isValid()) return Status::error("input " + std::to_string(i) + " is left out");
  if (c.outputCount() < carried)
    return Status::error(std::to_string(carried) + " values are carried, it has " + std::to_string(c.outputCount()) +
                         " outputs");
  NodeId node = c.finish("Loop", inputs, c.attrs());
  return addCheckedRegion(c, "body", node, inputs.size(), c.outputCount() + 1);
}

Status scan(NodeContext& c) {
  size_t inputs = c.inputs().size();
  int64_t scanned = c.intAttr("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs))
    return Status::error("num_scan_inputs is " + std::to_string(scanned) + ", it has " + std::to_string(inputs) +
                         " inputs");
  size_t state = inputs - static_cast<size_t>(scanned);
  if (c.outputCount() < state)
    return Status::error(std::to_string(state) + " values are carried, it has " + std::to_string(c.outputCount()) +
                         " outputs");
  for (size_t i = 0; i < inputs; ++i)
    if (!c.has(i)) return Status::error("input " + std::to_string(i) + " is left out");
  NodeId node = c.finish("Scan", c.inputs(), c.attrs());
  return addCheckedRegion(c, "body", node, inputs, c.outputCount());
}

/// Opset 8 scanned every item of a batch by itself: a Scan over the batch whose body is the Scan over the sequence.
Status scan8(NodeContext& c) {
  if (c.has(0)) return c.unsupported("the input sequence_lens");
  NodeContext::Inputs items(c.inputs().begin() + std::min<size_t>(1, c.inputs().size()), c.inputs().end());
  for (size_t i = 0; i < items.size(); ++i)
    if (!items[i].isValid()) return Status::error("input " + std::to_string(i + 1) + " is left out");
  int64_t scanned = c.intAttr("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(items.size()) ||
      c.outputCount() + static_cast<size_t>(scanned) < items.size())
    return Status::error("num_scan_inputs is " + std::to_string(scanned) + ", it has " + std::to_string(items.size()) +
                         " inputs and " + std::to_string(c.outputCount()) + " outputs");
  graph::Attrs outerAttrs, innerAttrs;
  outerAttrs["num_scan_inputs"] = static_cast<int64_t>(items.size());
  innerAttrs["num_scan_inputs"] = scanned;
  if (c.hasAttr("directions")) innerAttrs["scan_input_directions"] = c.intsAttr("directions");
  NodeId outer = c.finish("Scan", items, std::move(outerAttrs));
  graph::RegionId region = c.patch().addRegion(outer);
  ValueType unknown;
  unknown.shape = Shape::unranked();
  NodeContext::Inputs item;
  for (size_t i = 0; i < items.size(); ++i)
    item.push_back(c.patch().addInput(region, c.patch().freshName("Scan/item"), unknown));
  c.setRegion(region);
  std::vector<ValueId> results = c.addMany("Scan", item, std::move(innerAttrs), c.outputCount());
  c.patch().setRegionOutputs(region, results);
  return addCheckedRegion(c, "body", c.patch().graph().value(results[0]).producer, items.size(), c.outputCount());
}

/// A Loop over the first sequence that appends to a sequence an output.
Status sequenceMap(NodeContext& c) {
  std::vector<std::optional<ValueType>> declared = c.declaredOutputs("body");
  if (declared.size() != c.outputCount())
    return Status::error("body has " + std::to_string(declared.size()) + " outputs, it has " +
                         std::to_string(c.outputCount()));
  NodeContext::Inputs inputs = {c.add("SequenceLength", {c.input(0)}), {}};
  for (const auto& type : declared) {
    if (!type) return Status::error("an output of body has no type");
    graph::Attrs attrs;
    attrs["dtype"] = std::string(dtypeName(type->dtype));
    inputs.push_back(c.add("SequenceEmpty", {}, std::move(attrs)));
  }
  NodeId node = c.finish("Loop", inputs, {});
  graph::RegionId region = c.patch().addRegion(node);
  auto addInput = [&](const char* stem, ValueType type) {
    return c.patch().addInput(region, c.patch().freshName(c.opType() + "/" + stem), std::move(type));
  };
  ValueType counter, condition;
  counter.dtype = DType::I64;
  condition.dtype = DType::Bool;
  ValueId index = addInput("index", counter);
  ValueId go = addInput("cond", condition);
  NodeContext::Inputs sequences;
  for (const auto& type : declared) {
    ValueType sequence = *type;
    sequence.kind = ValueKind::Sequence;
    sequence.shape = Shape::unranked();
    sequences.push_back(addInput("sequence", sequence));
  }
  c.setRegion(region);
  NodeContext::Inputs items;
  for (size_t i = 0; i < c.inputs().size(); ++i) {
    if (!c.has(i)) return Status::error("input " + std::to_string(i) + " is left out");
    bool isSequence = i == 0 || c.kind(c.input(i)) == ValueKind::Sequence;
    items.push_back(isSequence ? c.add("SequenceAt", {c.input(i), index}) : c.input(i));
  }
  LOCUTION_ASSIGN_OR_RETURN(NodeContext::Inputs results, c.inlineGraph("body", region, items));
  NodeContext::Inputs outputs = {c.add("Identity", {go})};
  for (size_t i = 0; i < results.size(); ++i) outputs.push_back(c.add("SequenceInsert", {sequences[i], results[i]}));
  c.patch().setRegionOutputs(region, std::move(outputs));
  return Status::ok();
}

}  // namespace locution::frontend::normalise

#include "passes/unroll.h"

#include <algorithm>
#include <map>

namespace locution::passes {
namespace {

constexpr int64_t kMaxNodes = 4096;

/// How a Loop or Scan runs: what stands where among node inputs, body inputs and body outputs.
struct LoopForm {
  int64_t trips = 0;
  bool isScan = false;
  size_t states = 0, scanned = 0;  ///< inputs
  size_t firstInput = 0, firstParam = 0, firstResult = 0;
};

/// The value is true in every iteration: constant, or the condition handed through.
bool staysTrue(const Graph& graph, ValueId value, ValueId param) {
  for (NodeId p = producerIs(graph, value, "Identity"); p.isValid(); p = producerIs(graph, value, "Identity"))
    value = graph.node(p).input(0);
  std::optional<double> splat = splatOf(graph, value);
  return value == param || (splat && *splat != 0);
}

int64_t listAt(const Ints& list, size_t i) { return i < list.size() ? list[i] : 0; }

std::optional<LoopForm> formOf(const Graph& graph, const Node& node) {
  if (node.regions.size() != 1) return std::nullopt;
  const graph::Region& body = graph.region(node.regions[0]);
  LoopForm form;
  if (node.op == "Loop") {
    std::optional<Ints> trips = constantInts(graph, node.input(0));
    const bool starts = !node.hasInput(1) || splatOf(graph, node.input(1)) == 1.0;
    if (!trips || trips->size() != 1 || !starts || node.inputs.size() < 2 || body.inputs.size() != node.inputs.size() ||
        body.outputs.empty() || !staysTrue(graph, body.outputs[0], body.inputs[1]))
      return std::nullopt;
    form.trips = std::max<int64_t>((*trips)[0], 0);
    form.states = node.inputs.size() - 2;
    form.firstInput = form.firstParam = 2;
    form.firstResult = 1;
  } else if (node.op == "Scan") {
    const int64_t scanned = node.intAttr("num_scan_inputs", 0);
    if (scanned < 1 || static_cast<size_t>(scanned) > node.inputs.size() || body.inputs.size() != node.inputs.size())
      return std::nullopt;
    form.isScan = true;
    form.scanned = static_cast<size_t>(scanned);
    form.states = node.inputs.size() - form.scanned;
    form.trips = -1;
    for (size_t i = 0; i < form.scanned; ++i) {
      const ValueId x = node.input(form.states + i);
      const int64_t rank = x.isValid() ? rankOf(graph, x) : -1;
      int64_t axis = listAt(node.intsAttr("scan_input_axes"), i);
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank || !graph.type(x).shape[axis].isKnown()) return std::nullopt;
      const int64_t extent = graph.type(x).shape[axis].value();
      if (form.trips >= 0 && extent != form.trips) return std::nullopt;
      form.trips = extent;
    }
  } else {
    return std::nullopt;
  }
  if (body.outputs.size() < form.firstResult + form.states || form.trips > kMaxNodes ||
      form.trips * static_cast<int64_t>(body.nodes.size() + 1) > kMaxNodes)
    return std::nullopt;
  // Nothing to put together, and no type for it.
  if (form.trips == 0 && body.outputs.size() > form.firstResult + form.states) return std::nullopt;
  for (size_t i = 0; i < form.states; ++i)
    if (!node.hasInput(form.firstInput + i)) return std::nullopt;
  return form;
}

class Unroller {
 public:
  Unroller(Patch& patch, NodeId loop, LoopForm form)
      : patch_(patch),
        graph_(patch.graph()),
        loop_(loop),
        node_(graph_.node(loop)),
        form_(form),
        body_(node_.regions[0]) {}

  std::vector<NodeId> run() {
    const graph::Region& body = graph_.region(body_);
    std::vector<ValueId> state;
    for (size_t i = 0; i < form_.states; ++i) state.push_back(node_.input(form_.firstInput + i));
    std::vector<std::vector<ValueId>> collected(body.outputs.size() - form_.firstResult - form_.states);
    for (int64_t k = 0; k < form_.trips; ++k) {
      Mapping map;
      if (!form_.isScan) {
        map[body.inputs[0]] = patch_.addConstant("iteration", Tensor::scalarI64(k));
        map[body.inputs[1]] = patch_.addConstant("condition", Tensor::of<uint8_t>(DType::Bool, {}, {1}));
      }
      for (size_t i = 0; i < form_.states; ++i) map[body.inputs[form_.firstParam + i]] = state[i];
      for (size_t i = 0; i < form_.scanned; ++i) map[body.inputs[form_.states + i]] = element(i, k);
      for (NodeId n : body.nodes) made_.push_back(clone(n, map, {}));
      for (size_t i = 0; i < form_.states; ++i) state[i] = mapped(map, body.outputs[form_.firstResult + i]);
      for (size_t i = 0; i < collected.size(); ++i)
        collected[i].push_back(mapped(map, body.outputs[form_.firstResult + form_.states + i]));
    }
    for (size_t i = 0; i < collected.size(); ++i) state.push_back(join(i, collected[i]));
    const std::vector<ValueId> outputs = node_.outputs;
    for (size_t i = 0; i < outputs.size() && i < state.size(); ++i)
      if (outputs[i].isValid()) patch_.replaceUses(outputs[i], state[i]);
    patch_.remove(loop_);
    return made_;
  }

 private:
  using Mapping = std::map<ValueId, ValueId>;

  ValueId emit(const std::string& op, std::vector<ValueId> inputs, Attrs attrs, DType dtype) {
    ValueType type;
    type.dtype = dtype;
    type.shape = Shape::unranked();
    ValueId out = emitBefore(patch_, loop_, loop_, op, std::move(inputs), std::move(attrs), std::move(type));
    made_.push_back(graph_.value(out).producer);
    return out;
  }

  /// What scan input `i` gives to iteration `k`.
  ValueId element(size_t i, int64_t k) {
    const ValueId x = node_.input(form_.states + i);
    const bool isReversed = listAt(node_.intsAttr("scan_input_directions"), i) != 0;
    const ValueId at = patch_.addConstant("iteration", Tensor::scalarI64(isReversed ? form_.trips - 1 - k : k));
    return emit("Gather", {x, at}, {{"axis", listAt(node_.intsAttr("scan_input_axes"), i)}}, graph_.type(x).dtype);
  }

  /// Scan output `i` from what the iterations gave.
  ValueId join(size_t i, std::vector<ValueId> pieces) {
    const int64_t axis = form_.isScan ? listAt(node_.intsAttr("scan_output_axes"), i) : 0;
    if (form_.isScan && listAt(node_.intsAttr("scan_output_directions"), i) != 0)
      std::reverse(pieces.begin(), pieces.end());
    const DType dtype = graph_.type(pieces[0]).dtype;
    const ValueId axes = addInts(patch_, "axes", {axis});
    for (ValueId& piece : pieces) piece = emit("Unsqueeze", {piece, axes}, {}, dtype);
    return emit("Concat", pieces, {{"axis", axis}}, dtype);
  }

  /// A value of the body in this iteration; of outside: itself. Constants of the body get a place outside, once.
  ValueId mapped(const Mapping& map, ValueId value) {
    if (!value.isValid()) return value;
    if (auto at = map.find(value); at != map.end()) return at->second;
    const graph::Value& v = graph_.value(value);
    if (!v.isConstant() || v.region == graph_.mainRegion()) return value;
    auto [at, isNew] = constants_.try_emplace(value);
    if (isNew) at->second = patch_.addConstant(v.name, v.constant);
    return at->second;
  }

  /// A copy of the node before the loop, or at the end of `into`.
  NodeId clone(NodeId id, Mapping& map, RegionId into) {
    const Node& from = graph_.node(id);
    Patch::NewNode copy{from.op, {}, from.attrs, {}, {}, from.name, from.sourceIndex};
    for (ValueId v : from.inputs) copy.inputs.push_back(mapped(map, v));
    for (ValueId v : from.outputs) {
      copy.types.push_back(v.isValid() ? graph_.type(v) : ValueType{});
      // What was generalised over the iterations is to be inferred for this one.
      copy.types.back().shape = Shape::unranked();
      copy.names.push_back(v.isValid() ? graph_.value(v).name : "unused");
    }
    const NodeId made =
        into.isValid() ? patch_.append(into, std::move(copy)) : patch_.insertBefore(loop_, std::move(copy));
    for (size_t i = 0; i < from.outputs.size(); ++i) {
      if (from.outputs[i].isValid())
        map[from.outputs[i]] = graph_.node(made).outputs[i];
      else
        patch_.dropOutput(made, i);
    }
    for (RegionId r : from.regions) {
      const RegionId inner = patch_.addRegion(made);
      for (ValueId v : graph_.region(r).inputs) map[v] = patch_.addInput(inner, graph_.value(v).name, graph_.type(v));
      for (NodeId n : graph_.region(r).nodes) clone(n, map, inner);
      std::vector<ValueId> outputs;
      for (ValueId v : graph_.region(r).outputs) outputs.push_back(mapped(map, v));
      patch_.setRegionOutputs(inner, std::move(outputs));
    }
    return made;
  }

  Patch& patch_;
  const Graph& graph_;
  const NodeId loop_;
  const Node& node_;
  const LoopForm form_;
  const RegionId body_;
  std::vector<NodeId> made_;
  std::map<ValueId, ValueId> constants_;
};

}  // namespace

std::optional<std::vector<NodeId>> unrollLoop(Patch& patch, NodeId id) {
  std::optional<LoopForm> form = formOf(patch.graph(), patch.graph().node(id));
  if (!form) return std::nullopt;
  return Unroller(patch, id, *form).run();
}

}  // namespace locution::passes

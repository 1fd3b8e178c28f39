#include "passes/rewrite.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/saturate.h"

namespace locution::passes {

ops::Pattern patternOf(const Node& node) {
  const ops::OpDef* op = ops::findOp(node.op);
  return op ? op->pattern : ops::Pattern::Host;
}

bool isRandom(const Graph& graph, const Node& node) {
  static constexpr std::array<std::string_view, 6> kRandom = {"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                                              "RandomUniformLike", "Bernoulli",        "Multinomial"};
  if (node.op == "Dropout") return node.hasInput(2) && splatOf(graph, node.input(2)) != 0.0;
  return std::find(kRandom.begin(), kRandom.end(), node.op) != kRandom.end();
}

bool isNumericTensor(const ValueType& type) {
  DTypeClass kind = dtypeClass(type.dtype);
  return type.kind == ValueKind::Tensor && kind != DTypeClass::String && kind != DTypeClass::Complex;
}

std::optional<Ints> staticExtents(const ValueType& type) {
  if (type.kind != ValueKind::Tensor || !type.shape.isRanked() || !type.shape.isStatic()) return std::nullopt;
  return type.shape.extents();
}

int64_t rankOf(const Graph& graph, ValueId value) {
  const ValueType& type = graph.type(value);
  return type.kind == ValueKind::Tensor && type.shape.isRanked() ? type.shape.rank() : -1;
}

int64_t elementsOf(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n = saturatingMul(n, d);
  return n;
}

bool sameType(const Graph& graph, ValueId a, ValueId b) {
  const ValueType &x = graph.type(a), &y = graph.type(b);
  return x.kind == y.kind && x.dtype == y.dtype && x.shape.isRanked() && x.shape == y.shape && x.layout == y.layout;
}

std::optional<double> splatOf(const Graph& graph, ValueId value) {
  const Tensor* t = graph.constant(value);
  if (!t || t->elements() == 0 || t->dtype() == DType::String || dtypeClass(t->dtype()) == DTypeClass::Complex)
    return std::nullopt;
  const uint64_t first = t->elementBits(0);
  if (t->elementBits(t->elements() - 1) != first) return std::nullopt;
  for (int64_t i = 1; i < t->elements(); ++i)
    if (t->elementBits(i) != first) return std::nullopt;
  return t->elementAsDouble(0);
}

std::optional<Ints> constantInts(const Graph& graph, ValueId value) {
  const Tensor* t = graph.constant(value);
  if (!t || !(isInteger(t->dtype()) || t->dtype() == DType::Bool)) return std::nullopt;
  return t->toInts();
}

std::optional<Ints> intsOfInputOrAttr(const Graph& graph, const Node& node, size_t input, std::string_view attr) {
  if (node.hasInput(input)) return constantInts(graph, node.input(input));
  return node.intsAttr(attr);
}

NodeId soleUser(const Graph& graph, ValueId value) {
  const auto& users = graph.users(value);
  return users.size() == 1 && graph.outputUses(value) == 0 ? users[0] : NodeId{};
}

NodeId producerIs(const Graph& graph, ValueId value, std::string_view op) {
  if (!value.isValid()) return {};
  NodeId producer = graph.value(value).producer;
  return producer.isValid() && graph.node(producer).op == op ? producer : NodeId{};
}

ValueId emitBefore(Patch& patch, NodeId at, NodeId origin, const std::string& op, std::vector<ValueId> inputs,
                   Attrs attrs, ValueType type) {
  const Node& from = patch.graph().node(origin);
  Patch::NewNode made{op, std::move(inputs), std::move(attrs), {std::move(type)}, {}, from.name, from.sourceIndex};
  return patch.output(patch.insertBefore(at, std::move(made)));
}

ValueId addInts(Patch& patch, const std::string& stem, const Ints& values) {
  return patch.addConstant(stem, Tensor::vectorI64(values));
}

ValueId emitReshape(Patch& patch, NodeId at, NodeId origin, ValueId value, const Ints& dims) {
  const Graph& graph = patch.graph();
  if (staticExtents(graph, value) == dims) return value;
  if (const Tensor* t = graph.constant(value)) return patch.addConstant(graph.value(value).name, t->reshaped(dims));
  ValueType type = graph.type(value);
  type.shape = Shape::of(dims);
  Attrs attrs;
  // A 0 in the shape means an extent of 0, not "as the input".
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) attrs["allowzero"] = int64_t{1};
  return emitBefore(patch, at, origin, "Reshape", {value, addInts(patch, "shape", dims)}, std::move(attrs),
                    std::move(type));
}

void becomeReshape(Patch& patch, NodeId id, ValueId source) {
  const Node& node = patch.graph().node(id);
  const Ints dims = *staticExtents(patch.graph(), node.outputs[0]);
  const Attrs attrs = node.attrs;
  for (const auto& [key, value] : attrs) patch.eraseAttr(id, key);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) patch.setAttr(id, "allowzero", int64_t{1});
  patch.setOp(id, "Reshape");
  patch.setInputs(id, {source, addInts(patch, "shape", dims)});
}

bool hasQuantisedTypes(const Graph& graph) {
  for (int32_t i = 0; i < graph.valueCount(); ++i)
    if (graph.type(ValueId{i}).quantisation) return true;
  return false;
}

void replaceOutput(Patch& patch, NodeId node, ValueId by, size_t i) {
  const Graph& graph = patch.graph();
  patch.replaceUses(graph.node(node).outputs[i], by);
  const auto& outputs = graph.node(node).outputs;
  if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId v) { return v.isValid() && graph.isUsed(v); }))
    patch.remove(node);
}

std::optional<std::vector<NodeId>> inlineDecidedIf(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  std::optional<double> condition = splatOf(graph, node.input(0));
  if (node.op != "If" || !condition || node.regions.size() != 2) return std::nullopt;
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
  return moved;
}

Ints permutationOf(const Graph& graph, const Node& transpose) {
  Ints perm = transpose.intsAttr("perm");
  if (!perm.empty()) return perm;
  int64_t rank = rankOf(graph, transpose.input(0));
  for (int64_t i = rank; i-- > 0;) perm.push_back(i);
  return perm;
}

bool isIdentity(const Ints& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

Ints inverse(const Ints& perm) {
  Ints out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

Ints compose(const Ints& first, const Ints& second) { return permuteList(first, second); }

bool movesUnitDimsOnly(const Ints& dims, const Ints& perm) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (dims[static_cast<size_t>(p)] == 1) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

}  // namespace locution::passes

#include "frontend/onnx/node_context.h"

#include <algorithm>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/model_importer.h"
#include "ops/op.h"

namespace locution::frontend {

NodeContext::NodeContext(ModelImporter& importer, Scope& scope, onnx::NodeProto& node, const std::string& description,
                         int64_t opset, int sourceIndex, Inputs inputs, NodeAttrs attrs)
    : importer_(importer),
      scope_(scope),
      node_(node),
      description_(description),
      opset_(opset),
      sourceIndex_(sourceIndex),
      inputs_(std::move(inputs)),
      attrs_(std::move(attrs)),
      region_(scope.region),
      outputs_(static_cast<size_t>(node.output_size())) {}

namespace {

template <typename T>
const T* getAttr(const graph::Attrs& attrs, std::string_view name) {
  auto at = attrs.find(name);
  return at == attrs.end() ? nullptr : std::get_if<T>(&at->second);
}

}  // namespace

int64_t NodeContext::intAttr(std::string_view name, int64_t fallback) const {
  const auto* value = getAttr<int64_t>(attrs_.values, name);
  return value ? *value : fallback;
}
double NodeContext::floatAttr(std::string_view name, double fallback) const {
  const auto* value = getAttr<double>(attrs_.values, name);
  return value ? *value : fallback;
}
std::string NodeContext::textAttr(std::string_view name, std::string_view fallback) const {
  const auto* value = getAttr<std::string>(attrs_.values, name);
  return value ? *value : std::string(fallback);
}
std::vector<int64_t> NodeContext::intsAttr(std::string_view name) const {
  const auto* value = getAttr<std::vector<int64_t>>(attrs_.values, name);
  return value ? *value : std::vector<int64_t>();
}

const Tensor* NodeContext::constant(ValueId id) const { return importer_.result_.graph.constant(id); }
ValueKind NodeContext::kind(ValueId id) const { return importer_.result_.graph.type(id).kind; }
graph::Patch& NodeContext::patch() { return importer_.patch_; }

NodeContext::ValueId NodeContext::addConstant(Tensor tensor, std::string_view stem) {
  std::string base = node_.output_size() > 0 ? node_.output(0) : node_.name();
  std::string name = importer_.freshName(scope_.frame->prefix + base.substr(0, 128) + "/" + std::string(stem));
  return patch().addConstant(name, std::move(tensor), region_);
}

NodeContext::ValueId NodeContext::addScalarLike(double value, ValueId like, std::string_view stem) {
  return add("CastLike", {addConstant(Tensor::scalarF32(static_cast<float>(value)), stem), like});
}

graph::NodeId NodeContext::append(const std::string& op, Inputs inputs, graph::Attrs attrs,
                                  std::vector<std::string> names, size_t outputs) {
  // A loop counts its state from behind trip count and condition, left out or not.
  const size_t least = op == "Loop" ? 2 : 0;
  while (inputs.size() > least && !inputs.back().isValid()) inputs.pop_back();
  if (importer_.options_.requireKnownOps && ops::findOp(op) == nullptr)
    importer_.noteUnsupported(description_ + (op == opType() ? "" : ", which is made of " + op));
  graph::Patch::NewNode node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  ValueType unknown;
  unknown.shape = Shape::unranked();
  node.types.assign(outputs, unknown);
  node.names = std::move(names);
  node.name = scope_.frame->prefix + (scope_.frame->isFunction ? node_.name().substr(0, 128) : node_.name());
  node.sourceIndex = sourceIndex_;
  return patch().append(region_, std::move(node));
}

NodeContext::ValueId NodeContext::add(const std::string& op, Inputs inputs, graph::Attrs attrs) {
  return addMany(op, std::move(inputs), std::move(attrs), 1)[0];
}

std::vector<NodeContext::ValueId> NodeContext::addMany(const std::string& op, Inputs inputs, graph::Attrs attrs,
                                                       size_t outputs) {
  std::string base = node_.output_size() > 0 ? node_.output(0) : node_.name();
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i)
    names.push_back(importer_.freshName(scope_.frame->prefix + base.substr(0, 128) + "/" + op));
  graph::NodeId id = append(op, std::move(inputs), std::move(attrs), std::move(names), outputs);
  return importer_.result_.graph.node(id).outputs;
}

graph::NodeId NodeContext::finish(const std::string& op, Inputs inputs, graph::Attrs attrs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::string& name = node_.output(static_cast<int>(i));
    names.push_back(name.empty() ? importer_.freshName(scope_.frame->prefix + op) : importer_.valueName(name, scope_));
  }
  size_t count = outputs_.size();
  while (count > 1 && !wants(count - 1)) names.resize(--count);
  graph::NodeId id = append(op, std::move(inputs), std::move(attrs), std::move(names), count);
  for (size_t i = 0; i < count; ++i) {
    if (wants(i))
      outputs_[i] = importer_.result_.graph.node(id).outputs[i];
    else
      patch().dropOutput(id, i);
  }
  for (size_t i = 0; i < count; ++i)
    if (wants(i)) scope_.values[node_.output(static_cast<int>(i))] = outputs_[i];
  return id;
}

void NodeContext::bind(size_t i, ValueId value) {
  if (!wants(i)) return;
  const std::string& name = node_.output(static_cast<int>(i));
  graph::NodeId id = append("Identity", {value}, {}, {importer_.valueName(name, scope_)}, 1);
  outputs_[i] = patch().output(id);
  scope_.values[name] = outputs_[i];
}

void NodeContext::bindConstant(size_t i, Tensor tensor) {
  if (!wants(i)) return;
  const std::string& name = node_.output(static_cast<int>(i));
  outputs_[i] = patch().addConstant(importer_.valueName(name, scope_), std::move(tensor), region_);
  scope_.values[name] = outputs_[i];
}

Result<ImportedRegion> NodeContext::addRegion(std::string_view attribute, graph::NodeId owner) {
  auto at = attrs_.graphs.find(attribute);
  LOCUTION_CHECK(at != attrs_.graphs.end()) << attribute;
  return importer_.importRegion(at->second, attribute, owner, description_, scope_);
}

Result<NodeContext::Inputs> NodeContext::inlineGraph(std::string_view attribute, graph::RegionId into,
                                                     const Inputs& inputs) {
  auto at = attrs_.graphs.find(attribute);
  LOCUTION_CHECK(at != attrs_.graphs.end()) << attribute;
  onnx::GraphProto& graph = *at->second.proto->mutable_g();
  Scope child = importer_.childScope(at->second, attribute, into, description_, scope_);
  if (static_cast<size_t>(graph.input_size()) != inputs.size())
    return Status::error(child.where + std::to_string(graph.input_size()) + " inputs, it is given " +
                         std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) child.values[graph.input(static_cast<int>(i)).name()] = inputs[i];
  return importer_.importBody(graph, child);
}

std::vector<std::optional<ValueType>> NodeContext::declaredOutputs(std::string_view attribute) const {
  std::vector<std::optional<ValueType>> out;
  auto at = attrs_.graphs.find(attribute);
  LOCUTION_CHECK(at != attrs_.graphs.end()) << attribute;
  for (const auto& info : at->second.proto->g().output()) {
    auto type = importer_.types_.read(info.type(), info.name());
    out.push_back(type ? std::optional<ValueType>(*type) : std::nullopt);
  }
  return out;
}

Status NodeContext::unsupported(const std::string& reason) {
  importer_.noteUnsupported(description_ + ": " + reason);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].isValid()) bindConstant(i, Tensor::scalarF32(0));
  return Status::ok();
}

void NodeContext::warn(const std::string& text) { importer_.warn(description_ + ": " + text); }

bool NodeContext::isBound() const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (wants(i) && !outputs_[i].isValid()) return false;
  return true;
}

}  // namespace locution::frontend

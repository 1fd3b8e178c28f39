#include "frontend/onnx/model_importer.h"

#include <algorithm>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/schema.h"
#include "support/strings.h"

namespace locution::frontend {
namespace {

constexpr int64_t kMostListed = 100;
constexpr int kDeepestScope = 64;
// Long names in functions that are called often would multiply.
constexpr size_t kLongestInlinedName = 128;

}  // namespace

ModelImporter::ModelImporter(const ImportOptions& options, std::optional<std::string> folder)
    : options_(options),
      patch_(result_.graph),
      tensors_(std::move(folder), options.maxDenseBytes),
      attrTensors_(tensors_) {}

void ModelImporter::noteUnsupported(const std::string& text) {
  if (!unsupported_.empty() && unsupported_.back() == text) return;
  if (++unsupportedCount_ <= kMostListed) unsupported_.push_back(text);
}

void ModelImporter::warn(const std::string& text) {
  if (++warningCount_ <= kMostListed) result_.warnings.push_back(text);
}

std::string ModelImporter::freshName(const std::string& stem) {
  std::string name = patch_.freshName(stem.empty() ? "value" : stem);
  while (mainNames_.contains(name)) name = patch_.freshName(name + "_");
  return name;
}

std::string ModelImporter::valueName(const std::string& name, const Scope& scope) {
  if (scope.isMain()) return name;
  return freshName(scope.frame->prefix + (scope.frame->isFunction ? name.substr(0, kLongestInlinedName) : name));
}

int64_t ModelImporter::opsetOf(std::string_view domain, const Scope& scope) const {
  auto at = scope.frame->opsets.find(canonicalDomain(domain));
  return at == scope.frame->opsets.end() ? 0 : at->second;
}

std::string ModelImporter::nodeText(const onnx::NodeProto& node, int index, const Scope& scope) const {
  std::string_view domain = canonicalDomain(node.domain());
  return scope.where + describeNode(index, node.name(), node.op_type(), domain, opsetOf(domain, scope));
}

ModelImporter::ValueId ModelImporter::appendIdentity(ValueId value, const std::string& name, graph::RegionId region,
                                                     int index) {
  graph::Patch::NewNode node;
  node.op = "Identity";
  node.inputs = {value};
  node.types = {result_.graph.type(value)};
  node.names = {name};
  node.sourceIndex = index;
  return patch_.output(patch_.append(region, std::move(node)));
}

Status ModelImporter::readImports(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                                  OpsetImports& out) {
  for (const auto& import : imports) {
    std::string domain(canonicalDomain(import.domain()));
    auto [at, fresh] = out.emplace(domain, import.version());
    if (!fresh && at->second != import.version())
      return Status::error("opset of domain " + named(domain) + " is imported as " + std::to_string(at->second) +
                           " and as " + std::to_string(import.version()));
    if (import.version() <= 0)
      return Status::error("opset " + std::to_string(import.version()) + " of domain " + named(domain) +
                           " makes no sense");
    if (domain.empty() && import.version() > kNewestOpset)
      return Status::error("opset " + std::to_string(import.version()) + " is too new, supported are " +
                           std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset));
  }
  return Status::ok();
}

Status ModelImporter::checkVersions(const onnx::ModelProto& model, const OpsetImports& imports) {
  if (!model.has_graph()) return Status::error("not an ONNX model: it has no graph");
  if (model.ir_version() <= 0) return Status::error("not an ONNX model: it has no ir_version");
  if (model.ir_version() > kNewestIrVersion)
    return Status::error("ir_version " + std::to_string(model.ir_version()) + " is too new, supported are 3 to " +
                         std::to_string(kNewestIrVersion));
  if (model.ir_version() < 3)
    return Status::error("ir_version " + std::to_string(model.ir_version()) + " is too old, supported are 3 to " +
                         std::to_string(kNewestIrVersion));
  if (imports.empty()) return Status::error("the model says of no opset what it needs (opset_import is empty)");
  return Status::ok();
}

Result<ImportedModel> ModelImporter::run(onnx::ModelProto& model) {
  Frame frame;
  LOCUTION_RETURN_IF_ERROR(readImports(model.opset_import(), frame.opsets));
  LOCUTION_RETURN_IF_ERROR(checkVersions(model, frame.opsets));
  LOCUTION_RETURN_IF_ERROR(indexFunctions(model));
  if (model.training_info_size() > 0) warn("training information is ignored");

  onnx::GraphProto& graph = *model.mutable_graph();
  result_.graph.name = graph.name();
  for (const auto& entry : model.metadata_props()) result_.graph.metadata[entry.key()] = entry.value();
  auto opset = frame.opsets.find(std::string());
  result_.opset = opset == frame.opsets.end() ? 0 : opset->second;
  result_.graph.opset = result_.opset;
  result_.producer = model.producer_name() + (model.producer_version().empty() ? "" : " " + model.producer_version());
  types_ = TypeReader(dimParamsOf(graph));

  Scope scope;
  scope.frame = &frame;
  scope.region = result_.graph.mainRegion();
  LOCUTION_RETURN_IF_ERROR(importMainGraph(graph, scope));

  if (unsupportedCount_ == 1) return Status::error("unsupported operator: " + unsupported_[0]);
  if (unsupportedCount_ > 1) {
    std::string text = std::to_string(unsupportedCount_) + " unsupported operators:\n  " + join(unsupported_, "\n  ");
    if (unsupportedCount_ > kMostListed) text += "\n  and " + std::to_string(unsupportedCount_ - kMostListed) + " more";
    return Status::error(text);
  }
  if (warningCount_ > kMostListed)
    result_.warnings.push_back("and " + std::to_string(warningCount_ - kMostListed) + " more");
  result_.externalFiles.assign(tensors_.externalFiles().begin(), tensors_.externalFiles().end());
  return std::move(result_);
}

Status ModelImporter::importMainGraph(onnx::GraphProto& graph, Scope& scope) {
  for (const auto& tensor : graph.initializer()) mainNames_.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) mainNames_.insert(tensor.values().name());
  std::unordered_set<std::string> local = mainNames_;
  std::unordered_set<std::string> inputs;
  for (int i = 0; i < graph.input_size(); ++i) {
    const std::string& name = graph.input(i).name();
    if (name.empty()) return Status::error("graph input " + std::to_string(i) + " has no name");
    if (!inputs.insert(name).second) return Status::error("graph input " + named(name) + " is given twice");
    // An initializer of the same name is a default; the model is compiled for it.
    if (mainNames_.contains(name)) continue;
    auto type = types_.read(graph.input(i).type(), name);
    if (!type) return type.status().withContext("graph input " + named(name));
    scope.values[name] = patch_.addInput(scope.region, name, std::move(*type));
  }
  local.insert(inputs.begin(), inputs.end());
  mainNames_.insert(inputs.begin(), inputs.end());
  for (const auto& node : graph.node()) mainNames_.insert(node.output().begin(), node.output().end());
  LOCUTION_RETURN_IF_ERROR(importInitializers(graph, scope));
  LOCUTION_RETURN_IF_ERROR(importNodes(*graph.mutable_node(), local, scope));

  std::vector<ValueId> outputs;
  for (int i = 0; i < graph.output_size(); ++i) {
    const std::string& name = graph.output(i).name();
    auto value = scope.find(name);
    if (!value || !value->isValid())
      return Status::error("graph output " + named(name) + " is no output of a node, no input and no initializer");
    outputs.push_back(*value);
    auto type = types_.read(graph.output(i).type(), name);
    result_.declaredOutputs.push_back(type ? std::optional<ValueType>(*type) : std::nullopt);
  }
  if (outputs.empty()) return Status::error("the graph has no outputs");
  patch_.setRegionOutputs(scope.region, std::move(outputs));
  for (const auto& info : graph.value_info()) {
    if (inputs.contains(info.name())) continue;
    if (auto type = types_.read(info.type(), info.name())) result_.hints.emplace(info.name(), *type);
  }
  return Status::ok();
}

Status ModelImporter::importInitializers(onnx::GraphProto& graph, Scope& scope) {
  auto add = [&](const std::string& name, Result<Tensor> tensor) -> Status {
    if (!tensor) return tensor.status().withContext(scope.where + "initializer");
    if (name.empty()) return Status::error(scope.where + "an initializer has no name");
    if (scope.values.contains(name))
      return Status::error(scope.where + "initializer " + named(name) + " is given twice");
    scope.values[name] = patch_.addConstant(valueName(name, scope), std::move(*tensor), scope.region);
    return Status::ok();
  };
  bool keep = scope.isShared;
  for (auto& proto : *graph.mutable_initializer()) {
    std::string name = proto.name();  // the proto's own string goes with its bytes
    LOCUTION_RETURN_IF_ERROR(add(name, attrTensors_.read(proto, keep)));
  }
  for (auto& proto : *graph.mutable_sparse_initializer()) {
    std::string name = proto.values().name();
    LOCUTION_RETURN_IF_ERROR(add(name, attrTensors_.readSparse(proto, keep)));
  }
  return Status::ok();
}

Status ModelImporter::importNodes(Nodes& nodes, const std::unordered_set<std::string>& local, Scope& scope) {
  if (scope.depth > kDeepestScope)
    return Status::error(scope.where + "graphs and functions are nested more than " + std::to_string(kDeepestScope) +
                         " deep");
  LOCUTION_ASSIGN_OR_RETURN(
      NodeOrder order,
      orderNodes(
          nodes, local,
          [&](const std::string& name) { return scope.parent != nullptr && scope.parent->find(name).has_value(); },
          [&](int i) { return nodeText(nodes.Get(i), i, scope); }));
  if (!order.wasSorted) warn(scope.where + "the nodes are not in topological order");
  for (int i : order.nodes) LOCUTION_RETURN_IF_ERROR(importNode(*nodes.Mutable(i), i, scope));
  return Status::ok();
}

Status ModelImporter::importNode(onnx::NodeProto& node, int index, Scope& scope) {
  if (scope.frame->isFunction) LOCUTION_RETURN_IF_ERROR(countInlined(static_cast<int64_t>(node.ByteSizeLong()), scope));
  std::string_view domain = canonicalDomain(node.domain());
  std::string description = nodeText(node, index, scope);
  auto function = functions_.find(std::string(domain) + "::" + node.op_type() + "::" + node.overload());
  if (function != functions_.end()) return inlineFunction(node, *function->second, description, index, scope);

  if (node.output_size() == 0) return Status::error(description + ": it has no outputs");
  int64_t opset = opsetOf(domain, scope);
  if (opset == 0 && domain.empty()) return Status::error(description + ": the model imports no opset of ai.onnx");
  NodeContext::Inputs inputs;
  std::vector<bool> given;
  for (const std::string& name : node.input()) {
    ValueId id;
    if (!name.empty()) id = scope.find(name).value_or(ValueId{});
    inputs.push_back(id);
    given.push_back(id.isValid());
  }
  int sourceIndex = scope.isMain() ? index : scope.sourceIndex;
  int64_t firstSince = 0;
  const OpRow* row = findRow(domain, node.op_type(), domain.empty() ? opset : 1, firstSince);
  if (row == nullptr) {
    NodeContext context(*this, scope, node, description, opset, sourceIndex, std::move(inputs), {});
    if (firstSince == 0) return context.unsupported("unknown operator");
    return context.unsupported(firstSince <= kOldestOpset
                                   ? "its form before opset " + std::to_string(kOldestOpset) + " is not supported"
                                   : "it exists from opset " + std::to_string(firstSince) + " on");
  }
  if (Status s = checkArity(*row, given, static_cast<size_t>(node.output_size())); !s)
    return s.withContext(description);
  std::vector<std::string> warnings;
  auto attrs = readAttrs(node, *row, scope, scope.frame->isFunction ? &scope.frame->bindings : nullptr, scope.isShared,
                         attrTensors_, warnings);
  if (!attrs) return attrs.status().withContext(description);
  NodeContext context(*this, scope, node, description, opset, sourceIndex, std::move(inputs), std::move(*attrs));
  for (const std::string& text : warnings) context.warn(text);
  if (Status s = row->normalise(context); !s) return s.withContext(description);
  LOCUTION_CHECK(context.isBound()) << description;
  return Status::ok();
}

Scope ModelImporter::childScope(const AttrSource& source, std::string_view attribute, graph::RegionId region,
                                const std::string& description, const Scope& scope) const {
  Scope child;
  child.parent = source.scope;
  child.frame = source.scope->frame;
  child.region = region;
  child.where = description + ": " + std::string(attribute) + ": ";
  child.depth = scope.depth + 1;
  // A graph that a function refers to belongs to the caller, and may be referred to more than once.
  child.isShared = scope.isShared || source.scope->isShared;
  child.sourceIndex = scope.sourceIndex;
  return child;
}

Result<std::vector<ModelImporter::ValueId>> ModelImporter::importBody(onnx::GraphProto& graph, Scope& child) {
  std::unordered_set<std::string> local;
  for (const auto& input : graph.input()) local.insert(input.name());
  for (const auto& tensor : graph.initializer()) local.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) local.insert(tensor.values().name());
  LOCUTION_RETURN_IF_ERROR(importInitializers(graph, child));
  LOCUTION_RETURN_IF_ERROR(importNodes(*graph.mutable_node(), local, child));
  std::vector<ValueId> outputs;
  for (const auto& output : graph.output()) {
    auto value = child.find(output.name());
    if (!value || !value->isValid())
      return Status::error(child.where + "output " + named(output.name()) +
                           " is no output of a node, no input and no initializer");
    // A region's outputs are its own.
    if (result_.graph.value(*value).region != child.region)
      *value = appendIdentity(*value, valueName(output.name(), child), child.region, child.sourceIndex);
    outputs.push_back(*value);
  }
  return outputs;
}

Result<ImportedRegion> ModelImporter::importRegion(const AttrSource& source, std::string_view attribute,
                                                   graph::NodeId owner, const std::string& description,
                                                   const Scope& scope) {
  onnx::GraphProto& graph = *source.proto->mutable_g();
  graph::RegionId region = patch_.addRegion(owner);
  Scope child = childScope(source, attribute, region, description, scope);
  child.sourceIndex = result_.graph.node(owner).sourceIndex;
  for (const auto& input : graph.input()) {
    if (input.name().empty() || child.values.contains(input.name()))
      return Status::error(child.where + "input " + named(input.name()) + " has no name or is given twice");
    ValueType type;
    if (auto declared = types_.read(input.type(), input.name())) type = *declared;
    // What flows in decides; the declared shape is often that of the first iteration only.
    type.shape = Shape::unranked();
    child.values[input.name()] = patch_.addInput(region, valueName(input.name(), child), std::move(type));
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, importBody(graph, child));
  ImportedRegion imported{region, static_cast<size_t>(graph.input_size()), outputs.size()};
  patch_.setRegionOutputs(region, std::move(outputs));
  return imported;
}

}  // namespace locution::frontend

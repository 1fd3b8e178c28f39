// Model-local functions: each call is replaced by the function's nodes.
#include <algorithm>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/model_importer.h"
#include "frontend/onnx/schema.h"

namespace locution::frontend {
namespace {

constexpr int kDeepestCall = 32;
constexpr size_t kLongestPrefix = 128;
constexpr int64_t kNodeBytes = 256;

std::string keyOf(std::string_view domain, const std::string& name, const std::string& overload) {
  return std::string(canonicalDomain(domain)) + "::" + name + "::" + overload;
}

}  // namespace

Status ModelImporter::indexFunctions(onnx::ModelProto& model) {
  for (onnx::FunctionProto& function : *model.mutable_functions())
    if (!functions_.emplace(keyOf(function.domain(), function.name(), function.overload()), &function).second)
      return Status::error("function " + named(function.name()) + " of domain " + named(function.domain()) +
                           " is defined twice");
  return Status::ok();
}

Status ModelImporter::inlineFunction(onnx::NodeProto& node, onnx::FunctionProto& function,
                                     const std::string& description, int index, Scope& scope) {
  if (scope.frame->depth >= kDeepestCall)
    return Status::error(description + ": functions call each other more than " + std::to_string(kDeepestCall) +
                         " deep; is it recursive?");
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return Status::error(description + ": it is given " + std::to_string(node.input_size()) + " inputs and " +
                         std::to_string(node.output_size()) + " outputs, the function has " +
                         std::to_string(function.input_size()) + " and " + std::to_string(function.output_size()));

  int64_t entries = function.input_size() + function.attribute_proto_size() + function.opset_import_size();
  LOCUTION_RETURN_IF_ERROR(countInlined(entries * kNodeBytes, scope));
  Frame frame;
  frame.isFunction = true;
  frame.depth = scope.frame->depth + 1;
  LOCUTION_RETURN_IF_ERROR(readImports(function.opset_import(), frame.opsets).withContext(description));
  for (const auto& [domain, version] : scope.frame->opsets) frame.opsets.emplace(domain, version);
  std::string call = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : function.name();
  frame.prefix = (scope.frame->prefix + call).substr(0, kLongestPrefix) + "/";

  const AttrBindings* outer = scope.frame->isFunction ? &scope.frame->bindings : nullptr;
  for (onnx::AttributeProto& attribute : *function.mutable_attribute_proto())
    frame.bindings[attribute.name()] = AttrSource{&attribute, &scope};
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    auto source = resolveAttr(attribute, scope, outer);
    if (!source) return source.status().withContext(description);
    if (source->proto != nullptr) frame.bindings[attribute.name()] = *source;
  }

  Scope body;
  body.frame = &frame;
  body.region = scope.region;
  body.where = description + ": ";
  body.depth = scope.depth + 1;
  body.isShared = true;
  body.sourceIndex = scope.isMain() ? index : scope.sourceIndex;
  std::unordered_set<std::string> local;
  for (int i = 0; i < function.input_size(); ++i) {
    ValueId id;
    if (i < node.input_size() && !node.input(i).empty()) id = scope.find(node.input(i)).value_or(ValueId{});
    body.values[function.input(i)] = id;
    local.insert(function.input(i));
  }
  int32_t firstOwn = result_.graph.valueCount();
  LOCUTION_RETURN_IF_ERROR(importNodes(*function.mutable_node(), local, body));

  std::set<int32_t> taken;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    auto value = body.find(function.output(i));
    if (!value)
      return Status::error(description + ": output " + named(function.output(i)) +
                           " of the function is made by none of its nodes");
    bindOutput(node.output(i), *value, firstOwn, taken, scope, body.sourceIndex);
  }
  return Status::ok();
}

Status ModelImporter::countInlined(int64_t bytes, const Scope& scope) {
  inlinedNodes_ += 1 + bytes / kNodeBytes;
  if (inlinedNodes_ <= options_.maxInlinedNodes) return Status::ok();
  return Status::error(scope.where + "functions unfold to more than " + std::to_string(options_.maxInlinedNodes) +
                       " nodes");
}

void ModelImporter::bindOutput(const std::string& name, ValueId value, int32_t firstOwn, std::set<int32_t>& taken,
                               Scope& scope, int index) {
  if (!value.isValid()) {
    scope.values[name] = value;
  } else if (value.index >= firstOwn && taken.insert(value.index).second) {
    patch_.rename(value, valueName(name, scope));
    scope.values[name] = value;
  } else {
    scope.values[name] = appendIdentity(value, valueName(name, scope), scope.region, index);
  }
}

}  // namespace locution::frontend

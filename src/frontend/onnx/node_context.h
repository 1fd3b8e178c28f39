// What a normalising function sees of one node of the file, and what it builds the internal form with. The function ends with
// `finish` (a node whose outputs are the file's) or binds every wanted output.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/attributes.h"
#include "frontend/onnx/scope.h"
#include "graph/patch.h"

namespace locution::frontend {

class ModelImporter;

/// A graph attribute, imported as a region.
struct ImportedRegion {
  graph::RegionId id;
  size_t inputs = 0, outputs = 0;
};

class NodeContext {
 public:
  using ValueId = graph::ValueId;
  using Inputs = std::vector<ValueId>;

  NodeContext(ModelImporter& importer, Scope& scope, onnx::NodeProto& node, const std::string& description,
              int64_t opset, int sourceIndex, Inputs inputs, NodeAttrs attrs);

  const std::string& opType() const { return node_.op_type(); }
  int64_t opset() const { return opset_; }
  const Inputs& inputs() const { return inputs_; }
  ValueId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId{}; }
  bool has(size_t i) const { return input(i).isValid(); }
  /// Outputs that the file lists, left-out ones included.
  size_t outputCount() const { return outputs_.size(); }
  bool wants(size_t i) const { return i < outputs_.size() && !node_.output(static_cast<int>(i)).empty(); }

  graph::Attrs& attrs() { return attrs_.values; }
  int64_t intAttr(std::string_view name, int64_t fallback) const;
  double floatAttr(std::string_view name, double fallback) const;
  std::string textAttr(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> intsAttr(std::string_view name) const;
  bool hasAttr(std::string_view name) const { return attrs_.values.contains(name); }

  /// The constant behind a value, or nullptr.
  const Tensor* constant(ValueId id) const;
  ValueKind kind(ValueId id) const;
  ValueId addConstant(Tensor tensor, std::string_view stem);
  ValueId addInts(const std::vector<int64_t>& values, std::string_view stem) {
    return addConstant(Tensor::vectorI64(values), stem);
  }
  ValueId addInt(int64_t value, std::string_view stem) { return addConstant(Tensor::scalarI64(value), stem); }
  /// A float scalar of the data type of `like`.
  ValueId addScalarLike(double value, ValueId like, std::string_view stem);
  /// A node with one output, with more.
  ValueId add(const std::string& op, Inputs inputs, graph::Attrs attrs = {});
  std::vector<ValueId> addMany(const std::string& op, Inputs inputs, graph::Attrs attrs, size_t outputs);

  /// The node that gives all outputs of the file's node.
  graph::NodeId finish(const std::string& op, Inputs inputs, graph::Attrs attrs);
  /// Output `i` of the file's node is this value (through an Identity node, which keeps the output's name).
  void bind(size_t i, ValueId value);
  /// Output `i` is a constant.
  void bindConstant(size_t i, Tensor tensor);

  bool hasGraph(std::string_view attribute) const { return attrs_.graphs.contains(attribute); }
  /// Imports a graph attribute as the next region of `owner`.
  Result<ImportedRegion> addRegion(std::string_view attribute, graph::NodeId owner);
  /// Imports a graph's nodes into the region `into`, its inputs being `inputs`; gives its outputs.
  Result<Inputs> inlineGraph(std::string_view attribute, graph::RegionId into, const Inputs& inputs);
  /// What a graph attribute declares for its outputs; nullopt where it declares nothing.
  std::vector<std::optional<ValueType>> declaredOutputs(std::string_view attribute) const;
  /// The following nodes go to this region (the file's node's own region by default).
  void setRegion(graph::RegionId region) { region_ = region; }
  graph::Patch& patch();

  /// Notes the node as unsupported; the import goes on to find the others. Returns ok, with the outputs bound to something.
  Status unsupported(const std::string& reason);
  void warn(const std::string& text);

  bool isBound() const;

 private:
  graph::NodeId append(const std::string& op, Inputs inputs, graph::Attrs attrs, std::vector<std::string> names,
                       size_t outputs);

  ModelImporter& importer_;
  Scope& scope_;
  onnx::NodeProto& node_;
  const std::string& description_;
  int64_t opset_;
  int sourceIndex_;
  Inputs inputs_;
  NodeAttrs attrs_;
  graph::RegionId region_;
  std::vector<ValueId> outputs_;
};

}  // namespace locution::frontend

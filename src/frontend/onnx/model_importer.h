// Walks a ModelProto: graphs, nodes, functions. Internal to the importer; NodeContext is what operator families see.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/onnx_importer.h"
#include "frontend/onnx/tensor_proto.h"
#include "frontend/onnx/type_proto.h"
#include "graph/patch.h"
#include "onnx.pb.h"

namespace locution::frontend {

class ModelImporter {
 public:
  ModelImporter(const ImportOptions& options, std::optional<std::string> folder);

  /// Consumes the model. Messages go without the file's name.
  Result<ImportedModel> run(onnx::ModelProto& model);

 private:
  friend class NodeContext;
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using ValueId = graph::ValueId;

  Status readImports(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports, OpsetImports& out);
  Status checkVersions(const onnx::ModelProto& model, const OpsetImports& imports);
  Status indexFunctions(onnx::ModelProto& model);

  Status importMainGraph(onnx::GraphProto& graph, Scope& scope);
  Status importInitializers(onnx::GraphProto& graph, Scope& scope);
  /// Nodes of a graph or a function body, in the order they depend on each other.
  Status importNodes(Nodes& nodes, const std::unordered_set<std::string>& local, Scope& scope);
  Status importNode(onnx::NodeProto& node, int index, Scope& scope);
  Status inlineFunction(onnx::NodeProto& node, onnx::FunctionProto& function, const std::string& description, int index,
                        Scope& scope);
  /// Functions that call functions multiply: what is copied by inlining is counted (a node, or what is as large).
  Status countInlined(int64_t bytes, const Scope& scope);
  /// A graph attribute's initializers and nodes in `child`, which has its inputs already; gives its outputs.
  Result<std::vector<ValueId>> importBody(onnx::GraphProto& graph, Scope& child);
  Result<ImportedRegion> importRegion(const AttrSource& source, std::string_view attribute, graph::NodeId owner,
                                      const std::string& description, const Scope& scope);
  Scope childScope(const AttrSource& source, std::string_view attribute, graph::RegionId region,
                   const std::string& description, const Scope& scope) const;

  std::string nodeText(const onnx::NodeProto& node, int index, const Scope& scope) const;
  int64_t opsetOf(std::string_view domain, const Scope& scope) const;
  /// The name in the graph of what the file calls `name` in this scope.
  std::string valueName(const std::string& name, const Scope& scope);
  std::string freshName(const std::string& stem);
  /// In `scope`, `name` means `value` from now on; the value takes the name when it was made after `firstOwn` and is still free.
  void bindOutput(const std::string& name, ValueId value, int32_t firstOwn, std::set<int32_t>& taken, Scope& scope,
                  int index);
  ValueId appendIdentity(ValueId value, const std::string& name, graph::RegionId region, int index);
  void noteUnsupported(const std::string& text);
  void warn(const std::string& text);

  const ImportOptions& options_;
  ImportedModel result_;
  graph::Patch patch_;
  TensorReader tensors_;
  AttrTensors attrTensors_;
  TypeReader types_;
  std::map<std::string, onnx::FunctionProto*> functions_;
  /// Names of the main graph, which keep their spelling: others avoid them.
  std::unordered_set<std::string> mainNames_;
  std::vector<std::string> unsupported_;
  int64_t unsupportedCount_ = 0;
  int64_t warningCount_ = 0;
  int64_t inlinedNodes_ = 0;
};

}  // namespace locution::frontend

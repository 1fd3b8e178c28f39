// Attributes of a node, checked against the schema; references to a function's attributes are resolved.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/schema.h"
#include "frontend/onnx/tensor_proto.h"
#include "graph/graph.h"
#include "onnx.pb.h"

namespace locution::frontend {

struct Scope;

/// An attribute as written where it was given: `scope` is what names in its graph (if any) refer to.
struct AttrSource {
  onnx::AttributeProto* proto = nullptr;
  const Scope* scope = nullptr;
};
using AttrBindings = std::map<std::string, AttrSource, std::less<>>;

/// What a node's attributes come to: plain ones as values, graphs as where to find them.
struct NodeAttrs {
  graph::Attrs values;
  std::map<std::string, AttrSource, std::less<>> graphs;
};

/// Converts tensors of attributes. Inside functions a tensor is read once for every call: the first takes, later ones share.
class AttrTensors {
 public:
  explicit AttrTensors(TensorReader& reader) : reader_(reader) {}
  Result<Tensor> read(onnx::TensorProto& proto, bool keep);
  Result<Tensor> readSparse(onnx::SparseTensorProto& proto, bool keep);

 private:
  TensorReader& reader_;
  std::map<const void*, Tensor> kept_;
};

/// The attribute a name stands for: itself, or (for a reference) the caller's; a null proto when the caller gives none.
Result<AttrSource> resolveAttr(onnx::AttributeProto& proto, const Scope& scope, const AttrBindings* bindings);

/// `keep`: the node may be imported again. Errors: wrong type, missing though required, a reference outside a function. Unknown attributes go to `warnings`.
Result<NodeAttrs> readAttrs(onnx::NodeProto& node, const OpRow& row, const Scope& scope, const AttrBindings* bindings,
                            bool keep, AttrTensors& tensors, std::vector<std::string>& warnings);

}  // namespace locution::frontend

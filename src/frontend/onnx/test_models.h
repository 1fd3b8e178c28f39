// For tests: small models built by hand, and graphs as short text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/onnx/onnx_importer.h"
#include "frontend/onnx/tensor_proto.h"
#include "onnx.pb.h"

namespace locution::frontend::testing {

using Names = std::vector<std::string>;

/// Attributes of a node, by method chaining: `Attributes(node).i("axis", 1).is("pads", {0, 1})`.
class Attributes {
 public:
  explicit Attributes(onnx::NodeProto& node) : node_(node) {}
  Attributes& i(const std::string& name, int64_t value);
  Attributes& f(const std::string& name, float value);
  Attributes& s(const std::string& name, const std::string& value);
  Attributes& is(const std::string& name, const std::vector<int64_t>& values);
  Attributes& fs(const std::string& name, const std::vector<float>& values);
  Attributes& ss(const std::string& name, const Names& values);
  Attributes& t(const std::string& name, const Tensor& value);
  Attributes& g(const std::string& name, const onnx::GraphProto& value);
  /// A reference to an attribute of the function around.
  Attributes& ref(const std::string& name, const std::string& functionAttribute,
                  onnx::AttributeProto::AttributeType type);

 private:
  onnx::AttributeProto& add(const std::string& name, onnx::AttributeProto::AttributeType type);
  onnx::NodeProto& node_;
};

/// Appends to a graph or a function body.
template <typename Body>
Attributes addNode(Body& body, const std::string& op, const Names& inputs, const Names& outputs,
                   const std::string& domain = "") {
  onnx::NodeProto& node = *body.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  for (const std::string& s : inputs) node.add_input(s);
  for (const std::string& s : outputs) node.add_output(s);
  return Attributes(node);
}

/// Dims: a number, a name, or "" for nothing.
void addValueInfo(onnx::ValueInfoProto& info, const std::string& name, DType dtype, const Names& dims);

/// A model with one float input `x` of batch x 3 x 4.
class TestModel {
 public:
  explicit TestModel(int64_t opset);
  onnx::ModelProto proto;
  onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  void import(const std::string& domain, int64_t version);
  void input(const std::string& name, DType dtype, const Names& dims);
  void constant(const std::string& name, const Tensor& tensor);
  Attributes node(const std::string& op, const Names& inputs, const Names& outputs, const std::string& domain = "") {
    return addNode(graph(), op, inputs, outputs, domain);
  }
  void output(const std::string& name);
  std::string bytes() const;
  Result<ImportedModel> tryImport(ImportOptions options = {}) const;
  /// The nodes as text, one a line; "error: ..." when it can't be imported.
  std::string text() const;
  /// The message of a failed import.
  std::string error() const;
};

/// "y = Add(x, 0.5)": constants of up to 8 elements are shown by their values, attributes in braces, regions indented.
std::string toText(const graph::Graph& graph, graph::RegionId region, const std::string& indent = "");

/// A fresh folder, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace locution::frontend::testing

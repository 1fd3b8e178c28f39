// Writes graphs node by node: what models of our own are made with. Types are left to inference.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/patch.h"

namespace locution::generator::tlm {

class GraphBuilder {
 public:
  using Value = graph::ValueId;

  explicit GraphBuilder(const std::string& name) : patch_(graph_) { patch_.setName(name); }
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Value input(const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
    return patch_.addInput(graph_.mainRegion(), name, ValueType{dtype, Shape::of(dims)});
  }
  Value constant(Tensor tensor) { return patch_.addConstant("constant", std::move(tensor)); }
  Value number(float value) { return constant(Tensor::scalarF32(value)); }
  Value ints(const std::vector<int64_t>& values) { return constant(Tensor::vectorI64(values)); }

  std::vector<Value> nodes(const std::string& op, std::vector<Value> inputs, graph::Attrs attrs, size_t outputs) {
    ValueType unknown;
    unknown.shape = Shape::unranked();
    const graph::NodeId node = patch_.append(
        graph_.mainRegion(), {op, std::move(inputs), std::move(attrs), std::vector<ValueType>(outputs, unknown)});
    return graph_.node(node).outputs;
  }
  Value node(const std::string& op, std::vector<Value> inputs, graph::Attrs attrs = {}) {
    return nodes(op, std::move(inputs), std::move(attrs), 1)[0];
  }
  Value add(Value a, Value b) { return node("Add", {a, b}); }
  Value sub(Value a, Value b) { return node("Sub", {a, b}); }
  Value mul(Value a, Value b) { return node("Mul", {a, b}); }
  Value matMul(Value a, Value b) { return node("MatMul", {a, b}); }
  Value einsum(const std::string& equation, Value a, Value b) {
    return node("Einsum", {a, b}, {{"equation", equation}});
  }
  Value reshape(Value x, const std::vector<int64_t>& dims) { return node("Reshape", {x, ints(dims)}); }
  Value transpose(Value x, const std::vector<int64_t>& perm) { return node("Transpose", {x}, {{"perm", perm}}); }
  Value slice(Value x, int64_t axis, int64_t begin, int64_t end) {
    return node("Slice", {x, ints({begin}), ints({end}), ints({axis})});
  }
  /// Without the axis.
  Value reduce(const std::string& op, Value x, int64_t axis) {
    return node(op, {x, ints({axis})}, {{"keepdims", int64_t{0}}});
  }

  void output(Value value, const std::string& name) {
    patch_.rename(value, name);
    outputs_.push_back(value);
  }
  graph::Graph take() {
    patch_.setRegionOutputs(graph_.mainRegion(), outputs_);
    return std::move(graph_);
  }

 private:
  graph::Graph graph_;
  graph::Patch patch_;
  std::vector<Value> outputs_;
};

}  // namespace locution::generator::tlm

// For tests of operators with many optional inputs and outputs: one node from lists of both, its inference, its stages, and its loops
// run by the interpreter; and comparison with numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "graph/patch.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "ops/contexts.h"

namespace locution::ops {

/// What goes into a node: a missing input, a tensor, or a type alone (for inference).
struct NodeInput {
  std::optional<Tensor> tensor;
  std::optional<ValueType> type;
  NodeInput() = default;
  NodeInput(Tensor t) : tensor(std::move(t)) {}   // NOLINT: a tensor is an input
  NodeInput(ValueType t) : type(std::move(t)) {}  // NOLINT
};

inline ValueType typeOf(DType dtype, Shape shape) {
  ValueType t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  return t;
}

/// A graph of one node.
struct NodeCase {
  graph::Graph graph;
  graph::NodeId node;
  std::vector<NodeInput> inputs;

  /// Tensors whose index is in `constants` are constants of the graph. `wanted`: one entry an output, false for those left out.
  NodeCase(const std::string& op, std::vector<NodeInput> given, graph::Attrs attrs = {},
           std::vector<bool> wanted = {true}, const std::set<size_t>& constants = {})
      : inputs(std::move(given)) {
    graph::Patch patch(graph);
    std::vector<graph::ValueId> ids;
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string name = "in" + std::to_string(i);
      if (inputs[i].tensor && constants.contains(i)) {
        ids.push_back(patch.addConstant(name, *inputs[i].tensor));
      } else if (inputs[i].tensor) {
        ids.push_back(
            patch.addInput(graph.mainRegion(), name, typeOf(inputs[i].tensor->dtype(), inputs[i].tensor->shape())));
      } else if (inputs[i].type) {
        ids.push_back(patch.addInput(graph.mainRegion(), name, *inputs[i].type));
      } else {
        ids.emplace_back();
      }
    }
    graph::Patch::NewNode fresh{op, std::move(ids), std::move(attrs), std::vector<ValueType>(wanted.size()), {}, {},
                                -1};
    node = patch.append(graph.mainRegion(), std::move(fresh));
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) patch.dropOutput(node, i);
    }
  }

  /// Sets the outputs' types.
  Status infer() {
    KnownDims known;
    LOCUTION_ASSIGN_OR_RETURN(InferredTypes types, inferNode(graph, node, known));
    graph::Patch patch(graph);
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i]) patch.setType(graph.node(node).outputs[i], *types[i]);
    }
    return Status::ok();
  }
  ValueType output(size_t i = 0) const { return graph.type(graph.node(node).outputs[i]); }
  Result<loop::Computation> computation() {
    LOCUTION_RETURN_IF_ERROR(infer());
    return computeNode(graph, node);
  }
  /// The wanted outputs.
  Result<std::vector<Tensor>> run() {
    LOCUTION_RETURN_IF_ERROR(infer());
    LOCUTION_ASSIGN_OR_RETURN(NodeComputation c, computeNodeWithValues(graph, node));
    loop::Function function = loop::naiveLoops(c.computation);
    LOCUTION_RETURN_IF_ERROR(loop::verify(function));
    std::vector<Tensor> params;
    for (graph::ValueId id : c.inputs) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (graph.node(node).inputs[i] == id) {
          params.push_back(*inputs[i].tensor);
          break;
        }
      }
    }
    for (graph::ValueId id : c.outputs) params.emplace_back(graph.type(id).dtype, graph.type(id).shape.extents());
    LOCUTION_RETURN_IF_ERROR(loop::interpret(function, params));
    return std::vector<Tensor>(params.end() - static_cast<int64_t>(c.outputs.size()), params.end());
  }
};

/// ((i * mul) % mod + off) / div for element i: small numbers without an order.
inline Tensor pattern(const std::vector<int64_t>& dims, int64_t mul = 7, int64_t mod = 11, int64_t off = -5,
                      double div = 2, DType dtype = DType::F32) {
  Tensor t(dtype, dims);
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, static_cast<double>(i * mul % mod + off) / div);
  return t;
}

inline void expectValues(const Tensor& t, const std::vector<int64_t>& dims, const std::vector<double>& values,
                         double tolerance = 1e-5) {
  ASSERT_EQ(t.dims(), dims);
  ASSERT_EQ(t.elements(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    double got = t.elementAsDouble(static_cast<int64_t>(i));
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(got)) << "element " << i << " is " << got;
    } else if (got != values[i]) {
      EXPECT_NEAR(got, values[i], tolerance * std::max(1.0, std::abs(values[i]))) << "element " << i;
    }
  }
}

/// The outputs of a node that must run.
inline std::vector<Tensor> outputsOf(NodeCase node) {
  Result<std::vector<Tensor>> out = node.run();
  EXPECT_TRUE(out.isOk()) << out.status().message();
  return out.isOk() ? *out : std::vector<Tensor>{};
}

/// The inferred type's text, or the error.
inline std::string inferredText(NodeCase node, size_t output = 0) {
  Status s = node.infer();
  return s.isOk() ? node.output(output).str() : "error: " + s.message();
}

inline graph::Attr ints(std::vector<int64_t> values) { return graph::Attr(std::move(values)); }
inline graph::Attr text(std::string value) { return graph::Attr(std::move(value)); }
inline graph::Attr integer(int64_t value) { return graph::Attr(value); }
inline graph::Attr number(double value) { return graph::Attr(value); }

}  // namespace locution::ops

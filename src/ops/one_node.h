// For tests: an operator on tensors, through inference, compute, the unscheduled loops and the interpreter; and inference over the
// nodes of a whole graph in text form.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/patch.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "ops/contexts.h"

namespace locution::ops {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline Tensor f32(std::vector<int64_t> dims, const std::vector<float>& v) {
  return Tensor::of<float>(DType::F32, std::move(dims), v);
}
inline Tensor i64(std::vector<int64_t> dims, const std::vector<int64_t>& v) {
  return Tensor::of<int64_t>(DType::I64, std::move(dims), v);
}
inline Tensor i32(std::vector<int64_t> dims, const std::vector<int32_t>& v) {
  return Tensor::of<int32_t>(DType::I32, std::move(dims), v);
}
/// Any type, from numbers.
inline Tensor ofType(DType type, std::vector<int64_t> dims, const std::vector<double>& v) {
  Tensor t(type, std::move(dims));
  for (size_t i = 0; i < v.size(); ++i) t.setElement(static_cast<int64_t>(i), v[i]);
  return t;
}

class OneNode {
 public:
  explicit OneNode(std::string op) : op_(std::move(op)), patch_(graph_) {}
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  OneNode& attr(const std::string& key, graph::Attr value) {
    attrs_[key] = std::move(value);
    return *this;
  }
  /// An input whose bytes are known at run time only.
  OneNode& in(const Tensor& t) {
    type({t.dtype(), t.shape()});
    tensors_.back() = t;
    return *this;
  }
  OneNode& constant(const Tensor& t) {
    inputs_.push_back(patch_.addConstant("c" + std::to_string(inputs_.size()), t));
    tensors_.push_back(t);
    return *this;
  }
  OneNode& absent() {
    inputs_.emplace_back();
    tensors_.emplace_back();
    return *this;
  }
  /// For inference alone.
  OneNode& type(ValueType t) {
    inputs_.push_back(patch_.addInput(graph_.mainRegion(), "x" + std::to_string(inputs_.size()), std::move(t)));
    tensors_.emplace_back();
    return *this;
  }
  OneNode& outputs(size_t n) {
    outputCount_ = n;
    return *this;
  }

  Result<InferredTypes> infer() {
    if (!node_.isValid()) {
      ValueType unknown;
      unknown.shape = Shape::unranked();
      node_ = patch_.append(graph_.mainRegion(), {op_, inputs_, attrs_, std::vector<ValueType>(outputCount_, unknown)});
    }
    return inferNode(graph_, node_, known_);
  }
  /// The types as text, or the message.
  std::string inferred() {
    Result<InferredTypes> types = infer();
    if (!types) return types.status().message();
    std::string out;
    for (const auto& t : *types) out += (out.empty() ? "" : ", ") + (t ? t->str() : "none");
    return out;
  }
  Result<std::vector<Tensor>> run() {
    LOCUTION_ASSIGN_OR_RETURN(InferredTypes types, infer());
    for (size_t i = 0; i < types.size(); ++i) patch_.setType(patch_.output(node_, i), *types[i]);
    LOCUTION_ASSIGN_OR_RETURN(NodeComputation made, computeNodeWithValues(graph_, node_));
    checks_ = made.checks;
    loop::Function f = loop::naiveLoops(made.computation);
    LOCUTION_RETURN_IF_ERROR(loop::verify(f));
    std::vector<Tensor> params;
    for (graph::ValueId v : made.inputs)
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i] == v) {
          params.push_back(tensors_[i]);
          break;
        }
    for (graph::ValueId v : made.outputs) params.emplace_back(graph_.type(v).dtype, graph_.type(v).shape.extents());
    LOCUTION_RETURN_IF_ERROR(loop::interpret(f, params));
    return std::vector<Tensor>(params.begin() + static_cast<std::ptrdiff_t>(made.inputs.size()), params.end());
  }
  const std::vector<IndexCheck>& checks() const { return checks_; }

 private:
  std::string op_;
  graph::Graph graph_;
  graph::Patch patch_;
  graph::Attrs attrs_;
  std::vector<graph::ValueId> inputs_;
  std::vector<Tensor> tensors_;
  size_t outputCount_ = 1;
  graph::NodeId node_;
  KnownDims known_;
  std::vector<IndexCheck> checks_;
};

/// Dims and elements; NaN equals NaN, other values up to `relative` (and as much again absolutely).
inline void expectTensor(const Tensor& got, const std::vector<int64_t>& dims, const std::vector<double>& want,
                         double relative = 1e-6) {
  ASSERT_EQ(got.dims(), dims);
  ASSERT_EQ(got.elements(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.elements(); ++i) {
    double a = got.elementAsDouble(i), b = want[static_cast<size_t>(i)];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    EXPECT_LE(std::abs(a - b), relative * (std::abs(b) + 1)) << "element " << i << ": " << a << " and " << b;
  }
}
/// The first output.
inline void expectRun(OneNode& node, const std::vector<int64_t>& dims, const std::vector<double>& want,
                      double relative = 1e-6) {
  Result<std::vector<Tensor>> got = node.run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor(got->front(), dims, want, relative);
}
/// The message of an error in inference or compute.
inline std::string failure(OneNode& node) {
  Result<std::vector<Tensor>> got = node.run();
  return got.isOk() ? "no error" : got.status().message();
}

/// Infers node after node and sets the types found.
inline Status inferGraph(graph::Graph& graph, KnownDims& known) {
  graph::Patch patch(graph);
  for (graph::NodeId id : graph.main().nodes) {
    Result<InferredTypes> types = inferNode(graph, id, known);
    if (!types) return types.status().withContext(graph.node(id).op);
    for (size_t i = 0; i < types->size(); ++i)
      if ((*types)[i]) patch.setType(graph.node(id).outputs[i], *(*types)[i]);
  }
  return Status::ok();
}

}  // namespace locution::ops

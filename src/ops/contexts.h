// InferContext and ComputeContext over a node of a Graph: how passes, fusion and tests ask an operator for its facts. Neither edits
// the graph: inference hands back types for a Patch to set, compute gives stages over buffers named after graph values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// Integer contents of values as far as they are known: what Shape, Gather, Concat ... carry from node to node.
using KnownDims = std::map<graph::ValueId, std::vector<Dim>>;

/// What inference found: a type an output (nullopt: left out by the node, or not set).
using InferredTypes = std::vector<std::optional<ValueType>>;

class GraphInferContext : public InferContext {
 public:
  /// Reads and extends `known`, which outlives this.
  GraphInferContext(const graph::Graph& graph, graph::NodeId node, KnownDims& known);

  const graph::Node& node() const override { return node_; }
  size_t inputCount() const override { return node_.inputs.size(); }
  bool hasInput(size_t i) const override { return node_.hasInput(i); }
  const ValueType& input(size_t i) const override;
  const Tensor* constant(size_t i) const override { return graph_.constant(node_.input(i)); }
  std::optional<std::vector<Dim>> inputDims(size_t i) const override;
  size_t outputCount() const override { return node_.outputs.size(); }
  bool wantsOutput(size_t i) const override { return i < node_.outputs.size() && node_.outputs[i].isValid(); }
  void setOutput(size_t i, ValueType type) override;
  void setOutputDims(size_t i, std::vector<Dim> dims) override;
  /// "%<output>.0", "%<output>.1" ...: the same symbols whenever the same node is inferred again.
  Dim freshDim() override;

  const InferredTypes& types() const { return types_; }
  /// For the ops whose outputs depend on their regions.
  const graph::Graph& graph() const { return graph_; }

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  KnownDims& known_;
  InferredTypes types_;
  int fresh_ = 0;
};

/// What no machine's memory holds: shapes beyond it are errors, so that products of extents and byte counts don't overflow.
constexpr int64_t kMostElements = int64_t{1} << 47;

/// The op's infer on a node. The message of an error doesn't name the node: see graph::describe.
Result<InferredTypes> inferNode(const graph::Graph& graph, graph::NodeId node, KnownDims& known);

/// Input elements that must lie in [low, high] before a kernel runs.
struct IndexCheck {
  graph::ValueId value;
  int64_t low = 0, high = 0;
};

/// Buffers of graph values and temporaries with unique names: one for all the nodes that go into a kernel.
class KernelBuffers {
 public:
  explicit KernelBuffers(const graph::Graph& graph) : graph_(graph) {}
  const graph::Graph& graph() const { return graph_; }
  /// The buffer of a value of static shape; the same one whenever it is asked for.
  loop::BufferRef of(graph::ValueId value);
  /// The value behind a buffer that `of` made; an invalid id for temporaries.
  graph::ValueId valueOf(const loop::Buffer* buffer) const;
  loop::BufferRef temporary(const std::string& stem, DType dtype, const std::vector<int64_t>& dims);

 private:
  const graph::Graph& graph_;
  std::map<graph::ValueId, loop::BufferRef> buffers_;
  std::map<const loop::Buffer*, graph::ValueId> values_;
  std::map<std::string, int> stems_;
};

/// Collects the stages (or raw loops) of one node.
class NodeComputeContext : public ComputeContext {
 public:
  NodeComputeContext(graph::NodeId node, KernelBuffers& buffers);

  const graph::Node& node() const override { return node_; }
  size_t inputCount() const override { return node_.inputs.size(); }
  bool hasInput(size_t i) const override { return node_.hasInput(i); }
  const ValueType& input(size_t i) const override;
  const Tensor* constant(size_t i) const override { return graph_.constant(node_.input(i)); }
  size_t outputCount() const override { return node_.outputs.size(); }
  bool wantsOutput(size_t i) const override { return i < node_.outputs.size() && node_.outputs[i].isValid(); }
  const ValueType& output(size_t i) const override;
  loop::BufferRef inputBuffer(size_t i) override;
  loop::BufferRef outputBuffer(size_t i) override;
  loop::BufferRef temporary(const std::string& stem, DType dtype, const std::vector<int64_t>& dims) override;
  void addStage(loop::Stage stage) override;
  void setRaw(loop::Stmt body) override;
  void checkIndices(size_t i, int64_t low, int64_t high) override;

  /// Runs the op's compute. Errors: what it can't express (shapes that aren't static, strings ...), a constant index out of range.
  Status run();

  const std::vector<loop::Stage>& stages() const { return stages_; }
  const loop::Stmt& raw() const { return raw_; }
  const std::vector<IndexCheck>& checks() const { return checks_; }

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  KernelBuffers& buffers_;
  std::vector<loop::Stage> stages_;
  loop::Stmt raw_;
  std::vector<IndexCheck> checks_;
  Status status_;
};

/// A kernel with the graph values behind its params.
struct NodeComputation {
  loop::Computation computation;
  std::vector<graph::ValueId> inputs, outputs;  ///< of computation.inputs and .outputs, in order
  std::vector<IndexCheck> checks;
};

/// Joins the stages of nodes in program order; `outputs` are what the kernel must write. Inputs are the values that the stages read
/// and don't write, each once, in order of first use.
NodeComputation assemble(const std::string& name, KernelBuffers& buffers, std::vector<loop::Stage> stages,
                         const std::vector<graph::ValueId>& outputs, std::vector<IndexCheck> checks);

/// One node as a kernel of its own. The message of an error doesn't name the node.
Result<NodeComputation> computeNodeWithValues(const graph::Graph& graph, graph::NodeId node);
Result<loop::Computation> computeNode(const graph::Graph& graph, graph::NodeId node);

}  // namespace locution::ops

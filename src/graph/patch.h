// Patch: the only way to edit a Graph. Operations take effect at once and keep users, names and producers consistent; removal
// of what became dead is explicit. A Patch counts its edits, so that a pass can say "(unchanged)".
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace locution::graph {

class Patch {
 public:
  explicit Patch(Graph& graph) : graph_(graph) {}

  /// What a new node is made of; outputs get `types` and names derived from `names` (made unique; "" gives a fresh one).
  struct NewNode {
    std::string op;
    std::vector<ValueId> inputs;
    Attrs attrs = {};
    std::vector<ValueType> types;           ///< one an output
    std::vector<std::string> names = {};    ///< one an output, or none
    std::string name = {};
    int32_t sourceIndex = -1;
  };

  ValueId addInput(RegionId region, const std::string& name, ValueType type);
  /// A region belonging to `owner` (appended to its list).
  RegionId addRegion(NodeId owner);
  void setRegionInputs(RegionId region, std::vector<ValueId> inputs);
  void setRegionOutputs(RegionId region, std::vector<ValueId> outputs);
  ValueId addConstant(const std::string& name, Tensor tensor, RegionId region = RegionId{0});
  /// Appends at the end of `region`.
  NodeId append(RegionId region, NewNode node);
  /// Inserts just before / after `at` in the region of `at`.
  NodeId insertBefore(NodeId at, NewNode node);
  NodeId insertAfter(NodeId at, NewNode node);
  /// The single output of a node made by one of the above.
  ValueId output(NodeId node, size_t i = 0) const { return graph_.node(node).outputs[i]; }
  /// An output left out: the value stays in the pool without a producer.
  void dropOutput(NodeId node, size_t i);

  /// Every read of `from`, region outputs included, becomes `to`. Graph outputs keep their name: when `from` is a main output,
  /// names are swapped so that the output's name stays what the file said (unless `to` is a graph input, a constant or itself
  /// an output; then the output keeps its own value through an Identity node).
  void replaceUses(ValueId from, ValueId to);
  void setInput(NodeId node, size_t i, ValueId value);
  void setInputs(NodeId node, std::vector<ValueId> inputs);
  void setAttr(NodeId node, const std::string& key, Attr value);
  void eraseAttr(NodeId node, const std::string& key);
  void setOp(NodeId node, const std::string& op);
  void setType(ValueId value, ValueType type);
  void rename(ValueId value, const std::string& name);
  /// Turns the value into a constant (its producer loses that output).
  void makeConstant(ValueId value, Tensor tensor);
  /// Lets go of a constant's bytes: the value must have no users any more.
  void releaseConstant(ValueId value);
  /// Moves `node` (and its regions) to the end of `region`.
  void moveToEnd(NodeId node, RegionId region);
  /// Puts the nodes of `region` in this order (a permutation that keeps them topological).
  void reorder(RegionId region, std::vector<NodeId> nodes);
  /// The node must have no used outputs. Its regions die with it.
  void remove(NodeId node);
  /// Removes every node whose outputs nobody uses; returns how many.
  int removeDead();
  /// "name", or "name.2", "name.3" ... when taken.
  std::string freshName(const std::string& stem);

  int edits() const { return edits_; }
  const Graph& graph() const { return graph_; }

 private:
  Graph& graph_;
  int edits_ = 0;
};

}  // namespace locution::graph

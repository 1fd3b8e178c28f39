// Patch: the only way to edit a Graph. Operations take effect at once and keep users, names and producers consistent; removal
// of what became dead is explicit. A Patch counts its edits, so that a pass can say "(unchanged)".
#pragma once

#include <cstddef>
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
    std::vector<ValueType> types;         ///< one an output
    std::vector<std::string> names = {};  ///< one an output, or none
    std::string name = {};
    int32_t sourceIndex = -1;
  };

  /// Names are made unique like those of new nodes.
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
  /// An output left out: the value, which nobody uses, stays in the pool without a producer, and its name is free again.
  void dropOutput(NodeId node, size_t i);

  /// Every read of `from`, region outputs included, becomes `to`. Graph outputs keep their name: when `from` is a main output,
  /// names are swapped so that the output's name stays what the file said (unless `to` is a graph input, a constant or itself
  /// an output; then the output keeps its own value through an Identity node). A graph input or constant that is itself an output
  /// stays that output. The node `except` goes on reading `from`: for new nodes that compute `to` from it.
  void replaceUses(ValueId from, ValueId to, NodeId except = {});
  void setInput(NodeId node, size_t i, ValueId value);
  void setInputs(NodeId node, std::vector<ValueId> inputs);
  void setAttr(NodeId node, const std::string& key, Attr value);
  void eraseAttr(NodeId node, const std::string& key);
  void setOp(NodeId node, const std::string& op);
  void setType(ValueId value, ValueType type);
  /// The name is made unique. Quantised types that name the value follow.
  void rename(ValueId value, const std::string& name);
  /// Turns the value into a constant (its producer loses that output). Its type takes dtype and shape of the tensor.
  void makeConstant(ValueId value, Tensor tensor);
  /// Lets go of a constant's bytes: the value must have no users any more.
  void releaseConstant(ValueId value);
  /// All constants that no node, region output or quantised type names; returns how many.
  int releaseDeadConstants();
  /// Moves `node` (and its regions) to the end of `region`. Constants that it reads and would no longer see move too.
  void moveToEnd(NodeId node, RegionId region);
  /// Puts the nodes of `region` in this order (a permutation that keeps them topological).
  void reorder(RegionId region, std::vector<NodeId> nodes);
  /// The node must have no used outputs. Its regions die with it.
  void remove(NodeId node);
  /// Removes every node whose outputs nobody uses; returns how many.
  int removeDead();
  /// "name", or "name.2", "name.3" ... when taken.
  std::string freshName(const std::string& stem);

  void setName(const std::string& name) { graph_.name = name; }
  void setNodeName(NodeId node, const std::string& name);
  void setSourceIndex(NodeId node, int32_t index);

  int edits() const { return edits_; }
  const Graph& graph() const { return graph_; }

 private:
  Value& value(ValueId id) { return graph_.values_[static_cast<size_t>(id.index)]; }
  Node& node(NodeId id) { return graph_.nodes_[static_cast<size_t>(id.index)]; }
  Region& region(RegionId id) { return graph_.regions_[static_cast<size_t>(id.index)]; }
  int64_t& order(NodeId id) { return graph_.order_[static_cast<size_t>(id.index)]; }
  std::vector<NodeId>& users(ValueId id) { return graph_.users_[static_cast<size_t>(id.index)]; }

  ValueId newValue(const std::string& stem, ValueType type, RegionId region);
  void claimName(ValueId value, std::string name);
  void freeName(ValueId value);
  void noteQuantisation(ValueId value);
  void noteConstant(ValueId value);
  void link(NodeId node, ValueId value);
  void unlink(NodeId node, ValueId value);
  void linkOutput(RegionId region, ValueId value);
  void unlinkOutput(RegionId region, ValueId value);
  NodeId create(RegionId region, std::ptrdiff_t position, NewNode fields);
  std::ptrdiff_t positionOf(NodeId node) const;
  int64_t orderAt(RegionId region, std::ptrdiff_t position);
  void replaceNodeReads(ValueId from, ValueId to, NodeId except);
  void replaceRegionOutputs(ValueId from, ValueId to);
  std::vector<NodeId> subtree(NodeId node) const;
  void kill(NodeId node, std::vector<ValueId>& released);
  bool hasUsedOutput(NodeId node) const;

  Graph& graph_;
  int edits_ = 0;
};

}  // namespace locution::graph

// Graph IR: a network as nodes over values. Nodes own nothing: values, nodes and regions live in the Graph's pools and are
// named by typed ids. Invariants (checked by `verify`): every value has one producer (a node, a region input, or a constant);
// nodes stand in topological order in their region; a region may read values of the regions around it. The only way to edit
// is a Patch (patch.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/shape.h"
#include "core/tensor.h"
#include "support/ids.h"
#include "support/status.h"

namespace locution::graph {

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using RegionId = Id<struct RegionTag>;

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor>;
/// Ordered by name, so that printing and hashing are stable.
using Attrs = std::map<std::string, Attr, std::less<>>;

struct Value {
  std::string name;  ///< unique in the graph, never empty
  ValueType type;
  NodeId producer;  ///< invalid for graph and region inputs and for constants
  int32_t producerOutput = -1;
  RegionId region;  ///< where it is defined
  Tensor constant;  ///< valid: the value is this constant
  bool isConstant() const { return constant.isValid(); }
};

struct Node {
  std::string op;            ///< a name of ops.inc: "Conv", "Kernel", ...
  std::string name;          ///< from the file; may be empty, need not be unique
  int32_t sourceIndex = -1;  ///< index in the file's node list, for messages
  Attrs attrs;
  std::vector<ValueId> inputs;    ///< an invalid id: an optional input left out
  std::vector<ValueId> outputs;   ///< an invalid id: an optional output left out
  std::vector<RegionId> regions;  ///< If: then, else; Loop, Scan: body; Kernel: its nodes
  RegionId parent;
  bool dead = false;  ///< removed: in no region any more, its other fields mean nothing

  bool hasAttr(std::string_view key) const { return attrs.find(key) != attrs.end(); }
  /// Of an attribute that is absent or of another type: the fallback, or nothing. A number serves as a list of one.
  int64_t intAttr(std::string_view key, int64_t fallback) const;
  double floatAttr(std::string_view key, double fallback) const;
  std::string stringAttr(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> intsAttr(std::string_view key) const;
  std::vector<double> floatsAttr(std::string_view key) const;
  /// The input id, invalid when absent or past the end.
  ValueId input(size_t i) const { return i < inputs.size() ? inputs[i] : ValueId{}; }
  bool hasInput(size_t i) const { return input(i).isValid(); }
};

struct Region {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<NodeId> nodes;  ///< topological order
  NodeId owner;               ///< invalid for the main region
  bool dead = false;          ///< its owner was removed
};

class Graph {
 public:
  Graph();

  std::string name;
  /// Of ai.onnx in the file the graph came from, for messages; 0: not from a file.
  int64_t opset = 0;
  /// Free text from the model's metadata_props, kept in the executable.
  std::map<std::string, std::string> metadata;

  RegionId mainRegion() const { return RegionId{0}; }
  const Region& main() const { return regions_[0]; }
  const Region& region(RegionId id) const { return regions_[static_cast<size_t>(id.index)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id.index)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  const ValueType& type(ValueId id) const { return value(id).type; }
  /// References to nodes, values and regions stay valid while a Patch adds others.
  /// Pool sizes: ids run from 0 below these; dead nodes and unused values are among them.
  int32_t valueCount() const { return static_cast<int32_t>(values_.size()); }
  int32_t nodeCount() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t regionCount() const { return static_cast<int32_t>(regions_.size()); }

  /// The value of that name, or an invalid id.
  ValueId findValue(std::string_view name) const;
  /// The constant behind `id`, or nullptr (also for an invalid id).
  const Tensor* constant(ValueId id) const;
  /// Nodes (of any region) that read `id`, one entry a use, in program order. O(1) amortised: kept up to date by Patch.
  const std::vector<NodeId>& users(ValueId id) const { return users_[static_cast<size_t>(id.index)]; }
  /// How often region outputs name `id`.
  int outputUses(ValueId id) const { return static_cast<int>(outputRegionsOf(id).size()); }
  /// The regions whose outputs name `id`, one entry a use, in no order.
  const std::vector<RegionId>& outputRegionsOf(ValueId id) const {
    return outputRegions_[static_cast<size_t>(id.index)];
  }
  /// A region output names it, or a node reads it.
  bool isUsed(ValueId id) const { return !users(id).empty() || outputUses(id) > 0; }
  /// It has a definition: a live node, a live region that lists it as an input, or its constant.
  bool isDefined(ValueId id) const;
  bool isMainInput(ValueId id) const;
  bool isMainOutput(ValueId id) const;
  /// In program order (a node stands before those of its regions). O(depth of nesting).
  bool isBefore(NodeId a, NodeId b) const;
  /// `inner` is `outer` or lies somewhere within it.
  bool encloses(RegionId outer, RegionId inner) const;
  /// `main` nodes and, depth first, those of their regions. The graph may be edited meanwhile: nodes added to a region under way
  /// aren't visited, removed ones are passed over.
  void forEachNode(const std::function<void(NodeId)>& visit) const;

 private:
  friend class Patch;
  void visitRegion(RegionId region, const std::function<void(NodeId)>& visit) const;

  // Deques, so that references survive additions.
  std::deque<Value> values_;
  std::deque<Node> nodes_;
  std::deque<Region> regions_;
  std::deque<std::vector<NodeId>> users_;
  std::deque<std::vector<RegionId>> outputRegions_;  // of each value: regions whose outputs name it, one entry a use
  std::vector<int64_t> order_;                       // of each node: rises along the nodes of a region, with gaps
  std::map<std::string, ValueId, std::less<>> byName_;
  std::unordered_map<std::string, int> nextSuffix_;  // where the search for a fresh name starts; never iterated
  std::set<ValueId> quantised_;                      // values whose types have named quantisation parameters
  // Constants that were defined in a region other than main, which die with it; may name some that have moved since.
  std::map<RegionId, std::vector<ValueId>> innerConstants_;
};

/// One text form, parsed back by `parseGraph`; unused constants are left out. Constants up to `maxElements` elements are printed whole, larger ones as their hash.
///     graph "resnet" {
///       input %x: float32[1x3x224x224]
///       const %w: float32[64x3x7x7] = #3f8a...
///       %y: float32[1x64x112x112] = Conv(%x, %w) {strides = [2, 2]} "conv1"
///       output %y
///     }
/// An input or output left out is `_`; a node's source index follows as @12, its regions as `region { ... }` on the next lines.
std::string print(const Graph& graph, int64_t maxElements = 16);
/// Inverse of `print` where all constants were printed whole (a hashed one is an error that says so).
Result<Graph> parseGraph(std::string_view text);
/// The first broken invariant, if any.
Status verify(const Graph& graph);
/// Of the structure, types, attributes and constants; names of values and nodes don't count.
uint64_t hash(const Graph& graph);
/// "node 12 'conv1' (Conv): inputs x float32[1x3x8x8], w ..." for messages.
std::string describe(const Graph& graph, NodeId id);

}  // namespace locution::graph

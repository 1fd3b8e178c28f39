// The nodes of one region in groups, each of which is to become a kernel. Invariant: the graph of groups has no cycle; a total order
// that agrees with it is kept up to date as groups merge.
#pragma once

#include <optional>
#include <vector>

#include "passes/rewrite.h"

namespace locution::passes {

/// What fusion may do with a node.
enum class FuseKind : uint8_t {
  Plain,  ///< stays outside of kernels: control, host, strings, shapes that aren't known
  Alias,
  Elementwise,
  Injective,
  Reduction,
  Contraction,
  Alone,  ///< a kernel of its own: opaque, or several outputs
};

/// Nodes are numbered by their place in the region; groups by one of their nodes.
class FuseGroups {
 public:
  FuseGroups(const Graph& graph, RegionId region);

  int size() const { return static_cast<int>(nodes_.size()); }
  NodeId id(int n) const { return nodes_[static_cast<size_t>(n)]; }
  const Node& node(int n) const { return graph_.node(id(n)); }
  FuseKind kind(int n) const { return kinds_[static_cast<size_t>(n)]; }
  int groupOf(int n) const { return group_[static_cast<size_t>(n)]; }
  const std::vector<int>& members(int group) const { return members_[static_cast<size_t>(group)]; }
  bool isAlone(int n) const { return members(groupOf(n)).size() == 1; }

  /// The node of this region that makes the value; -1: none does.
  int producer(ValueId value) const;
  /// The nodes of this region that read a value which one of them makes, themselves or in their regions; each once, in order. As things
  /// stood at the start.
  const std::vector<int>& readers(ValueId value) const;
  /// A region output names it.
  bool escapes(ValueId value) const { return graph_.outputUses(value) > 0; }
  /// The only output in use; invalid when there are several.
  ValueId output(int n) const;

  /// Node `n`, none of whose readers is in `set`, may join `set` (which reads nothing of n's): no path leads from `set` to `n` through
  /// others.
  bool mayFollow(const std::vector<int>& set, int n) const;
  /// Joins the groups of two nodes; false when a path through others connects them.
  bool merge(int a, int b);
  /// Groups from first to last.
  std::vector<int> order() const;

 private:
  const std::vector<int>& preds(int n) const { return preds_[static_cast<size_t>(n)]; }
  int64_t& place(int group) { return place_[static_cast<size_t>(group)]; }
  int64_t place(int group) const { return place_[static_cast<size_t>(group)]; }
  std::vector<int> findReaders(ValueId value) const;
  std::vector<int> neighbours(int group, bool forward) const;
  std::optional<std::vector<int>> reach(int from, int avoid, bool forward) const;

  const Graph& graph_;
  std::vector<NodeId> nodes_;
  std::vector<FuseKind> kinds_;
  std::vector<int32_t> number_;      // of each node of the graph; -1: not in this region
  std::vector<int32_t> readerList_;  // of each value of the graph: an index of readers_; -1: not made in this region
  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> preds_, succs_;
  std::vector<int> group_;
  std::vector<std::vector<int>> members_;
  std::vector<int64_t> place_;
  RegionId region_;
};

}  // namespace locution::passes

// Walks a graph in program order, sets the types that the ops infer, and carries integer contents from node to node.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/contexts.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace locution::passes {

class Propagation {
 public:
  struct Hooks {
    /// Sees each node ahead of inference. True: it is dealt with, and `instead` are visited in its place.
    std::function<bool(NodeId, std::vector<NodeId>& instead)> before = nullptr;
    /// Sees each node once its types are set. May edit it and insert others before it.
    std::function<void(NodeId)> after = nullptr;
  };

  Propagation(Patch& patch, PassContext& context) : patch_(patch), graph_(patch.graph()), context_(context) {}

  /// Error: the first node that its op rejects, described. Branches that can't be taken aren't looked at; what is rejected in one
  /// that may or may not be taken keeps its types: only a run can tell.
  Status run(const Hooks& hooks);
  /// Infers one node's outputs (its regions' first).
  Status infer(NodeId node);
  /// The integers in a value (a scalar or vector), when all are known numbers.
  std::optional<Ints> contents(ValueId value) const;

 private:
  Status region(RegionId region);
  Status regions(NodeId node);
  Status loopBody(NodeId node);
  void branches(NodeId node);
  void setRefined(ValueId value, const ValueType& inferred);

  Patch& patch_;
  const Graph& graph_;
  PassContext& context_;
  Hooks hooks_;
  ops::KnownDims known_;
};

/// What both say of a value: numbers win over symbols, what inference says wins over what was known, names from the file win over
/// symbols that inference made up.
ValueType refineType(const ValueType& inferred, const ValueType& existing);
/// A symbol that inference made up ("%y.0").
bool isFreshDim(const Dim& dim);

}  // namespace locution::passes

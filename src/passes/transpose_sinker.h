// Moves transposes down: an operator on transposed data becomes the same operator on the data as it lies, followed by the transpose.
//     %t = Transpose(%y, perm); %z = Relu(%t)   ->   %r = Relu(%y); %z = Transpose(%r, perm)
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "passes/rewrite.h"

namespace locution::passes {

/// N, spatial..., C as a transpose of N, C, spatial... , and back.
Ints toChannelsLast(int64_t rank);
Ints toChannelsFirst(int64_t rank);
/// The op takes the attribute `channels_last`.
bool hasChannelsLast(const Node& node);

class TransposeSinker {
 public:
  explicit TransposeSinker(Patch& patch) : patch_(patch), graph_(patch.graph()) {}

  /// Moves the transposes that `node` reads below it, if its op allows and fewer elements are transposed than before. A
  /// Transpose merges with the one it reads. False: nothing changed.
  bool sink(NodeId node);
  /// Gives a spatial op (attribute channels_last) its channels-last form, whatever its input.
  void makeChannelsLast(NodeId node);

 private:
  friend struct SinkRules;

  /// The transpose behind a value, or nothing.
  struct Source {
    ValueId value;
    Ints perm;
    bool isTransposed() const { return value.isValid(); }
  };
  Source sourceOf(ValueId value) const;

  /// `value` with dims permuted by the inverse of `perm`: what lies below a transpose by `perm`. Free for a transposed value, a
  /// constant, or when only dims of extent 1 move; an invalid id for others (a Transpose with `force`).
  ValueId below(NodeId at, ValueId value, const Ints& perm, bool force = false);
  ValueId transposed(NodeId at, ValueId value, const Ints& perm);
  /// All of `inputs` below, if the elements of those that come transposed outweigh those that would have to be; empty otherwise.
  std::vector<ValueId> allBelow(NodeId at, const std::vector<ValueId>& inputs, const Ints& perm);
  /// Output `i` of a node that now computes on data as it lies: its type changes, and a transpose by `perm` follows.
  void restore(NodeId node, size_t i, const Ints& perm);
  void restoreAll(NodeId node, const Ints& perm);
  void mergeTransposes(NodeId node);

  Patch& patch_;
  const Graph& graph_;
  std::map<std::pair<ValueId, Ints>, ValueId> constants_;
};

}  // namespace locution::passes

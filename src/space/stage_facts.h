// What the decisions about a stage depend on, found out once: how its operands walk through memory, what may be packed, which
// algorithms there are.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "schedule/winograd.h"
#include "space/access.h"

namespace locution::space {

struct StageFacts {
  StageFacts(const loop::Computation& kernel, size_t index, const TargetSpec& target);

  bool isReduction() const { return stage->combiner != loop::Combiner::None && !stage->scan; }
  bool isProduct() const { return operands.size() == 2; }
  /// Of a product with lanes along an axis: the operand that is read in vectors.
  int vectorOperand(size_t axis) const;
  const Access& vectors(size_t axis) const { return operands[static_cast<size_t>(vectorOperand(axis))]; }
  const Access& rows(size_t axis) const { return operands[static_cast<size_t>(1 - vectorOperand(axis))]; }
  /// Both factors move along the axis: no rows share what a vector reads.
  bool isBatch(size_t axis) const { return isProduct() && operands[0].used(axis) && operands[1].used(axis); }
  /// An axis whose groups index an operand (grouped convolutions): how many members a group has; 1: no such axis.
  int64_t groupOf(size_t axis) const { return groups[axis]; }
  /// The axes (of `own`) that may be one loop with `axis`, which comes first; the order is from the innermost outwards.
  std::vector<size_t> spatialRun(size_t axis, const std::vector<size_t>& own) const;
  std::vector<size_t> reducedRun(size_t axis) const;

  const loop::Computation* kernel;
  const loop::Stage* stage;
  const TargetSpec* target;
  size_t index;
  std::vector<Access> all, operands;
  std::vector<int64_t> groups;
  std::array<bool, 2> isGuarded{}, isConstant{}, isInput{};
  std::optional<schedule::WinogradForm> winograd;  ///< where the target allows it
};

}  // namespace locution::space

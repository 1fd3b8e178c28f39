// How a stage walks through memory: what schedulers ask before they choose vector axes and tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"

namespace locution::space {

/// Elements that one step of each axis moves within a buffer; nullopt where the index is not affine in the axis.
struct Access {
  const loop::Buffer* buffer = nullptr;
  std::vector<std::optional<int64_t>> spatial, reduce;
  bool used(size_t axis) const { return !spatial[axis] || *spatial[axis] != 0; }
  bool usedReduce(size_t axis) const { return !reduce[axis] || *reduce[axis] != 0; }
};

/// Of every load in the stage's body and epilogue, in order of appearance, then of its store.
std::vector<Access> accesses(const loop::Stage& stage);
/// Of operand 0 and 1 of a stage that sums products; empty when it does not.
std::vector<Access> productOperands(const loop::Stage& stage);
/// Axis k and the next can be one loop: every access moves by extent(k + 1) of the next at each step of k.
bool mergeable(const std::vector<Access>& all, size_t k, int64_t nextExtent, bool reduce);

/// Every access stays or moves by one element along the axis, and at least one moves.
bool isUnitStride(const std::vector<Access>& all, size_t axis, bool reduce);
/// Lanes of a vector of the stage's values (of 32 bits or more) on the target, fewer where the extent is short.
int64_t lanesFor(const loop::Stage& stage, const TargetSpec& target, int64_t extent);

/// The number of members in a group when the axis enters an index only as axis // n (and axis %% n) with n dividing its extent; else 1.
int64_t groupSize(const loop::Stage& stage, size_t axis);

}  // namespace locution::space

// Copies whose indices are linear in the output's: what packing weights and transposing constants come down to. Run by walking strides, so
// that a hundred differently shaped weights don't need a hundred compiled kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"

namespace locution::loop {

/// out[axes] = in[base + sum of stride * axis], or zero where a guard is not below zero. Strides and base in elements.
struct StridedCopy {
  struct Axis {
    int64_t extent = 0, to = 0, from = 0;
  };
  /// Inside where base + sum of factor * axis < 0.
  struct Guard {
    int64_t base = 0;
    std::vector<int64_t> factors;
  };
  int64_t base = 0;
  std::vector<Axis> axes;
  std::vector<Guard> guards;
};

/// The computation as such a copy, if it is one stage that loads its only input, of whole bytes, at linear indices, under guards that give
/// zero. All loads that happen lie within the input.
std::optional<StridedCopy> asStridedCopy(const Computation& computation);

/// `out` is zeroed and of the output's shape. In tiles, so that neither side is walked against its cache lines.
void runStridedCopy(const StridedCopy& copy, const Tensor& in, Tensor* out);

}  // namespace locution::loop

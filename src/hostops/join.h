// Tensors joined along an axis, and cut up along one: what Concat, Split and the sequence operators share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"
#include "support/status.h"

namespace locution::hostops {

/// All of one dtype, and of one shape but for `axis`.
Result<Tensor> joined(const std::vector<Tensor>& parts, int64_t axis);
/// `sizes` must add up to the axis's extent.
Result<std::vector<Tensor>> cutUp(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes);

}  // namespace locution::hostops

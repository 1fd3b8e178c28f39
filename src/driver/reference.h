// The reference result of a kernel, whole or at sampled places, and what counts as equal to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::driver {

/// Interprets the computation's unscheduled loops. Beyond `maxPoints` evaluated points only rows drawn with `seed` are computed; the
/// rest of `outputs` keeps what it holds. Returns the share of rows computed.
Result<double> interpretReference(const loop::Computation& computation, const std::vector<Tensor>& inputs,
                                  std::vector<Tensor>& outputs, double maxPoints, uint64_t seed);

/// Empty when equal: shape and dtype the same; floats |difference| <= 1e-3 |x| + 1e-4 max(1, max|x| / 10), NaN and infinities in the
/// same places; anything else identical. Else the first and the worst difference.
std::string differenceOf(const Tensor& want, const Tensor& have);

}  // namespace locution::driver

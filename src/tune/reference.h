// The reference result of a kernel, whole or at sampled places, and what counts as equal to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"
#include "loop/interpreter.h"
#include "support/status.h"

namespace locution::tune {

/// Interprets the computation's unscheduled loops. Beyond `maxPoints` evaluated points only rows drawn with `seed` are computed; the
/// rest of `outputs` keeps what it holds. Returns the share of rows computed.
Result<double> interpretReference(const loop::Computation& computation, const std::vector<Tensor>& inputs,
                                  std::vector<Tensor>& outputs, double maxPoints, uint64_t seed);

/// Which rows are computed when not all are: [count, n], the places along the n leading axes that all stages share (first and last place
/// first); not valid when all are.
Tensor drawRows(const loop::Computation& computation, double maxPoints, uint64_t seed);
/// `interpretReference` at rows drawn before.
Result<double> interpretRows(const loop::Computation& computation, const std::vector<Tensor>& inputs,
                             std::vector<Tensor>& outputs, const Tensor& rows, const loop::InterpretOptions& options);

/// Empty when equal: shape and dtype the same; floats |difference| <= 1e-3 |x| + 1e-4 max(1, max|x| / 10), NaN and infinities in the
/// same places; anything else identical. Else the first and the worst difference.
std::string differenceOf(const Tensor& want, const Tensor& have);

}  // namespace locution::tune

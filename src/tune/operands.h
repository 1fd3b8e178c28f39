// Data to run a kernel on, made from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::tune {

enum class Values : uint8_t { AnySign, Positive };

/// One tensor for each input. Floats are about normal (Positive: 0.1 and more); integers that index something are within what they index,
/// others small. Errors: indices of which no range is known to be valid, strings.
Result<std::vector<Tensor>> makeOperands(const loop::Computation& kernel, uint64_t seed, Values values);

}  // namespace locution::tune

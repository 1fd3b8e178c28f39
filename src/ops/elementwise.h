// What the element-wise families share: their inference, and the propagation of integer contents through arithmetic.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/helpers.h"

namespace locution::ops {

/// Output 0 has the inputs' broadcast shape and `dtype`.
Status inferBroadcast(InferContext& c, DType dtype);
/// Output 0 has the shape of input 0 and `dtype`.
Status inferLike(InferContext& c, DType dtype);
/// One input and output of a float type.
Status inferFloatUnary(InferContext& c);

/// What f makes of one element of each input's known contents; nullopt: can't be told.
using DimFunction = std::function<std::optional<Dim>(const std::vector<Dim>&)>;
/// Declares output 0's contents when those of all inputs are known and f can tell every element.
void propagateDims(InferContext& c, const DimFunction& f);
/// a == b for every value of the symbols: true or false; nullopt when it depends on them.
std::optional<bool> decideEqual(const Dim& a, const Dim& b);

}  // namespace locution::ops

// Conversions between element types with ONNX's extras over loop IR's Cast: 8-bit floats that don't saturate, E8M0's rounding.
#pragma once

#include <string>

#include "loop/build.h"

namespace locution::ops {

enum class RoundMode : uint8_t { Up, Down, Nearest };

/// `value` as `type`. `saturate` counts for 8-bit floats only: false turns what is out of range into NaN (or infinity, where the type
/// has one). `round` counts for F8E8M0.
loop::Expr convert(DType type, const loop::Expr& value, bool saturate = true, RoundMode round = RoundMode::Up);

}  // namespace locution::ops

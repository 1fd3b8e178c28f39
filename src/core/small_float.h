// Floats of 16 bits and fewer, by their bits. Every conversion is exact to float, and rounds to nearest even from float.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace locution {

float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloat16ToFloat(uint16_t bits);
uint16_t floatToBfloat16(float value);
/// Any float type of up to 16 bits, by its bits.
float smallFloatToFloat(DType type, uint16_t bits);
/// Rounds to nearest even. What is too large, infinities included, becomes with `saturate` the largest finite value (8-bit types,
/// as ONNX Cast does) and otherwise infinity, or NaN where the type has none; float16 and bfloat16 always keep infinity,
/// float4e2m1 always saturates. For float8e8m0 (powers of two): as `floatToE8M0` with Nearest.
uint16_t floatToSmallFloat(DType type, float value, bool saturate);

/// ONNX Cast's round_mode: away from zero; towards zero; nearest, ties up.
enum class ScaleRounding : uint8_t { Up, Down, Nearest };
/// 0 gives 2^-127 with `saturate` and NaN without; negative values (unspecified by ONNX) give NaN.
uint8_t floatToE8M0(float value, ScaleRounding rounding, bool saturate);

}  // namespace locution

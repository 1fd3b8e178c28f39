// Element types of tensors and of loop IR values; the list is dtypes.inc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace locution {

enum class DType : uint8_t {
#define DTYPE(Name, text, bits, kind) Name,
#include "core/dtypes.inc"
#undef DTYPE
};

enum class DTypeClass : uint8_t { Float, Int, UInt, Bool, String, Complex };

/// "float32", "int64", ...
std::string_view dtypeName(DType type);
std::optional<DType> parseDType(std::string_view name);
/// Bits of one element as stored in a Tensor (4 and 2 for packed types, 0 for strings).
int dtypeBits(DType type);
DTypeClass dtypeClass(DType type);
/// Bytes that `count` elements take (sub-byte types packed, low bits first, the last byte padded).
int64_t dtypeBytes(DType type, int64_t count);

inline bool isFloat(DType t) { return dtypeClass(t) == DTypeClass::Float; }
inline bool isSignedInt(DType t) { return dtypeClass(t) == DTypeClass::Int; }
inline bool isUnsignedInt(DType t) { return dtypeClass(t) == DTypeClass::UInt; }
inline bool isInteger(DType t) { return isSignedInt(t) || isUnsignedInt(t); }
inline bool isSubByte(DType t) { return dtypeBits(t) > 0 && dtypeBits(t) < 8; }

}  // namespace locution

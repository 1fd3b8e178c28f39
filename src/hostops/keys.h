// Elements as numbers that compare exactly: floats as double, signed integers (and booleans) as int64, unsigned as uint64.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor.h"
#include "support/status.h"

namespace locution::hostops {

/// A total order: NaN is above everything and equal to itself, as numpy sorts.
template <typename K>
bool keyLess(const K& a, const K& b) {
  if constexpr (std::is_same_v<K, double>) {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
  }
  return a < b;
}

/// Elements offset, offset + stride, ... of `t` into out[0, count).
template <typename K>
void readKeys(const Tensor& t, int64_t offset, int64_t stride, int64_t count, K* out) {
  auto copy = [&](const auto* data) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<K>(data[offset + i * stride]);
  };
  if constexpr (std::is_same_v<K, std::string>) {
    for (int64_t i = 0; i < count; ++i) out[i] = t.strings()[static_cast<size_t>(offset + i * stride)];
  } else {
    switch (t.dtype()) {
      case DType::F32:
        return copy(t.data<float>());
      case DType::F64:
        return copy(t.data<double>());
      case DType::I32:
        return copy(t.data<int32_t>());
      case DType::I64:
        return copy(t.data<int64_t>());
      case DType::U64:
        return copy(t.data<uint64_t>());
      default:
        break;
    }
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<K, double>)
        out[i] = t.elementAsDouble(offset + i * stride);
      else
        out[i] = static_cast<K>(t.elementAsInt(offset + i * stride));
    }
  }
}

/// Calls f with a value of the key type that `dtype` needs. Errors: complex numbers, which have no order.
template <typename F>
Status withKeyType(DType dtype, F f) {
  switch (dtypeClass(dtype)) {
    case DTypeClass::Float:
      return f(double{});
    case DTypeClass::UInt:
      return f(uint64_t{});
    case DTypeClass::String:
      return f(std::string{});
    case DTypeClass::Complex:
      return Status::error(std::string(dtypeName(dtype)) + " has no order");
    default:
      return f(int64_t{});
  }
}

}  // namespace locution::hostops

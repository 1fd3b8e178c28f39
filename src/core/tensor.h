// A tensor's bytes: row-major, on the heap (64-byte aligned) or mapped from a file, shared and immutable once published.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "support/check.h"
#include "support/status.h"

namespace locution {

/// Where bytes live. Shared by the tensors that view it; the last owner frees or unmaps it.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual std::byte* data() = 0;
  virtual size_t size() const = 0;
};

/// Zeroed, 64-byte aligned heap memory (with 64 readable bytes after the end, for full vector loads).
std::shared_ptr<Storage> allocateStorage(size_t bytes);
/// Takes over a string's bytes without a copy (protobuf's raw_data).
std::shared_ptr<Storage> storageFromString(std::string bytes);
/// Maps [offset, offset + size) of a file, copy on write; its pages are given back when the last owner goes.
/// Errors: missing file, range past the end.
Result<std::shared_ptr<Storage>> mapFile(const std::string& path, size_t offset, size_t size);

class Tensor {
 public:
  Tensor() = default;
  /// Zeroed.
  Tensor(DType dtype, std::vector<int64_t> dims);
  /// A view of `storage` from `offset`; dtypeBytes(dtype, elements) bytes must lie within it.
  Tensor(DType dtype, std::vector<int64_t> dims, std::shared_ptr<Storage> storage, size_t offset = 0);
  static Tensor ofStrings(std::vector<int64_t> dims, std::vector<std::string> values);
  template <typename T>
  static Tensor of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
    Tensor t(dtype, std::move(dims));
    LOCUTION_CHECK(t.elements() == static_cast<int64_t>(values.size()) && dtypeBits(dtype) == 8 * int(sizeof(T)));
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  static Tensor scalarI64(int64_t v) { return of<int64_t>(DType::I64, {}, {v}); }
  static Tensor vectorI64(const std::vector<int64_t>& v) { return of<int64_t>(DType::I64, {int64_t(v.size())}, v); }
  static Tensor scalarF32(float v) { return of<float>(DType::F32, {}, {v}); }

  bool isValid() const { return valid_; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  /// Saturates at INT64_MAX.
  int64_t elements() const;
  size_t bytes() const { return static_cast<size_t>(dtypeBytes(dtype_, elements())); }
  Shape shape() const { return Shape::of(dims_); }

  const std::byte* raw() const { return storage_ ? storage_->data() + offset_ : nullptr; }
  std::byte* raw() { return storage_ ? storage_->data() + offset_ : nullptr; }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(raw());
  }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(raw());
  }
  const std::vector<std::string>& strings() const { return *strings_; }
  std::vector<std::string>& strings() { return *strings_; }

  /// The same bytes under other dims with as many elements.
  Tensor reshaped(std::vector<int64_t> dims) const;
  /// Element `i` of any integer, boolean or float type, converted (of a complex type: its real part). As an integer a float
  /// is cut towards zero and clamped, NaN gives 0.
  double elementAsDouble(int64_t i) const;
  int64_t elementAsInt(int64_t i) const;
  /// Rounds to nearest even for floats; for integers cuts towards zero and clamps, NaN gives 0.
  void setElement(int64_t i, double value);
  /// Keeps the low bits that fit for integers.
  void setElementInt(int64_t i, int64_t value);
  /// The stored bits of element `i` of a type of up to 64 bits, in the low bits.
  uint64_t elementBits(int64_t i) const;
  void setElementBits(int64_t i, uint64_t bits);
  /// All elements of an integer (or boolean) tensor.
  std::vector<int64_t> toInts() const;
  /// Same dtype, dims and bytes.
  bool identical(const Tensor& other) const;
  uint64_t hash() const;

 private:
  bool valid_ = false;
  DType dtype_ = DType::F32;
  std::vector<int64_t> dims_;
  // Shared: constants are viewed by graph, kernels and executable at once and freed when the last of them lets go.
  std::shared_ptr<Storage> storage_;
  std::shared_ptr<std::vector<std::string>> strings_;
  size_t offset_ = 0;
};

/// Copies with axes permuted: out.dims()[i] == in.dims()[perm[i]]. In blocks, so that large weights move at memory speed; where the
/// order of the bytes stays the same, the result shares the storage of `in`.
Tensor permuted(const Tensor& in, const std::vector<int64_t>& perm);

}  // namespace locution

#include "core/small_float.h"  // IWYU pragma: export

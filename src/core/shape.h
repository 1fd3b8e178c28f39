// Shapes, layouts, quantisation, and the full type of a graph value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dim.h"
#include "core/dtype.h"

namespace locution {

/// Extents of a tensor, outermost first; unranked when nothing is known.
class Shape {
 public:
  Shape() = default;                                        ///< a scalar
  Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}  // NOLINT: a list of dims is a shape
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  static Shape of(const std::vector<int64_t>& dims) { return Shape(std::vector<Dim>(dims.begin(), dims.end())); }
  static Shape unranked() {
    Shape s;
    s.ranked_ = false;
    return s;
  }

  bool isRanked() const { return ranked_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  const std::vector<Dim>& dims() const { return dims_; }
  const Dim& operator[](int64_t i) const { return dims_[static_cast<size_t>(i)]; }
  Dim& operator[](int64_t i) { return dims_[static_cast<size_t>(i)]; }
  /// Every dim is a number.
  bool isStatic() const;
  /// The numbers; the shape must be static.
  std::vector<int64_t> extents() const;
  /// Product of the extents; the shape must be static. Saturates at INT64_MAX.
  int64_t elements() const;
  Shape substitute(const SymbolBinding& binding) const;
  /// "1x3x224x224", "scalar", "batchx3", "?" when unranked
  std::string str() const;
  bool operator==(const Shape& other) const { return ranked_ == other.ranked_ && dims_ == other.dims_; }

 private:
  std::vector<Dim> dims_;
  bool ranked_ = true;
};

/// How the logical dims of a value lie in memory: a permutation (empty: row-major) and, for blocked layouts, the split of one
/// logical dim into (outer, inner of `block` elements), the inner one last.
struct Layout {
  std::vector<int64_t> order = {};  ///< logical dim at each physical position, outermost first
  int64_t blockedDim = -1;
  int64_t block = 0;
  bool isRowMajor() const { return order.empty() && blockedDim < 0; }
  std::string str() const;
  bool operator==(const Layout&) const = default;
};

/// value = (stored - zeroPoint) * scale; the parameters are graph values' constants by name, axis and block as in ONNX.
struct Quantisation {
  std::string scale, zeroPoint = {};
  int64_t axis = -1;  ///< -1: one scale for the tensor
  int64_t block = 0;  ///< 0: one scale for an index of `axis`
  bool operator==(const Quantisation&) const = default;
};

enum class ValueKind : uint8_t { Tensor, Sequence, Optional };

/// The full type of a graph value.
struct ValueType {
  DType dtype = DType::F32;
  // Initialisers, so that `ValueType{dtype, shape}` is no warning.
  Shape shape = {};
  Layout layout = {};
  std::optional<Quantisation> quantisation = {};
  ValueKind kind = ValueKind::Tensor;
  /// "float32[1x3x224x224]", "seq(float32[?])"
  std::string str() const;
  bool operator==(const ValueType&) const = default;
};

}  // namespace locution

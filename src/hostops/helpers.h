// What the operators share: axes, single numbers, moving elements of any type, messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "hostops/host_op.h"
#include "support/status.h"

namespace locution::hostops {

/// -rank <= axis < rank, made non-negative; the message says axis and rank.
Result<int64_t> normaliseAxis(int64_t axis, int64_t rank);
/// Input `i` as one integer, or `fallback` when it is left out. The message names `what`.
Result<int64_t> scalarInt(const HostCall& call, size_t i, int64_t fallback, std::string_view what);
Result<double> scalarFloat(const HostCall& call, size_t i, double fallback, std::string_view what);
/// Input `i` as integers. It must be of an integer type.
Result<std::vector<int64_t>> integers(const HostCall& call, size_t i, std::string_view what);

/// Product of dims[from, to).
int64_t product(const std::vector<int64_t>& dims, size_t from, size_t to);
inline int64_t product(const std::vector<int64_t>& dims) { return product(dims, 0, dims.size()); }
/// Row-major, in elements.
std::vector<int64_t> stridesOf(const std::vector<int64_t>& dims);
/// "2x3", "scalar"
std::string dimsText(const std::vector<int64_t>& dims);
/// An error when the dims are negative or their bytes don't fit in memory's range.
Status checkSize(DType dtype, const std::vector<int64_t>& dims);
/// Numpy's rule; the message shows both.
Result<std::vector<int64_t>> broadcastDims(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
/// The step through `from` for one step along each dim of `to` (0 where it is broadcast).
std::vector<int64_t> broadcastStrides(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

/// Element `from` of `source` to element `to` of `target`: any dtype, packed ones and strings, too.
void copyElement(const Tensor& source, int64_t from, Tensor& target, int64_t to);
/// The same for `count` elements in a row.
void copyElements(const Tensor& source, int64_t from, Tensor& target, int64_t to, int64_t count);
/// target[i...] = source[sum of index * strides + offset], over target's dims in row-major order.
void gatherStrided(const Tensor& source, int64_t offset, const std::vector<int64_t>& strides, Tensor& target);

}  // namespace locution::hostops

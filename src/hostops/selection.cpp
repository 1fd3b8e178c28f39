// NonZero, Compress, TopK: elements chosen by their values.
#include <algorithm>
#include <numeric>

#include "hostops/helpers.h"
#include "hostops/keys.h"
#include "hostops/ops.h"

namespace locution::hostops {
namespace {

bool isNonZero(const Tensor& t, int64_t i) {
  switch (dtypeClass(t.dtype())) {
    case DTypeClass::Float:
      return t.elementAsDouble(i) != 0;  // NaN is not zero
    case DTypeClass::String:
      return !t.strings()[static_cast<size_t>(i)].empty();
    case DTypeClass::Complex:
      return t.dtype() == DType::C64 ? t.data<float>()[2 * i] != 0 || t.data<float>()[2 * i + 1] != 0
                                     : t.data<double>()[2 * i] != 0 || t.data<double>()[2 * i + 1] != 0;
    default:
      return t.elementAsInt(i) != 0;
  }
}

template <typename T>
std::vector<int64_t> nonZeroPositions(const T* data, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i)
    if (data[i] != T{}) out.push_back(i);
  return out;
}
std::vector<int64_t> nonZeroPositions(const Tensor& t) {
  int64_t count = t.elements();
  if (t.dtype() == DType::F32) return nonZeroPositions(t.data<float>(), count);
  if (t.dtype() == DType::I64) return nonZeroPositions(t.data<int64_t>(), count);
  if (t.dtype() == DType::Bool || t.dtype() == DType::U8) return nonZeroPositions(t.data<uint8_t>(), count);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i)
    if (isNonZero(t, i)) out.push_back(i);
  return out;
}

}  // namespace

/// [rank, count]: a column an element, in row-major order. A scalar gives [0, count], as ONNX says.
Status nonZero(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  std::vector<int64_t> positions = nonZeroPositions(x);
  auto count = static_cast<int64_t>(positions.size());
  Tensor y(DType::I64, {x.rank(), count});
  std::vector<int64_t> strides = stridesOf(x.dims());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = positions[static_cast<size_t>(i)];
    for (size_t d = 0; d < strides.size(); ++d) {
      y.data<int64_t>()[static_cast<int64_t>(d) * count + i] = rest / strides[d];
      rest %= strides[d];
    }
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

/// numpy.compress: a condition shorter than the axis leaves out the rest.
Status compress(const HostCall& call, std::vector<HostValue>& outputs) {
  Tensor x = call.tensor(0);
  const Tensor& condition = call.tensor(1);
  if (condition.rank() != 1 || condition.dtype() != DType::Bool)
    return Status::error("the condition must be bool of rank 1, but is " + std::string(dtypeName(condition.dtype())) +
                         "[" + dimsText(condition.dims()) + "]");
  if (!hasAttr(call.attrs, "axis")) x = x.reshaped({x.elements()});
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  auto a = static_cast<size_t>(axis);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < std::min(condition.elements(), x.dims()[a]); ++i)
    if (condition.data<uint8_t>()[i] != 0) chosen.push_back(i);
  int64_t outer = product(x.dims(), 0, a), inner = product(x.dims(), a + 1, x.dims().size()), extent = x.dims()[a];
  std::vector<int64_t> dims = x.dims();
  dims[a] = static_cast<int64_t>(chosen.size());
  Tensor y(x.dtype(), dims);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : chosen) {
      copyElements(x, (o * extent + i) * inner, y, to, inner);
      to += inner;
    }
  outputs[0] = std::move(y);
  return Status::ok();
}

/// Ties go to the lower index; NaN counts as the largest.
Status topK(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t k, scalarInt(call, 1, 1, "K"));
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", -1), x.rank()));
  bool largest = intAttr(call.attrs, "largest", 1) != 0;
  auto a = static_cast<size_t>(axis);
  int64_t extent = x.dims()[a];
  if (k < 0 || k > extent)
    return Status::error("K is " + std::to_string(k) + ", but axis " + std::to_string(axis) + " has " +
                         std::to_string(extent) + " elements");
  int64_t outer = product(x.dims(), 0, a), inner = product(x.dims(), a + 1, x.dims().size());
  std::vector<int64_t> dims = x.dims();
  dims[a] = k;
  Tensor values(x.dtype(), dims), indices(DType::I64, dims);
  Status status = withKeyType(x.dtype(), [&](auto zero) {
    using K = decltype(zero);
    std::vector<K> keys(static_cast<size_t>(extent));
    std::vector<int64_t> order(static_cast<size_t>(extent));
    auto before = [&](int64_t i, int64_t j) {
      const K &p = keys[static_cast<size_t>(i)], &q = keys[static_cast<size_t>(j)];
      if (keyLess(p, q)) return !largest;
      if (keyLess(q, p)) return largest;
      return i < j;
    };
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t n = 0; n < inner; ++n) {
        int64_t from = o * extent * inner + n, to = o * k * inner + n;
        readKeys(x, from, inner, extent, keys.data());
        std::iota(order.begin(), order.end(), 0);
        // With the index in the order, a partial selection gives what a stable sort would.
        if (k < extent) std::nth_element(order.begin(), order.begin() + k, order.end(), before);
        std::sort(order.begin(), order.begin() + k, before);
        for (int64_t i = 0; i < k; ++i) {
          int64_t index = order[static_cast<size_t>(i)];
          copyElement(x, from + index * inner, values, to + i * inner);
          indices.data<int64_t>()[to + i * inner] = index;
        }
      }
    return Status::ok();
  });
  LOCUTION_RETURN_IF_ERROR(status);
  outputs[0] = std::move(values);
  if (outputs.size() > 1) outputs[1] = std::move(indices);
  return Status::ok();
}

}  // namespace locution::hostops

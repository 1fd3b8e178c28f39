// Gather, GatherElements, GatherND: elements by index. An index out of range is an error that names it.
#include "hostops/helpers.h"
#include "hostops/ops.h"
#include "support/strings.h"

namespace locution::hostops {
namespace {

/// Negative indices count from the end.
Result<int64_t> normaliseIndex(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    return Status::error("index " + std::to_string(index) + " is out of range for " + std::to_string(extent) +
                         " elements");
  return index < 0 ? index + extent : index;
}

}  // namespace

Status gather(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> rows, integers(call, 1, "indices"));
  auto a = static_cast<size_t>(axis);
  int64_t outer = product(x.dims(), 0, a), extent = x.dims()[a], inner = product(x.dims(), a + 1, x.dims().size());
  for (int64_t& row : rows) {
    LOCUTION_ASSIGN_OR_RETURN(row, normaliseIndex(row, extent));
  }
  std::vector<int64_t> dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  Tensor y(x.dtype(), std::move(dims));
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t row : rows) {
      copyElements(x, (o * extent + row) * inner, y, to, inner);
      to += inner;
    }
  outputs[0] = std::move(y);
  return Status::ok();
}

Status gatherElements(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> flat, integers(call, 1, "indices"));
  auto a = static_cast<size_t>(axis);
  bool fits = indices.rank() == x.rank();
  for (size_t d = 0; fits && d < x.dims().size(); ++d) fits = d == a || indices.dims()[d] <= x.dims()[d];
  if (!fits) return Status::error("indices of " + dimsText(indices.dims()) + " into " + dimsText(x.dims()));
  Tensor y(x.dtype(), indices.dims());
  std::vector<int64_t> strides = stridesOf(x.dims()), at(x.dims().size(), 0);
  for (size_t i = 0; i < flat.size(); ++i) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t index, normaliseIndex(flat[i], x.dims()[a]));
    int64_t from = index * strides[a];
    for (size_t d = 0; d < at.size(); ++d)
      if (d != a) from += at[d] * strides[d];
    copyElement(x, from, y, static_cast<int64_t>(i));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < indices.dims()[d]) break;
      at[d] = 0;
    }
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

Status gatherND(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  int64_t batchDims = intAttr(call.attrs, "batch_dims", 0);
  if (indices.rank() == 0 || batchDims < 0 || batchDims >= indices.rank() || batchDims > x.rank())
    return Status::error("batch_dims of " + std::to_string(batchDims) + " for indices of " + dimsText(indices.dims()));
  int64_t depth = indices.dims().back();
  bool fits = depth >= 0 && depth <= x.rank() - batchDims;
  for (int64_t d = 0; fits && d < batchDims; ++d)
    fits = x.dims()[static_cast<size_t>(d)] == indices.dims()[static_cast<size_t>(d)];
  if (!fits) return Status::error("indices of " + dimsText(indices.dims()) + " into " + dimsText(x.dims()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> flat, integers(call, 1, "indices"));
  auto b = static_cast<size_t>(batchDims), k = static_cast<size_t>(depth);
  int64_t inner = product(x.dims(), b + k, x.dims().size());
  std::vector<int64_t> dims(indices.dims().begin(), indices.dims().end() - 1);
  int64_t tuples = product(dims), batches = product(dims, 0, b), perBatch = product(x.dims(), b, x.dims().size());
  dims.insert(dims.end(), x.dims().begin() + batchDims + depth, x.dims().end());
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  Tensor y(x.dtype(), std::move(dims));
  std::vector<int64_t> strides = stridesOf(x.dims());
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t from = t / (tuples / batches) * perBatch;
    for (size_t d = 0; d < k; ++d) {
      LOCUTION_ASSIGN_OR_RETURN(int64_t index, normaliseIndex(flat[static_cast<size_t>(t) * k + d], x.dims()[b + d]));
      from += index * strides[b + d];
    }
    copyElements(x, from, y, t * inner, inner);
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

// Component k of each tuple along the last dim of input 0 (called `value`) must lie in [low[k], high[k]].
Status checkIndexTuples(const HostCall& call, std::vector<HostValue>&) {
  const Tensor& indices = call.tensor(0);
  const std::vector<int64_t> low = intsAttr(call.attrs, "low"), high = intsAttr(call.attrs, "high");
  const size_t width = low.size();
  if (width == 0 || high.size() != width || indices.elements() % static_cast<int64_t>(width) != 0)
    return Status::error("ranges of " + std::to_string(width) + " components for indices of " +
                         dimsText(indices.dims()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> flat, integers(call, 0, "indices"));
  for (size_t i = 0; i < flat.size(); ++i) {
    const size_t k = i % width;
    if (flat[i] >= low[k] && flat[i] <= high[k]) continue;
    return Status::error("element " + std::to_string(i) + " of " + quoted(textAttr(call.attrs, "value", "")) +
                         " (component " + std::to_string(k) + ") is " + std::to_string(flat[i]) + ", outside [" +
                         std::to_string(low[k]) + ", " + std::to_string(high[k]) + "]");
  }
  return Status::ok();
}

}  // namespace locution::hostops

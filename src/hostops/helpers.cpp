#include "hostops/helpers.h"

#include <algorithm>
#include <cstring>

#include "support/strings.h"

namespace locution::hostops {

Result<int64_t> normaliseAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return Status::error("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> integers(const HostCall& call, size_t i, std::string_view what) {
  const Tensor& t = call.tensor(i);
  if (!isInteger(t.dtype()))
    return Status::error(std::string(what) + " must be integers, but is " + std::string(dtypeName(t.dtype())));
  return t.toInts();
}

Result<int64_t> scalarInt(const HostCall& call, size_t i, int64_t fallback, std::string_view what) {
  if (!call.has(i)) return fallback;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> values, integers(call, i, what));
  if (values.size() != 1)
    return Status::error(std::string(what) + " must be one number, but is " + std::to_string(values.size()));
  return values[0];
}

Result<double> scalarFloat(const HostCall& call, size_t i, double fallback, std::string_view what) {
  if (!call.has(i)) return fallback;
  const Tensor& t = call.tensor(i);
  if (t.elements() != 1 || t.dtype() == DType::String)
    return Status::error(std::string(what) + " must be one number, but is " + std::string(dtypeName(t.dtype())) + "[" +
                         dimsText(t.dims()) + "]");
  return t.elementAsDouble(0);
}

int64_t product(const std::vector<int64_t>& dims, size_t from, size_t to) {
  int64_t out = 1;
  for (size_t i = from; i < to; ++i) out *= dims[i];
  return out;
}

std::vector<int64_t> stridesOf(const std::vector<int64_t>& dims) {
  std::vector<int64_t> out(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    out[i] = stride;
    stride *= dims[i];
  }
  return out;
}

std::string dimsText(const std::vector<int64_t>& dims) {
  if (dims.empty()) return "scalar";
  std::vector<std::string> parts;
  for (int64_t d : dims) parts.push_back(std::to_string(d));
  return join(parts, "x");
}

Status checkSize(DType dtype, const std::vector<int64_t>& dims) {
  for (int64_t d : dims)
    if (d < 0) return Status::error("the output would have a dim of " + std::to_string(d));
  if (checkedBytes(dtype, dims) < 0) return Status::error("an output of " + dimsText(dims) + " is too large");
  return Status::ok();
}

Result<std::vector<int64_t>> broadcastDims(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return Status::error("shapes " + dimsText(a) + " and " + dimsText(b) + " can't be broadcast to each other");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::vector<int64_t> broadcastStrides(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  std::vector<int64_t> own = stridesOf(from), out(to.size(), 0);
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) out[lead + i] = from[i] == 1 ? 0 : own[i];
  return out;
}

void copyElement(const Tensor& source, int64_t from, Tensor& target, int64_t to) {
  copyElements(source, from, target, to, 1);
}

void copyElements(const Tensor& source, int64_t from, Tensor& target, int64_t to, int64_t count) {
  if (count <= 0) return;
  if (source.dtype() == DType::String) {
    std::copy_n(source.strings().begin() + from, count, target.strings().begin() + to);
    return;
  }
  int bits = dtypeBits(source.dtype());
  if (bits >= 8) {
    int64_t bytes = bits / 8;
    std::memcpy(target.raw() + to * bytes, source.raw() + from * bytes, static_cast<size_t>(count * bytes));
    return;
  }
  // Packed, low bits first.
  int perByte = 8 / bits;
  unsigned mask = (1U << bits) - 1;
  const auto* in = source.data<uint8_t>();
  auto* out = target.data<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    unsigned value = in[(from + i) / perByte] >> ((from + i) % perByte * bits) & mask;
    auto shift = static_cast<unsigned>((to + i) % perByte * bits);
    uint8_t& byte = out[(to + i) / perByte];
    byte = static_cast<uint8_t>((byte & ~(mask << shift)) | value << shift);
  }
}

void gatherStrided(const Tensor& source, int64_t offset, const std::vector<int64_t>& strides, Tensor& target) {
  const std::vector<int64_t>& dims = target.dims();
  int64_t total = product(dims);
  if (total == 0) return;
  if (dims.empty()) {
    copyElement(source, offset, target, 0);
    return;
  }
  int64_t inner = dims.back(), step = strides.back();
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t at = 0; at < total; at += inner) {
    int64_t from = offset;
    for (size_t d = 0; d + 1 < dims.size(); ++d) from += index[d] * strides[d];
    if (step == 1)
      copyElements(source, from, target, at, inner);
    else
      for (int64_t i = 0; i < inner; ++i) copyElement(source, from + i * step, target, at + i);
    for (size_t d = dims.size() - 1; d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace locution::hostops

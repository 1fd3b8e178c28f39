// Transposes tensors: axes of one are dropped and neighbours that stay together merged; then either whole rows are copied, or
// square tiles over the two axes that are contiguous on either side, so that each cache line is read and written once.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "core/tensor.h"

namespace locution {
namespace {

struct Axis {
  int64_t extent, inStride, outStride;  // strides in elements
};

// The axes in output order, without those of extent 1, neighbours merged where both sides walk them as one.
std::vector<Axis> mergedAxes(const std::vector<int64_t>& dims, const std::vector<int64_t>& perm) {
  std::vector<int64_t> inStrides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) inStrides[i] = stride;
  std::vector<Axis> axes;
  for (int64_t p : perm) {
    auto at = static_cast<size_t>(p);
    if (dims[at] == 1) continue;
    if (!axes.empty() && axes.back().inStride == inStrides[at] * dims[at]) {
      axes.back().extent *= dims[at];
      axes.back().inStride = inStrides[at];
    } else {
      axes.push_back({dims[at], inStrides[at], 0});
    }
  }
  stride = 1;
  for (size_t i = axes.size(); i-- > 0; stride *= axes[i].extent) axes[i].outStride = stride;
  return axes;
}

// Calls body(inOffset, outOffset) for every index of `axes`.
template <typename Body>
void forEachIndex(const std::vector<Axis>& axes, const Body& body) {
  std::vector<int64_t> index(axes.size(), 0);
  int64_t in = 0, out = 0;
  for (;;) {
    body(in, out);
    size_t i = axes.size();
    for (;;) {
      if (i-- == 0) return;
      in += axes[i].inStride;
      out += axes[i].outStride;
      if (++index[i] < axes[i].extent) break;
      in -= axes[i].extent * axes[i].inStride;
      out -= axes[i].extent * axes[i].outStride;
      index[i] = 0;
    }
  }
}

template <typename T>
void permute(const T* in, T* out, std::vector<Axis> axes) {
  Axis last = axes.back();
  axes.pop_back();
  if (last.inStride == 1) {
    forEachIndex(axes, [&](int64_t i, int64_t o) { std::copy_n(in + i, last.extent, out + o); });
    return;
  }
  // `last` is contiguous in the output, `first` in the input.
  auto at = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.inStride == 1; });
  Axis first = *at;
  axes.erase(at);
  // A tile goes through a buffer: strides that are powers of two map its rows to one set of the cache, so each line of it is
  // to be read once, whole. Two lines wide, as processors fetch pairs.
  constexpr int64_t kTile = std::max<int64_t>(8, 128 / static_cast<int64_t>(sizeof(T)));
  std::vector<T> tile(static_cast<size_t>(kTile * kTile));
  forEachIndex(axes, [&](int64_t i, int64_t o) {
    for (int64_t b0 = 0; b0 < last.extent; b0 += kTile) {
      int64_t bs = std::min(kTile, last.extent - b0);
      for (int64_t a0 = 0; a0 < first.extent; a0 += kTile) {
        int64_t as = std::min(kTile, first.extent - a0);
        for (int64_t b = 0; b < bs; ++b)
          std::copy_n(in + i + a0 + (b0 + b) * last.inStride, as, tile.begin() + b * kTile);
        for (int64_t a = 0; a < as; ++a) {
          T* to = out + o + (a0 + a) * first.outStride + b0;
          for (int64_t b = 0; b < bs; ++b) to[b] = tile[static_cast<size_t>(b * kTile + a)];
        }
      }
    }
  });
}

}  // namespace

Tensor permuted(const Tensor& in, const std::vector<int64_t>& perm) {
  std::vector<int64_t> sorted = perm, identity(in.dims().size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(identity.begin(), identity.end(), 0);
  LOCUTION_CHECK(sorted == identity) << "not a permutation of the axes of " << in.shape().str();
  std::vector<int64_t> dims;
  for (int64_t p : perm) dims.push_back(in.dims()[static_cast<size_t>(p)]);
  if (in.elements() == 0) return Tensor(in.dtype(), std::move(dims));
  std::vector<Axis> axes = mergedAxes(in.dims(), perm);
  if (axes.size() <= 1) return in.reshaped(std::move(dims));
  Tensor out(in.dtype(), std::move(dims));
  switch (dtypeBits(in.dtype())) {
    case 0:
      permute(in.strings().data(), out.strings().data(), axes);
      break;
    case 8:
      permute(in.data<uint8_t>(), out.data<uint8_t>(), axes);
      break;
    case 16:
      permute(in.data<uint16_t>(), out.data<uint16_t>(), axes);
      break;
    case 32:
      permute(in.data<uint32_t>(), out.data<uint32_t>(), axes);
      break;
    case 64:
      permute(in.data<uint64_t>(), out.data<uint64_t>(), axes);
      break;
    case 128:
      permute(in.data<std::array<uint64_t, 2>>(), out.data<std::array<uint64_t, 2>>(), axes);
      break;
    default:  // packed types: rare and small
      forEachIndex(axes, [&](int64_t i, int64_t o) { out.setElementBits(o, in.elementBits(i)); });
  }
  return out;
}

}  // namespace locution

// Unique: distinct elements, or distinct slices along an axis.
#include <algorithm>
#include <numeric>

#include "hostops/helpers.h"
#include "hostops/keys.h"
#include "hostops/ops.h"

namespace locution::hostops {
namespace {

struct Groups {
  std::vector<int64_t> first;    // of each group, in output order
  std::vector<int64_t> inverse;  // group of each item
  std::vector<int64_t> counts;
};

/// Item i's keys are keys[i * width, (i + 1) * width). All NaN are one value, as in numpy.
template <typename K>
Groups groupItems(const std::vector<K>& keys, int64_t items, int64_t width, bool sorted) {
  auto compare = [&](int64_t i, int64_t j) {
    const K *p = keys.data() + i * width, *q = keys.data() + j * width;
    for (int64_t k = 0; k < width; ++k) {
      if (keyLess(p[k], q[k])) return -1;
      if (keyLess(q[k], p[k])) return 1;
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(items));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    int c = compare(i, j);
    return c != 0 ? c < 0 : i < j;
  });
  Groups out;
  out.inverse.resize(static_cast<size_t>(items));
  for (size_t n = 0; n < order.size(); ++n) {
    if (n == 0 || compare(order[n - 1], order[n]) != 0) {
      out.first.push_back(order[n]);
      out.counts.push_back(0);
    }
    out.inverse[static_cast<size_t>(order[n])] = static_cast<int64_t>(out.first.size()) - 1;
    ++out.counts.back();
  }
  if (sorted) return out;

  // Back to the order in which the groups first occur.
  std::vector<int64_t> rank(out.first.size()), at(out.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  std::sort(rank.begin(), rank.end(), [&](int64_t i, int64_t j) {
    return out.first[static_cast<size_t>(i)] < out.first[static_cast<size_t>(j)];
  });
  Groups reordered;
  for (size_t n = 0; n < rank.size(); ++n) {
    auto from = static_cast<size_t>(rank[n]);
    at[from] = static_cast<int64_t>(n);
    reordered.first.push_back(out.first[from]);
    reordered.counts.push_back(out.counts[from]);
  }
  for (int64_t group : out.inverse) reordered.inverse.push_back(at[static_cast<size_t>(group)]);
  return reordered;
}

}  // namespace

Status unique(const HostCall& call, std::vector<HostValue>& outputs) {
  Tensor x = call.tensor(0);
  if (!hasAttr(call.attrs, "axis")) x = x.reshaped({x.elements()});
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  bool sorted = intAttr(call.attrs, "sorted", 1) != 0;
  auto a = static_cast<size_t>(axis);
  int64_t outer = product(x.dims(), 0, a), inner = product(x.dims(), a + 1, x.dims().size()), items = x.dims()[a];
  int64_t width = outer * inner;
  Groups groups;
  LOCUTION_RETURN_IF_ERROR(withKeyType(x.dtype(), [&](auto zero) {
    using K = decltype(zero);
    std::vector<K> keys(static_cast<size_t>(items * width));
    for (int64_t i = 0; i < items; ++i)
      for (int64_t o = 0; o < outer; ++o)
        readKeys(x, (o * items + i) * inner, 1, inner, keys.data() + i * width + o * inner);
    groups = groupItems(keys, items, width, sorted);
    return Status::ok();
  }));
  std::vector<int64_t> dims = x.dims();
  dims[a] = static_cast<int64_t>(groups.first.size());
  Tensor y(x.dtype(), dims);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t g = 0; g < dims[a]; ++g)
      copyElements(x, (o * items + groups.first[static_cast<size_t>(g)]) * inner, y, (o * dims[a] + g) * inner, inner);
  outputs[0] = std::move(y);
  if (outputs.size() > 1) outputs[1] = Tensor::vectorI64(groups.first);
  if (outputs.size() > 2) outputs[2] = Tensor::vectorI64(groups.inverse);
  if (outputs.size() > 3) outputs[3] = Tensor::vectorI64(groups.counts);
  return Status::ok();
}

}  // namespace locution::hostops

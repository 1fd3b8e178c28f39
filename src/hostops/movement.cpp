// Moving elements of any type: Transpose, Expand, Tile, Slice, Concat, Split, Where, Equal.
#include <algorithm>
#include <numeric>

#include "hostops/helpers.h"
#include "hostops/join.h"
#include "hostops/keys.h"
#include "hostops/ops.h"

namespace locution::hostops {

Result<Tensor> joined(const std::vector<Tensor>& parts, int64_t axis) {
  const Tensor& first = parts[0];
  LOCUTION_ASSIGN_OR_RETURN(axis, normaliseAxis(axis, first.rank()));
  auto a = static_cast<size_t>(axis);
  std::vector<int64_t> dims = first.dims();
  dims[a] = 0;
  for (const Tensor& t : parts) {
    std::vector<int64_t> other = t.dims();
    if (other.size() == dims.size()) other[a] = dims[a];
    if (t.dtype() != first.dtype() || other != dims)
      return Status::error(std::string(dtypeName(first.dtype())) + "[" + dimsText(first.dims()) + "] and " +
                           std::string(dtypeName(t.dtype())) + "[" + dimsText(t.dims()) +
                           "] can't be joined along axis " + std::to_string(axis));
    if (__builtin_add_overflow(dims[a], t.dims()[a], &dims[a])) return Status::error("the output would be too large");
  }
  LOCUTION_RETURN_IF_ERROR(checkSize(first.dtype(), dims));
  Tensor y(first.dtype(), dims);
  int64_t outer = product(dims, 0, a), inner = product(dims, a + 1, dims.size()), at = 0;
  for (const Tensor& t : parts) {
    int64_t run = t.dims()[a] * inner;
    for (int64_t o = 0; o < outer; ++o) copyElements(t, o * run, y, o * dims[a] * inner + at, run);
    at += run;
  }
  return y;
}

Result<std::vector<Tensor>> cutUp(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes) {
  LOCUTION_ASSIGN_OR_RETURN(axis, normaliseAxis(axis, x.rank()));
  auto a = static_cast<size_t>(axis);
  int64_t extent = x.dims()[a], sum = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > extent - sum)
      return Status::error("a part of " + std::to_string(s) + " at " + std::to_string(sum) + " does not fit axis " +
                           std::to_string(axis) + " of " + std::to_string(extent));
    sum += s;
  }
  if (sum != extent)
    return Status::error("the parts hold " + std::to_string(sum) + " of the " + std::to_string(extent) +
                         " elements of axis " + std::to_string(axis));
  int64_t outer = product(x.dims(), 0, a), inner = product(x.dims(), a + 1, x.dims().size()), at = 0;
  std::vector<Tensor> out;
  for (int64_t s : sizes) {
    std::vector<int64_t> dims = x.dims();
    dims[a] = s;
    Tensor part(x.dtype(), std::move(dims));
    for (int64_t o = 0; o < outer; ++o) copyElements(x, (o * extent + at) * inner, part, o * s * inner, s * inner);
    at += s;
    out.push_back(std::move(part));
  }
  return out;
}

Status concat(const HostCall& call, std::vector<HostValue>& outputs) {
  std::vector<Tensor> parts;
  for (const HostValue& v : call.inputs) {
    if (!v.isTensor()) return Status::error("every input must be a tensor");
    parts.push_back(v.tensor);
  }
  LOCUTION_ASSIGN_OR_RETURN(outputs[0], joined(parts, intAttr(call.attrs, "axis", 0)));
  return Status::ok();
}

/// By input `split`, or else into equal parts, the last one smaller.
Status split(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  std::vector<int64_t> sizes;
  if (call.has(1)) {
    LOCUTION_ASSIGN_OR_RETURN(sizes, integers(call, 1, "split"));
  } else {
    int64_t extent = x.dims()[static_cast<size_t>(axis)];
    auto parts = intAttr(call.attrs, "num_outputs", static_cast<int64_t>(outputs.size()));
    if (parts <= 0) return Status::error("num_outputs is " + std::to_string(parts));
    int64_t chunk = (extent + parts - 1) / parts;
    for (int64_t i = 0, left = extent; i < parts; ++i, left -= sizes.back()) sizes.push_back(std::min(chunk, left));
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Tensor> parts, cutUp(x, axis, sizes));
  if (parts.size() < outputs.size())
    return Status::error(std::to_string(parts.size()) + " parts for " + std::to_string(outputs.size()) + " outputs");
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = std::move(parts[i]);
  return Status::ok();
}

Status transpose(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  std::vector<int64_t> perm = intsAttr(call.attrs, "perm");
  if (!hasAttr(call.attrs, "perm")) {
    perm.resize(x.dims().size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<int64_t> seen = perm;
  std::sort(seen.begin(), seen.end());
  bool complete = seen.size() == x.dims().size();
  for (size_t i = 0; complete && i < seen.size(); ++i) complete = seen[i] == static_cast<int64_t>(i);
  if (!complete) return Status::error("perm is no order of the " + std::to_string(x.rank()) + " axes");
  std::vector<int64_t> own = stridesOf(x.dims()), dims, strides;
  for (int64_t p : perm) {
    dims.push_back(x.dims()[static_cast<size_t>(p)]);
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  Tensor y(x.dtype(), dims);
  gatherStrided(x, 0, strides, y);
  outputs[0] = std::move(y);
  return Status::ok();
}

Status expand(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, integers(call, 1, "shape"));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, broadcastDims(x.dims(), wanted));
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  Tensor y(x.dtype(), dims);
  gatherStrided(x, 0, broadcastStrides(x.dims(), dims), y);
  outputs[0] = std::move(y);
  return Status::ok();
}

Status tile(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> repeats, integers(call, 1, "repeats"));
  if (repeats.size() != x.dims().size())
    return Status::error("there are " + std::to_string(repeats.size()) + " repeats for rank " +
                         std::to_string(x.rank()));
  // As a view of twice the rank: (repeat, dim) for each dim, with a step of 0 for the repeats.
  std::vector<int64_t> own = stridesOf(x.dims()), pairs, strides, dims;
  for (size_t i = 0; i < repeats.size(); ++i) {
    pairs.insert(pairs.end(), {repeats[i], x.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
    int64_t extent = 0;
    if (__builtin_mul_overflow(repeats[i], x.dims()[i], &extent)) return Status::error("the output would be too large");
    dims.push_back(extent);
  }
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), pairs));
  Tensor y(x.dtype(), pairs);
  gatherStrided(x, 0, strides, y);
  outputs[0] = y.reshaped(std::move(dims));
  return Status::ok();
}

Status slice(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> starts, integers(call, 1, "starts"));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> ends, integers(call, 2, "ends"));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) {
    LOCUTION_ASSIGN_OR_RETURN(axes, integers(call, 3, "axes"));
  }
  if (call.has(4)) {
    LOCUTION_ASSIGN_OR_RETURN(steps, integers(call, 4, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return Status::error("starts, ends, axes and steps differ in length");
  std::vector<int64_t> dims = x.dims(), strides = stridesOf(x.dims());
  std::vector<bool> used(dims.size());
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(axes[i], x.rank()));
    auto a = static_cast<size_t>(axis);
    int64_t extent = x.dims()[a], step = steps[i];
    if (step == 0) return Status::error("a step of 0 along axis " + std::to_string(axis));
    if (used[a]) return Status::error("axis " + std::to_string(axis) + " is sliced twice");
    used[a] = true;
    auto fromBack = [&](int64_t v) { return v < 0 ? v + extent : v; };
    int64_t begin = fromBack(starts[i]), end = fromBack(ends[i]), count = 0;
    if (step > 0) {
      begin = std::clamp<int64_t>(begin, 0, extent);
      end = std::clamp<int64_t>(end, 0, extent);
      if (begin < end) count = (end - begin - 1) / step + 1;
    } else {
      begin = std::clamp<int64_t>(begin, -1, extent - 1);
      end = std::clamp<int64_t>(end, -1, extent - 1);
      // Without negating the step: the most negative one has no positive.
      if (begin > end) count = (end - begin + 1) / step + 1;
    }
    dims[a] = count;
    if (count > 0) offset += begin * strides[a];
    // A step past the end is never taken.
    strides[a] = count > 1 ? strides[a] * step : 0;
  }
  Tensor y(x.dtype(), dims);
  gatherStrided(x, offset, strides, y);
  outputs[0] = std::move(y);
  return Status::ok();
}

Status where(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &condition = call.tensor(0), &x = call.tensor(1), &y = call.tensor(2);
  if (condition.dtype() != DType::Bool) return Status::error("the condition must be bool");
  if (x.dtype() != y.dtype())
    return Status::error("the values are " + std::string(dtypeName(x.dtype())) + " and " +
                         std::string(dtypeName(y.dtype())));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, broadcastDims(x.dims(), y.dims()));
  LOCUTION_ASSIGN_OR_RETURN(dims, broadcastDims(condition.dims(), dims));
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  Tensor choice(DType::Bool, dims), yes(x.dtype(), dims), no(x.dtype(), dims);
  gatherStrided(condition, 0, broadcastStrides(condition.dims(), dims), choice);
  gatherStrided(x, 0, broadcastStrides(x.dims(), dims), yes);
  gatherStrided(y, 0, broadcastStrides(y.dims(), dims), no);
  for (int64_t i = 0; i < no.elements(); ++i)
    if (choice.data<uint8_t>()[i] != 0) copyElement(yes, i, no, i);
  outputs[0] = std::move(no);
  return Status::ok();
}

Status equal(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &x = call.tensor(0), &y = call.tensor(1);
  if (x.dtype() != y.dtype())
    return Status::error("the inputs are " + std::string(dtypeName(x.dtype())) + " and " +
                         std::string(dtypeName(y.dtype())));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, broadcastDims(x.dims(), y.dims()));
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  Tensor a(x.dtype(), dims), b(x.dtype(), dims), out(DType::Bool, dims);
  gatherStrided(x, 0, broadcastStrides(x.dims(), dims), a);
  gatherStrided(y, 0, broadcastStrides(y.dims(), dims), b);
  LOCUTION_RETURN_IF_ERROR(withKeyType(x.dtype(), [&](auto zero) {
    std::vector<decltype(zero)> p(static_cast<size_t>(out.elements())), q(p.size());
    readKeys(a, 0, 1, out.elements(), p.data());
    readKeys(b, 0, 1, out.elements(), q.data());
    for (size_t i = 0; i < p.size(); ++i) out.data<uint8_t>()[i] = p[i] == q[i] ? 1 : 0;
    return Status::ok();
  }));
  outputs[0] = std::move(out);
  return Status::ok();
}

}  // namespace locution::hostops

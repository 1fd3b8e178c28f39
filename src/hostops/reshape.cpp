// Operators that keep the elements as they are: Identity, Reshape, Flatten, Squeeze, Unsqueeze; and Shape and Size. What they
// give shares the input's memory.
#include <algorithm>

#include "core/saturate.h"
#include "hostops/helpers.h"
#include "hostops/ops.h"

namespace locution::hostops {

Status identity(const HostCall& call, std::vector<HostValue>& outputs) {
  outputs[0] = call.inputs[0];
  return Status::ok();
}

/// 0 keeps the input's dim (unless `allowzero`), one -1 takes what is left.
Status reshape(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, integers(call, 1, "shape"));
  std::string wanted = dimsText(dims);
  auto misfit = [&] { return Status::error(dimsText(x.dims()) + " can't be reshaped to " + wanted); };
  bool zeros = intAttr(call.attrs, "allowzero", 0) != 0;
  int64_t open = -1, known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zeros) {
      if (i >= x.dims().size()) return misfit();
      dims[i] = x.dims()[i];
    }
    if (dims[i] < -1 || (dims[i] == -1 && open >= 0)) return misfit();
    if (dims[i] == -1)
      open = static_cast<int64_t>(i);
    else
      known = saturatingMul(known, dims[i]);
  }
  if (open >= 0) {
    if (known == 0 ? x.elements() != 0 : x.elements() % known != 0) return misfit();
    dims[static_cast<size_t>(open)] = known == 0 ? 0 : x.elements() / known;
  } else if (known != x.elements()) {
    return misfit();
  }
  LOCUTION_RETURN_IF_ERROR(checkSize(x.dtype(), dims));
  outputs[0] = x.reshaped(std::move(dims));
  return Status::ok();
}

Status flatten(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  int64_t axis = intAttr(call.attrs, "axis", 1);
  // The rank itself is allowed: everything into the first dim.
  if (axis < -x.rank() || axis > x.rank())
    return Status::error("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(x.rank()));
  auto a = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
  outputs[0] = x.reshaped({product(x.dims(), 0, a), product(x.dims(), a, x.dims().size())});
  return Status::ok();
}

Status squeeze(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  std::vector<bool> drop(x.dims().size());
  if (call.has(1)) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, integers(call, 1, "axes"));
    for (int64_t axis : axes) {
      LOCUTION_ASSIGN_OR_RETURN(axis, normaliseAxis(axis, x.rank()));
      auto a = static_cast<size_t>(axis);
      if (x.dims()[a] != 1)
        return Status::error("axis " + std::to_string(axis) + " has " + std::to_string(x.dims()[a]) +
                             " elements, not 1");
      drop[a] = true;
    }
  } else {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = x.dims()[i] == 1;
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i]) dims.push_back(x.dims()[i]);
  outputs[0] = x.reshaped(std::move(dims));
  return Status::ok();
}

Status unsqueeze(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, integers(call, 1, "axes"));
  std::vector<bool> added(x.dims().size() + axes.size());
  for (int64_t axis : axes) {
    LOCUTION_ASSIGN_OR_RETURN(axis, normaliseAxis(axis, static_cast<int64_t>(added.size())));
    if (added[static_cast<size_t>(axis)]) return Status::error("axis " + std::to_string(axis) + " is added twice");
    added[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> dims;
  auto next = x.dims().begin();
  for (bool isNew : added) dims.push_back(isNew ? 1 : *next++);
  outputs[0] = x.reshaped(std::move(dims));
  return Status::ok();
}

Status shape(const HostCall& call, std::vector<HostValue>& outputs) {
  const std::vector<int64_t>& dims = call.tensor(0).dims();
  auto rank = static_cast<int64_t>(dims.size());
  auto clamped = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  int64_t start = clamped(intAttr(call.attrs, "start", 0)), end = clamped(intAttr(call.attrs, "end", rank));
  outputs[0] = Tensor::vectorI64(start < end ? std::vector<int64_t>(dims.begin() + start, dims.begin() + end)
                                             : std::vector<int64_t>());
  return Status::ok();
}

Status size(const HostCall& call, std::vector<HostValue>& outputs) {
  outputs[0] = Tensor::scalarI64(call.tensor(0).elements());
  return Status::ok();
}

}  // namespace locution::hostops

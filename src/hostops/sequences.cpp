// Operators on sequences and optionals. Tensors in a sequence are shared, never copied.
#include <algorithm>

#include "hostops/helpers.h"
#include "hostops/join.h"
#include "hostops/ops.h"

namespace locution::hostops {
namespace {

/// Input `i` as a position in a sequence of `size`, where `extra` more is allowed (inserting at the end).
Result<int64_t> position(const HostCall& call, size_t i, int64_t fallback, int64_t size, int64_t extra) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t at, scalarInt(call, i, fallback, "position"));
  if (at < -size || at >= size + extra)
    return Status::error("position " + std::to_string(at) + " is out of range for a sequence of " +
                         std::to_string(size));
  return at < 0 ? at + size : at;
}

Status needType(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return Status::ok();
  return Status::error("a tensor of " + std::string(dtypeName(t.dtype())) + " in a sequence of " +
                       std::string(dtypeName(dtype)));
}

}  // namespace

Status sequenceConstruct(const HostCall& call, std::vector<HostValue>& outputs) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].isTensor()) return Status::error("input " + std::to_string(i) + " must be a tensor");
    LOCUTION_RETURN_IF_ERROR(needType(call.tensor(i), call.tensor(0).dtype()));
    tensors.push_back(call.tensor(i));
  }
  outputs[0] = HostValue::ofSequence(call.tensor(0).dtype(), std::move(tensors));
  return Status::ok();
}

Status sequenceEmpty(const HostCall& call, std::vector<HostValue>& outputs) {
  LOCUTION_ASSIGN_OR_RETURN(DType dtype, dtypeAttr(call.attrs, "dtype", DType::F32));
  outputs[0] = HostValue::ofSequence(dtype, {});
  return Status::ok();
}

Status sequenceInsert(const HostCall& call, std::vector<HostValue>& outputs) {
  const HostValue& in = call.inputs[0];
  auto size = static_cast<int64_t>(in.sequence.size());
  LOCUTION_ASSIGN_OR_RETURN(int64_t at, position(call, 2, size, size, 1));
  LOCUTION_RETURN_IF_ERROR(needType(call.tensor(1), in.dtype));
  std::vector<Tensor> tensors = in.sequence;
  tensors.insert(tensors.begin() + at, call.tensor(1));
  outputs[0] = HostValue::ofSequence(in.dtype, std::move(tensors));
  return Status::ok();
}

Status sequenceErase(const HostCall& call, std::vector<HostValue>& outputs) {
  const HostValue& in = call.inputs[0];
  LOCUTION_ASSIGN_OR_RETURN(int64_t at, position(call, 1, -1, static_cast<int64_t>(in.sequence.size()), 0));
  std::vector<Tensor> tensors = in.sequence;
  tensors.erase(tensors.begin() + at);
  outputs[0] = HostValue::ofSequence(in.dtype, std::move(tensors));
  return Status::ok();
}

Status sequenceAt(const HostCall& call, std::vector<HostValue>& outputs) {
  const HostValue& in = call.inputs[0];
  LOCUTION_ASSIGN_OR_RETURN(int64_t at, position(call, 1, 0, static_cast<int64_t>(in.sequence.size()), 0));
  outputs[0] = in.sequence[static_cast<size_t>(at)];
  return Status::ok();
}

Status sequenceLength(const HostCall& call, std::vector<HostValue>& outputs) {
  outputs[0] = Tensor::scalarI64(static_cast<int64_t>(call.inputs[0].sequence.size()));
  return Status::ok();
}

Status concatFromSequence(const HostCall& call, std::vector<HostValue>& outputs) {
  const HostValue& in = call.inputs[0];
  if (in.sequence.empty()) return Status::error("an empty sequence can't be concatenated");
  std::vector<Tensor> parts = in.sequence;
  int64_t axis = intAttr(call.attrs, "axis", 0);
  if (intAttr(call.attrs, "new_axis", 0) != 0) {
    LOCUTION_ASSIGN_OR_RETURN(axis, normaliseAxis(axis, parts[0].rank() + 1));
    for (Tensor& t : parts) {
      if (t.dims() != in.sequence[0].dims())
        return Status::error("shapes " + dimsText(in.sequence[0].dims()) + " and " + dimsText(t.dims()) +
                             " can't be stacked");
      std::vector<int64_t> dims = t.dims();
      dims.insert(dims.begin() + axis, 1);
      t = t.reshaped(std::move(dims));
    }
  }
  LOCUTION_ASSIGN_OR_RETURN(outputs[0], joined(parts, axis));
  return Status::ok();
}

Status splitToSequence(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(intAttr(call.attrs, "axis", 0), x.rank()));
  int64_t extent = x.dims()[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  bool drop = false;
  if (call.has(1) && call.tensor(1).rank() > 0) {
    LOCUTION_ASSIGN_OR_RETURN(sizes, integers(call, 1, "split"));
  } else {
    LOCUTION_ASSIGN_OR_RETURN(int64_t chunk, scalarInt(call, 1, 1, "split"));
    if (chunk <= 0) return Status::error("split is " + std::to_string(chunk) + ", and must be positive");
    for (int64_t at = 0; at < extent; at += std::min(chunk, extent - at)) sizes.push_back(std::min(chunk, extent - at));
    drop = !call.has(1) && intAttr(call.attrs, "keepdims", 1) == 0;
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Tensor> parts, cutUp(x, axis, sizes));
  for (Tensor& t : parts) {
    if (!drop) break;
    std::vector<int64_t> dims = t.dims();
    dims.erase(dims.begin() + axis);
    t = t.reshaped(std::move(dims));
  }
  outputs[0] = HostValue::ofSequence(x.dtype(), std::move(parts));
  return Status::ok();
}

/// An optional with something in it is that something (host_op.h).
Status optional(const HostCall& call, std::vector<HostValue>& outputs) {
  outputs[0] = call.has(0) ? call.inputs[0] : HostValue::emptyOptional();
  return Status::ok();
}
Status optionalHasElement(const HostCall& call, std::vector<HostValue>& outputs) {
  bool has = call.has(0) && call.inputs[0].form != HostValue::Form::EmptyOptional;
  outputs[0] = Tensor::of<uint8_t>(DType::Bool, {}, {static_cast<uint8_t>(has)});
  return Status::ok();
}
Status optionalGetElement(const HostCall& call, std::vector<HostValue>& outputs) {
  if (!call.has(0) || call.inputs[0].form == HostValue::Form::EmptyOptional)
    return Status::error("the optional is empty");
  outputs[0] = call.inputs[0];
  return Status::ok();
}

}  // namespace locution::hostops

#include "runtime/control.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace locution::runtime {

using hostops::HostValue;

namespace {

// Keeps a tensor's bytes alive under another shape.
class Part final : public Storage {
 public:
  explicit Part(Tensor whole) : whole_(std::move(whole)) {}
  std::byte* data() override { return whole_.raw(); }
  size_t size() const override { return whole_.bytes(); }

 private:
  Tensor whole_;
};

int64_t product(const std::vector<int64_t>& dims, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= dims[i];
  return n;
}

// Copies `count` elements.
void copyElements(const Tensor& from, int64_t fromAt, Tensor& to, int64_t toAt, int64_t count) {
  if (from.dtype() == DType::String) {
    std::copy_n(from.strings().begin() + fromAt, count, to.strings().begin() + toAt);
  } else if (int bits = dtypeBits(from.dtype()); bits % 8 != 0) {
    for (int64_t i = 0; i < count; ++i) to.setElementBits(toAt + i, from.elementBits(fromAt + i));
  } else if (count > 0) {
    std::memcpy(to.raw() + toAt * (bits / 8), from.raw() + fromAt * (bits / 8), static_cast<size_t>(count * bits / 8));
  }
}

Tensor emptyOf(DType dtype, std::vector<int64_t> dims) {
  if (dtype != DType::String) return Tensor(dtype, std::move(dims));
  int64_t n = product(dims, 0, dims.size());
  return Tensor::ofStrings(std::move(dims), std::vector<std::string>(static_cast<size_t>(n)));
}

Result<bool> truthOf(const HostValue& value, const char* what) {
  if (!value.isTensor() || value.tensor.dtype() != DType::Bool || value.tensor.elements() != 1)
    return Status::error(std::string(what) + " must be one bool");
  return value.tensor.elementAsInt(0) != 0;
}

Tensor boolScalar(bool value) {
  Tensor t(DType::Bool, {});
  t.setElementInt(0, value ? 1 : 0);
  return t;
}

// What a scanned output is made of, iteration by iteration.
class Scanned {
 public:
  Status add(HostValue value, size_t output) {
    if (!value.isTensor()) return Status::error("scanned output " + std::to_string(output) + " is no tensor");
    if (!slices_.empty() && (slices_[0].dims() != value.tensor.dims() || slices_[0].dtype() != value.tensor.dtype()))
      return Status::error("scanned output " + std::to_string(output) + " has the shape " + value.tensor.shape().str() +
                           ", but " + slices_[0].shape().str() + " in the iterations before");
    slices_.push_back(std::move(value.tensor));
    return Status::ok();
  }
  Result<HostValue> take(int64_t axis, bool backwards, const OutputInfo& empty) {
    if (slices_.empty()) {
      // Dims that no iteration told are 0.
      std::vector<int64_t> dims = empty.dims.empty() ? std::vector<int64_t>{0} : empty.dims;
      if (axis < 0) axis += static_cast<int64_t>(dims.size());
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] < 0 || static_cast<int64_t>(i) == axis) dims[i] = 0;
      return HostValue(emptyOf(empty.dtype, std::move(dims)));
    }
    int64_t rank = slices_[0].rank() + 1;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      return Status::error("axis " + std::to_string(axis) + " of a scanned output of rank " + std::to_string(rank));
    if (backwards) std::reverse(slices_.begin(), slices_.end());
    return HostValue(stackOf(slices_, axis));
  }

 private:
  std::vector<Tensor> slices_;
};

Result<std::vector<HostValue>> runLoop(ControlCall& call, const RegionRunner& run) {
  if (call.inputs.size() < 2) return Status::error("a loop has at least two inputs");
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (const HostValue& m = call.inputs[0]; m.isPresent()) {
    if (!m.isTensor() || !isInteger(m.tensor.dtype()) || m.tensor.elements() != 1)
      return Status::error("the trip count must be one integer");
    trips = m.tensor.elementAsInt(0);
  }
  bool goOn = true;
  if (call.inputs[1].isPresent()) {
    LOCUTION_ASSIGN_OR_RETURN(goOn, truthOf(call.inputs[1], "the condition"));
  }
  std::vector<HostValue> state(std::make_move_iterator(call.inputs.begin() + 2),
                               std::make_move_iterator(call.inputs.end()));
  call.inputs.clear();
  const size_t states = state.size();
  if (call.outputs.size() < states) return Status::error("a loop gives all of its state");
  std::vector<Scanned> scanned(call.outputs.size() - states);
  for (int64_t i = 0; i < trips && goOn; ++i) {
    std::vector<HostValue> inputs;
    inputs.reserve(states + 2);
    inputs.emplace_back(Tensor::scalarI64(i));
    inputs.emplace_back(boolScalar(goOn));
    std::move(state.begin(), state.end(), std::back_inserter(inputs));
    state.clear();
    auto results = run(0, std::move(inputs));
    if (!results.isOk()) return results.status().withContext("iteration " + std::to_string(i));
    if (results->size() != 1 + states + scanned.size()) return Status::error("the body gives another number of values");
    LOCUTION_ASSIGN_OR_RETURN(goOn, truthOf((*results)[0], "the body's condition"));
    state.assign(std::make_move_iterator(results->begin() + 1),
                 std::make_move_iterator(results->begin() + 1 + static_cast<std::ptrdiff_t>(states)));
    for (size_t k = 0; k < scanned.size(); ++k)
      if (call.outputs[states + k].isWanted)
        LOCUTION_RETURN_IF_ERROR(scanned[k].add(std::move((*results)[1 + states + k]), states + k));
  }
  for (size_t k = 0; k < scanned.size(); ++k) {
    LOCUTION_ASSIGN_OR_RETURN(HostValue whole, scanned[k].take(0, false, call.outputs[states + k]));
    state.push_back(std::move(whole));
  }
  return state;
}

int64_t entry(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

Result<std::vector<HostValue>> runScan(ControlCall& call, const RegionRunner& run) {
  int64_t scans = hostops::intAttr(call.attrs, "num_scan_inputs", 0);
  if (scans < 1 || scans > static_cast<int64_t>(call.inputs.size()))
    return Status::error("num_scan_inputs is " + std::to_string(scans) + ", there are " +
                         std::to_string(call.inputs.size()) + " inputs");
  const size_t states = call.inputs.size() - static_cast<size_t>(scans);
  if (call.outputs.size() < states) return Status::error("a scan gives all of its state");
  std::vector<int64_t> inAxes = hostops::intsAttr(call.attrs, "scan_input_axes"),
                       inDirections = hostops::intsAttr(call.attrs, "scan_input_directions"),
                       outAxes = hostops::intsAttr(call.attrs, "scan_output_axes"),
                       outDirections = hostops::intsAttr(call.attrs, "scan_output_directions");
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (size_t k = 0; k < static_cast<size_t>(scans); ++k) {
    const HostValue& value = call.inputs[states + k];
    if (!value.isTensor()) return Status::error("scanned input " + std::to_string(k) + " is no tensor");
    int64_t axis = entry(inAxes, k), rank = value.tensor.rank();
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      return Status::error("axis " + std::to_string(entry(inAxes, k)) + " of scanned input " + std::to_string(k) +
                           " of rank " + std::to_string(rank));
    int64_t extent = value.tensor.dims()[static_cast<size_t>(axis)];
    if (length >= 0 && extent != length)
      return Status::error("scanned inputs of " + std::to_string(length) + " and " + std::to_string(extent) +
                           " slices");
    length = extent;
    axes.push_back(axis);
  }
  std::vector<HostValue> state(call.inputs.begin(), call.inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<Scanned> scanned(call.outputs.size() - states);
  for (int64_t i = 0; i < length; ++i) {
    std::vector<HostValue> inputs = std::move(state);
    state.clear();
    for (size_t k = 0; k < axes.size(); ++k)
      inputs.emplace_back(
          sliceOf(call.inputs[states + k].tensor, axes[k], entry(inDirections, k) == 1 ? length - 1 - i : i));
    auto results = run(0, std::move(inputs));
    if (!results.isOk()) return results.status().withContext("iteration " + std::to_string(i));
    if (results->size() != states + scanned.size()) return Status::error("the body gives another number of values");
    state.assign(std::make_move_iterator(results->begin()),
                 std::make_move_iterator(results->begin() + static_cast<std::ptrdiff_t>(states)));
    for (size_t k = 0; k < scanned.size(); ++k)
      if (call.outputs[states + k].isWanted)
        LOCUTION_RETURN_IF_ERROR(scanned[k].add(std::move((*results)[states + k]), states + k));
  }
  for (size_t k = 0; k < scanned.size(); ++k) {
    LOCUTION_ASSIGN_OR_RETURN(
        HostValue whole, scanned[k].take(entry(outAxes, k), entry(outDirections, k) == 1, call.outputs[states + k]));
    state.push_back(std::move(whole));
  }
  return state;
}

}  // namespace

Tensor sliceOf(const Tensor& tensor, int64_t axis, int64_t index) {
  const std::vector<int64_t>& dims = tensor.dims();
  const auto a = static_cast<size_t>(axis);
  int64_t outer = product(dims, 0, a), inner = product(dims, a + 1, dims.size());
  std::vector<int64_t> sliced = dims;
  sliced.erase(sliced.begin() + axis);
  int bits = tensor.dtype() == DType::String ? 0 : dtypeBits(tensor.dtype());
  if (outer == 1 && bits > 0 && bits % 8 == 0 && inner > 0)
    return Tensor(tensor.dtype(), std::move(sliced), std::make_shared<Part>(tensor),
                  static_cast<size_t>(index * inner * (bits / 8)));
  Tensor out = emptyOf(tensor.dtype(), std::move(sliced));
  for (int64_t o = 0; o < outer; ++o) copyElements(tensor, (o * dims[a] + index) * inner, out, o * inner, inner);
  return out;
}

Tensor stackOf(const std::vector<Tensor>& tensors, int64_t axis) {
  const Tensor& first = tensors.front();
  std::vector<int64_t> dims = first.dims();
  int64_t outer = product(dims, 0, static_cast<size_t>(axis)),
          inner = product(dims, static_cast<size_t>(axis), dims.size());
  const auto count = static_cast<int64_t>(tensors.size());
  dims.insert(dims.begin() + axis, count);
  Tensor out = emptyOf(first.dtype(), std::move(dims));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t o = 0; o < outer; ++o)
      copyElements(tensors[static_cast<size_t>(i)], o * inner, out, (o * count + i) * inner, inner);
  return out;
}

Result<std::vector<HostValue>> runControl(ControlCall call, const RegionRunner& run) {
  switch (call.kind) {
    case RegionKind::Call:
      return run(0, {});
    case RegionKind::If: {
      if (call.inputs.empty()) return Status::error("the condition is missing");
      LOCUTION_ASSIGN_OR_RETURN(bool condition, truthOf(call.inputs[0], "the condition"));
      return run(condition ? 0 : 1, {});
    }
    case RegionKind::Loop:
      return runLoop(call, run);
    case RegionKind::Scan:
      return runScan(call, run);
  }
  return Status::error("an unknown kind of region");
}

}  // namespace locution::runtime

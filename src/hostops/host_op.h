// Host operators: what is not loops over tensors (strings, sequences, shapes that depend on data), as C++ behind one interface.
// Constant folding and the runtime share them. The list is hostops.inc; names and meaning are the newest ai.onnx opset's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "hostops/attrs.h"
#include "support/status.h"

namespace locution::hostops {

/// What an input or output can be. An optional that holds something is that something: ONNX lets either stand for the other.
struct HostValue {
  enum class Form : uint8_t {
    Absent,  ///< an optional input that was left out
    Tensor,
    Sequence,  ///< of tensors of one dtype
    EmptyOptional,
  };
  Form form = Form::Absent;
  Tensor tensor;
  std::vector<Tensor> sequence;
  DType dtype = DType::F32;  ///< of the sequence's tensors, known when it is empty, too

  HostValue() = default;
  HostValue(Tensor t)
      : form(Form::Tensor), tensor(std::move(t)), dtype(tensor.dtype()) {}  // NOLINT: a tensor is a value
  static HostValue ofSequence(DType dtype, std::vector<Tensor> tensors) {
    HostValue v;
    v.form = Form::Sequence;
    v.dtype = dtype;
    v.sequence = std::move(tensors);
    return v;
  }
  static HostValue emptyOptional() {
    HostValue v;
    v.form = Form::EmptyOptional;
    return v;
  }
  bool isTensor() const { return form == Form::Tensor; }
  bool isSequence() const { return form == Form::Sequence; }
  bool isPresent() const { return form != Form::Absent; }
};

/// One call of an operator.
struct HostCall {
  std::span<const HostValue> inputs;
  const Attrs& attrs;
  size_t outputCount = 1;  ///< outputs past this are not wanted
  /// For random operators whose node carries no seed: the same node gives the same numbers in every run.
  uint64_t defaultSeed = 0;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].isPresent(); }
  /// The tensor at input i, which must be one: `runHostOp` has checked.
  const Tensor& tensor(size_t i) const { return inputs[i].tensor; }
};

/// What an input has to be.
enum class InputForm : uint8_t {
  Tensor,
  Sequence,
  Any,
};

struct HostOp {
  std::string_view name;
  int minInputs = 0, maxInputs = 0;     ///< maxInputs -1: any number
  int maxOutputs = 1;                   ///< -1: any number
  InputForm first = InputForm::Tensor;  ///< of input 0; the others are tensors
  /// Fills `outputs` (of call.outputCount). Inputs are never written. Messages go without the node: the caller adds it.
  Status (*run)(const HostCall& call, std::vector<HostValue>& outputs) = nullptr;
};

/// nullptr when there is no such operator.
const HostOp* findHostOp(std::string_view name);
std::span<const HostOp> allHostOps();

/// Checks the count and form of the inputs, then runs. Errors: wrong inputs, what the operator says, memory that is not there.
Status runHostOp(const HostOp& op, const HostCall& call, std::vector<HostValue>& outputs);

}  // namespace locution::hostops

#include "hostops/host_op.h"

#include <algorithm>
#include <exception>
#include <new>

#include "hostops/ops.h"

namespace locution::hostops {
namespace {

constexpr HostOp kHostOps[] = {
#define HOSTOP(Name, minInputs, maxInputs, maxOutputs, first, function) \
  {#Name, minInputs, maxInputs, maxOutputs, InputForm::first, function},
#include "hostops/hostops.inc"
#undef HOSTOP
};

const char* formName(const HostValue& value) {
  switch (value.form) {
    case HostValue::Form::Absent:
      return "left out";
    case HostValue::Form::Tensor:
      return "a tensor";
    case HostValue::Form::Sequence:
      return "a sequence";
    case HostValue::Form::EmptyOptional:
      return "an empty optional";
  }
  return "";
}

Status checkInputs(const HostOp& op, const HostCall& call) {
  auto count = static_cast<int>(call.inputs.size());
  if (count < op.minInputs || (op.maxInputs >= 0 && count > op.maxInputs))
    return Status::error("takes " + std::to_string(op.minInputs) +
                         (op.maxInputs < 0 ? " or more" : " to " + std::to_string(op.maxInputs)) + " inputs, not " +
                         std::to_string(count));
  if (op.maxOutputs >= 0 && static_cast<int>(call.outputCount) > op.maxOutputs)
    return Status::error("gives at most " + std::to_string(op.maxOutputs) + " outputs, not " +
                         std::to_string(call.outputCount));
  for (int i = 0; i < count; ++i) {
    const HostValue& value = call.inputs[static_cast<size_t>(i)];
    InputForm wanted = i == 0 ? op.first : InputForm::Tensor;
    if (wanted == InputForm::Any || (i >= op.minInputs && !value.isPresent())) continue;
    bool fits = wanted == InputForm::Tensor ? value.isTensor() && value.tensor.isValid() : value.isSequence();
    if (!fits)
      return Status::error("input " + std::to_string(i) + " must be " +
                           (wanted == InputForm::Tensor ? "a tensor" : "a sequence") + ", but is " + formName(value));
  }
  return Status::ok();
}

}  // namespace

std::span<const HostOp> allHostOps() { return kHostOps; }

const HostOp* findHostOp(std::string_view name) {
  const auto* at =
      std::find_if(std::begin(kHostOps), std::end(kHostOps), [&](const HostOp& op) { return op.name == name; });
  return at == std::end(kHostOps) ? nullptr : at;
}

Status runHostOp(const HostOp& op, const HostCall& call, std::vector<HostValue>& outputs) {
  LOCUTION_RETURN_IF_ERROR(checkInputs(op, call));
  outputs.assign(call.outputCount, HostValue());
  try {
    return op.run(call, outputs);
  } catch (const std::bad_alloc&) {
    return Status::error("there is not enough memory for the output");
  } catch (const std::exception& e) {
    return Status::error(e.what());
  }
}

}  // namespace locution::hostops

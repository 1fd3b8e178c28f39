// Values in files, as ONNX's test data and many tools hold them: a serialised TensorProto, SequenceProto or OptionalProto (.pb).
#pragma once

#include <string>

#include "core/tensor.h"
#include "hostops/host_op.h"
#include "support/status.h"

namespace locution::frontend {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A TensorProto; its external data, if any, lies in the file's folder.
Result<NamedTensor> readTensorProto(const std::string& path);
Status writeTensorProto(const std::string& path, const std::string& name, const Tensor& tensor);

/// A value of that kind: a TensorProto, a SequenceProto (of tensors) or an OptionalProto (of a tensor, a sequence, or nothing).
Result<hostops::HostValue> readValueProto(const std::string& path, ValueKind kind);
/// The form of `value` decides between TensorProto and SequenceProto; with `kind` Optional it is wrapped in an OptionalProto.
Status writeValueProto(const std::string& path, const std::string& name, const hostops::HostValue& value,
                       ValueKind kind);

}  // namespace locution::frontend

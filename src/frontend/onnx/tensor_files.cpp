#include "frontend/onnx/tensor_files.h"

#include <limits>

#include "frontend/onnx/proto_io.h"
#include "frontend/onnx/tensor_proto.h"
#include "onnx-data.pb.h"

namespace locution::frontend {
namespace {

using hostops::HostValue;

TensorReader readerFor(const std::string& path) {
  constexpr int64_t kMaxDenseBytes = int64_t{2} << 30;
  return TensorReader(folderOf(path), kMaxDenseBytes);
}

Result<HostValue> fromSequence(onnx::SequenceProto& proto, TensorReader& reader) {
  if (proto.elem_type() != onnx::SequenceProto::TENSOR && proto.elem_type() != onnx::SequenceProto::UNDEFINED)
    return Status::error("sequences of other things than tensors are not supported");
  std::vector<Tensor> tensors;
  for (auto& item : *proto.mutable_tensor_values()) {
    LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, reader.take(item));
    tensors.push_back(std::move(tensor));
  }
  DType dtype = tensors.empty() ? DType::F32 : tensors[0].dtype();
  for (const Tensor& t : tensors)
    if (t.dtype() != dtype) return Status::error("the tensors of the sequence have different data types");
  return HostValue::ofSequence(dtype, std::move(tensors));
}

Result<HostValue> fromOptional(onnx::OptionalProto& proto, TensorReader& reader) {
  switch (proto.elem_type()) {
    case onnx::OptionalProto::TENSOR: {
      if (!proto.has_tensor_value()) return HostValue::emptyOptional();
      LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, reader.take(*proto.mutable_tensor_value()));
      return HostValue(std::move(tensor));
    }
    case onnx::OptionalProto::SEQUENCE:
      return proto.has_sequence_value() ? fromSequence(*proto.mutable_sequence_value(), reader)
                                        : Result<HostValue>(HostValue::emptyOptional());
    case onnx::OptionalProto::OPTIONAL:
      return proto.has_optional_value() ? fromOptional(*proto.mutable_optional_value(), reader)
                                        : Result<HostValue>(HostValue::emptyOptional());
    case onnx::OptionalProto::UNDEFINED:
      return HostValue::emptyOptional();
    default:
      return Status::error("optionals of other things than tensors and sequences are not supported");
  }
}

void toSequence(const HostValue& value, onnx::SequenceProto& proto) {
  proto.set_elem_type(onnx::SequenceProto::TENSOR);
  for (const Tensor& t : value.sequence) *proto.add_tensor_values() = tensorToProto("", t);
}

}  // namespace

Result<NamedTensor> readTensorProto(const std::string& path) {
  onnx::TensorProto proto;
  LOCUTION_RETURN_IF_ERROR(parseProtoFile(path, "a TensorProto", proto));
  TensorReader reader = readerFor(path);
  auto tensor = reader.take(proto);
  if (!tensor) return tensor.status().withContext(path);
  return NamedTensor{proto.name(), std::move(*tensor)};
}

Status writeTensorProto(const std::string& path, const std::string& name, const Tensor& tensor) {
  return writeProtoFile(path, tensorToProto(name, tensor));
}

Result<HostValue> readValueProto(const std::string& path, ValueKind kind) {
  TensorReader reader = readerFor(path);
  auto value = [&]() -> Result<HostValue> {
    if (kind == ValueKind::Sequence) {
      onnx::SequenceProto proto;
      LOCUTION_RETURN_IF_ERROR(parseProtoFile(path, "a SequenceProto", proto));
      auto sequence = fromSequence(proto, reader);
      return sequence ? sequence : sequence.status().withContext(path);
    }
    onnx::OptionalProto proto;
    LOCUTION_RETURN_IF_ERROR(parseProtoFile(path, "an OptionalProto", proto));
    auto optional = fromOptional(proto, reader);
    return optional ? optional : optional.status().withContext(path);
  };
  if (kind != ValueKind::Tensor) return value();
  LOCUTION_ASSIGN_OR_RETURN(NamedTensor tensor, readTensorProto(path));
  return HostValue(std::move(tensor.tensor));
}

Status writeValueProto(const std::string& path, const std::string& name, const HostValue& value, ValueKind kind) {
  if (kind == ValueKind::Optional) {
    onnx::OptionalProto proto;
    proto.set_name(name);
    if (value.isTensor()) {
      proto.set_elem_type(onnx::OptionalProto::TENSOR);
      *proto.mutable_tensor_value() = tensorToProto("", value.tensor);
    } else if (value.isSequence()) {
      proto.set_elem_type(onnx::OptionalProto::SEQUENCE);
      toSequence(value, *proto.mutable_sequence_value());
    }
    return writeProtoFile(path, proto);
  }
  if (value.isTensor()) return writeTensorProto(path, name, value.tensor);
  if (!value.isSequence()) return Status::error("can't write '" + path + "': there is no value");
  onnx::SequenceProto proto;
  proto.set_name(name);
  toSequence(value, proto);
  return writeProtoFile(path, proto);
}

}  // namespace locution::frontend

#include "frontend/onnx/type_proto.h"

#include <cctype>

#include "frontend/onnx/tensor_proto.h"

namespace locution::frontend {
namespace {

// Some exporters write "?" or "-1" for every dim they don't know: these don't say that the dims are equal.
bool isName(const std::string& text) {
  return !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_');
}

}  // namespace

Result<ValueType> TypeReader::readTensor(int32_t elemType, bool hasShape, const onnx::TensorShapeProto& shape,
                                         const std::string& valueName) {
  ValueType out;
  std::optional<DType> dtype = dtypeOfProto(elemType);
  if (!dtype) return Status::error("unknown element type " + std::to_string(elemType));
  out.dtype = *dtype;
  out.shape = Shape::unranked();
  if (!hasShape) return out;
  std::vector<Dim> dims;
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto& dim = shape.dim(i);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      dims.emplace_back(dim.dim_value());
    } else if (dim.has_dim_param() && isName(dim.dim_param())) {
      dims.push_back(Dim::symbol(dim.dim_param()));
    } else {
      // So does a negative number.
      std::string name = valueName + "." + std::to_string(i);
      while (!symbols_.insert(name).second) name += "_";
      dims.push_back(Dim::symbol(name));
    }
  }
  out.shape = Shape(std::move(dims));
  return out;
}

Result<ValueType> TypeReader::read(const onnx::TypeProto& proto, const std::string& valueName) {
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType:
      return readTensor(proto.tensor_type().elem_type(), proto.tensor_type().has_shape(), proto.tensor_type().shape(),
                        valueName);
    case onnx::TypeProto::kSequenceType: {
      const onnx::TypeProto& inner = proto.sequence_type().elem_type();
      if (inner.value_case() != onnx::TypeProto::kTensorType)
        return Status::error("sequences of other things than tensors are not supported");
      LOCUTION_ASSIGN_OR_RETURN(ValueType type, read(inner, valueName));
      type.kind = ValueKind::Sequence;
      return type;
    }
    case onnx::TypeProto::kOptionalType: {
      LOCUTION_ASSIGN_OR_RETURN(ValueType type, read(proto.optional_type().elem_type(), valueName));
      type.kind = ValueKind::Optional;
      return type;
    }
    case onnx::TypeProto::kMapType:
      return Status::error("maps are not supported");
    case onnx::TypeProto::kSparseTensorType:
      return Status::error("sparse tensors as values are not supported");
    default:
      return Status::error("no type is given");
  }
}

namespace {

void collect(const onnx::TypeProto& type, std::set<std::string>& out) {
  if (type.has_sequence_type()) collect(type.sequence_type().elem_type(), out);
  if (type.has_optional_type()) collect(type.optional_type().elem_type(), out);
  if (!type.has_tensor_type()) return;
  for (const auto& dim : type.tensor_type().shape().dim())
    if (dim.has_dim_param()) out.insert(dim.dim_param());
}

}  // namespace

std::set<std::string> dimParamsOf(const onnx::GraphProto& graph) {
  std::set<std::string> out;
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& info : *list) collect(info.type(), out);
  return out;
}

}  // namespace locution::frontend

#include "frontend/onnx/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/messages.h"

namespace locution::frontend {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX's raw data is little-endian");

using onnx::TensorProto;

struct DTypePair {
  int32_t number;
  DType dtype;
};
constexpr DTypePair kDTypes[] = {
    {TensorProto::FLOAT, DType::F32},
    {TensorProto::UINT8, DType::U8},
    {TensorProto::INT8, DType::I8},
    {TensorProto::UINT16, DType::U16},
    {TensorProto::INT16, DType::I16},
    {TensorProto::INT32, DType::I32},
    {TensorProto::INT64, DType::I64},
    {TensorProto::STRING, DType::String},
    {TensorProto::BOOL, DType::Bool},
    {TensorProto::FLOAT16, DType::F16},
    {TensorProto::DOUBLE, DType::F64},
    {TensorProto::UINT32, DType::U32},
    {TensorProto::UINT64, DType::U64},
    {TensorProto::COMPLEX64, DType::C64},
    {TensorProto::COMPLEX128, DType::C128},
    {TensorProto::BFLOAT16, DType::BF16},
    {TensorProto::FLOAT8E4M3FN, DType::F8E4M3FN},
    {TensorProto::FLOAT8E4M3FNUZ, DType::F8E4M3FNUZ},
    {TensorProto::FLOAT8E5M2, DType::F8E5M2},
    {TensorProto::FLOAT8E5M2FNUZ, DType::F8E5M2FNUZ},
    {TensorProto::UINT4, DType::U4},
    {TensorProto::INT4, DType::I4},
    {TensorProto::FLOAT4E2M1, DType::F4E2M1},
    {TensorProto::FLOAT8E8M0, DType::F8E8M0},
    {TensorProto::UINT2, DType::U2},
    {TensorProto::INT2, DType::I2},
};

constexpr int64_t kMaxBytes = int64_t{1} << 48;

/// Elements of `dims`; an error when one is negative or the whole could not be in memory.
Result<int64_t> countElements(const std::vector<int64_t>& dims) {
  for (int64_t d : dims)
    if (d < 0) return Status::error("dims " + Shape::of(dims).str() + ": an extent is negative");
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return int64_t{0};
  int64_t count = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(count, d, &count) || count > kMaxBytes)
      return Status::error("dims " + Shape::of(dims).str() + ": too large");
  return count;
}

std::string typeText(DType dtype, const std::vector<int64_t>& dims) {
  return std::string(dtypeName(dtype)) + "[" + Shape::of(dims).str() + "]";
}

/// Bytes other than 0 and 1 are no booleans, and the unused bits of the last byte of a packed type are 0.
void makeCanonical(Tensor& tensor) {
  if (tensor.dtype() == DType::Bool) {
    auto* bytes = reinterpret_cast<uint8_t*>(tensor.raw());
    for (int64_t i = 0, n = tensor.elements(); i < n; ++i)
      if (bytes[i] > 1) bytes[i] = 1;
  }
  if (isSubByte(tensor.dtype()) && tensor.bytes() > 0) {
    int used = static_cast<int>(tensor.elements() * dtypeBits(tensor.dtype()) % 8);
    std::byte& last = tensor.raw()[tensor.bytes() - 1];
    auto mask = static_cast<std::byte>((1 << used) - 1);
    if (used != 0 && (last & ~mask) != std::byte{0}) last &= mask;
  }
}

/// Copies a typed field of the proto into a new tensor, each entry narrowed to `Element`; `perElement` entries an element.
template <typename Element, typename Field>
Result<Tensor> fromField(DType dtype, const std::vector<int64_t>& dims, int64_t entries, const Field& field,
                         const char* name) {
  if (field.size() != entries)
    return Status::error(typeText(dtype, dims) + " needs " + std::to_string(entries) + " entries in " + name +
                         ", has " + std::to_string(field.size()));
  Tensor out(dtype, dims);
  Element* to = out.data<Element>();
  for (int i = 0; i < field.size(); ++i) to[i] = static_cast<Element>(field.Get(i));
  return out;
}

Result<Tensor> fromTypedFields(TensorProto& proto, DType dtype, const std::vector<int64_t>& dims, int64_t count) {
  switch (dtype) {
    case DType::F32:
      return fromField<float>(dtype, dims, count, proto.float_data(), "float_data");
    case DType::C64:
      return fromField<float>(dtype, dims, 2 * count, proto.float_data(), "float_data");
    case DType::F64:
      return fromField<double>(dtype, dims, count, proto.double_data(), "double_data");
    case DType::C128:
      return fromField<double>(dtype, dims, 2 * count, proto.double_data(), "double_data");
    case DType::I64:
      return fromField<int64_t>(dtype, dims, count, proto.int64_data(), "int64_data");
    case DType::U32:
      return fromField<uint32_t>(dtype, dims, count, proto.uint64_data(), "uint64_data");
    case DType::U64:
      return fromField<uint64_t>(dtype, dims, count, proto.uint64_data(), "uint64_data");
    case DType::String: {
      if (proto.string_data_size() != count)
        return Status::error(typeText(dtype, dims) + " needs " + std::to_string(count) +
                             " entries in string_data, has " + std::to_string(proto.string_data_size()));
      std::vector<std::string> values;
      values.reserve(static_cast<size_t>(count));
      for (std::string& s : *proto.mutable_string_data()) values.push_back(std::move(s));
      return Tensor::ofStrings(dims, std::move(values));
    }
    default:
      break;
  }
  const auto& ints = proto.int32_data();
  switch (dtypeBits(dtype)) {
    case 32:
      return fromField<int32_t>(dtype, dims, count, ints, "int32_data");
    case 16:
      return fromField<uint16_t>(dtype, dims, count, ints, "int32_data");
    case 8:
      return fromField<uint8_t>(dtype, dims, count, ints, "int32_data");
    // Packed types: an entry is a byte of two or four elements.
    default:
      return fromField<uint8_t>(dtype, dims, dtypeBytes(dtype, count), ints, "int32_data");
  }
}

bool hasTypedData(const TensorProto& p) {
  return p.float_data_size() + p.int32_data_size() + p.string_data_size() + p.int64_data_size() + p.double_data_size() +
             p.uint64_data_size() >
         0;
}

Result<int64_t> parseNumber(const std::string& text, const char* key) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return Status::error("external data: " + std::string(key) + " " + named(text) + " isn't a size");
  return value;
}

}  // namespace

std::optional<DType> dtypeOfProto(int64_t number) {
  for (const DTypePair& p : kDTypes)
    if (p.number == number) return p.dtype;
  return std::nullopt;
}

int32_t protoOfDType(DType dtype) {
  for (const DTypePair& p : kDTypes)
    if (p.dtype == dtype) return p.number;
  return TensorProto::UNDEFINED;
}

Result<Tensor> TensorReader::takeExternal(const TensorProto& proto, DType dtype, std::vector<int64_t> dims) {
  if (dtype == DType::String) return Status::error("strings can't be external data");
  ExternalRange range;
  std::optional<int64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") {
      LOCUTION_ASSIGN_OR_RETURN(range.offset, parseNumber(entry.value(), "offset"));
    }
    if (entry.key() == "length") {
      LOCUTION_ASSIGN_OR_RETURN(length, parseNumber(entry.value(), "length"));
    }
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t count, countElements(dims));
  int64_t bytes = dtypeBytes(dtype, count);
  range.length = length.value_or(bytes);
  if (range.length != bytes)
    return Status::error(range.str() + ": " + typeText(dtype, dims) + " takes " + std::to_string(bytes) + " bytes");
  if (!folder_) return Status::error(range.str() + ": a model in memory has no folder");
  auto alignment = static_cast<size_t>(std::clamp(dtypeBits(dtype) / 8, 1, 8));
  LOCUTION_ASSIGN_OR_RETURN(auto storage, openExternal(*folder_, range, alignment));
  externalFiles_.insert(range.location);
  return Tensor(dtype, std::move(dims), std::move(storage));
}

Result<Tensor> TensorReader::take(TensorProto& proto) {
  // The rest goes when this ends, whatever the outcome.
  TensorProto taken;
  taken.Swap(&proto);
  proto.set_name(taken.name());
  auto tensor = [&]() -> Result<Tensor> {
    std::optional<DType> dtype = dtypeOfProto(taken.data_type());
    if (!dtype) return Status::error("unknown data type " + std::to_string(taken.data_type()));
    if (taken.has_segment()) return Status::error("segments are not supported");
    std::vector<int64_t> dims(taken.dims().begin(), taken.dims().end());
    if (taken.data_location() == TensorProto::EXTERNAL) return takeExternal(taken, *dtype, std::move(dims));
    LOCUTION_ASSIGN_OR_RETURN(int64_t count, countElements(dims));
    if (!taken.has_raw_data() || (taken.raw_data().empty() && hasTypedData(taken)))
      return fromTypedFields(taken, *dtype, dims, count);
    if (*dtype == DType::String) return Status::error("strings can't be raw data");
    int64_t bytes = dtypeBytes(*dtype, count);
    if (static_cast<int64_t>(taken.raw_data().size()) != bytes)
      return Status::error(typeText(*dtype, dims) + " takes " + std::to_string(bytes) + " bytes, raw_data has " +
                           std::to_string(taken.raw_data().size()));
    return Tensor(*dtype, std::move(dims), storageFromString(std::move(*taken.mutable_raw_data())));
  }();
  if (!tensor) return tensor.status().withContext("tensor " + named(proto.name()));
  makeCanonical(*tensor);
  return tensor;
}

Result<Tensor> TensorReader::takeSparse(onnx::SparseTensorProto& proto) {
  std::string name = proto.values().name();
  auto tensor = [&]() -> Result<Tensor> {
    LOCUTION_ASSIGN_OR_RETURN(Tensor values, take(*proto.mutable_values()));
    LOCUTION_ASSIGN_OR_RETURN(Tensor indices, take(*proto.mutable_indices()));
    std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
    LOCUTION_ASSIGN_OR_RETURN(int64_t count, countElements(dims));
    auto rank = static_cast<int64_t>(dims.size());
    if (values.rank() != 1 || indices.dtype() != DType::I64 || values.dtype() == DType::String ||
        isSubByte(values.dtype()))
      return Status::error("values must be numbers of rank 1, indices int64");
    int64_t entries = values.elements();
    bool linear = indices.rank() == 1 && indices.elements() == entries;
    bool tuples = indices.rank() == 2 && indices.dims()[0] == entries && indices.dims()[1] == rank;
    if (!linear && !tuples)
      return Status::error("indices " + indices.shape().str() + " don't fit " + std::to_string(entries) +
                           " values of rank " + std::to_string(rank));
    if (count == 0 && entries > 0) return Status::error("an empty tensor with " + std::to_string(entries) + " values");
    int64_t bytes = dtypeBytes(values.dtype(), count);
    if (bytes > denseBudget_)
      return Status::error(typeText(values.dtype(), dims) + " would take " + std::to_string(bytes) + " bytes");
    denseBudget_ -= bytes;
    Tensor out(values.dtype(), dims);
    auto width = static_cast<size_t>(dtypeBits(values.dtype()) / 8);
    for (int64_t i = 0; i < entries; ++i) {
      int64_t at = 0;
      if (linear) at = indices.data<int64_t>()[i];
      for (int64_t d = 0; tuples && d < rank; ++d) {
        int64_t index = indices.data<int64_t>()[i * rank + d];
        if (index < 0 || index >= dims[static_cast<size_t>(d)])
          return Status::error("index " + std::to_string(index) + " is outside " + Shape::of(dims).str());
        at = at * dims[static_cast<size_t>(d)] + index;
      }
      if (at < 0 || at >= count)
        return Status::error("index " + std::to_string(at) + " is outside " + Shape::of(dims).str());
      std::memcpy(out.raw() + static_cast<size_t>(at) * width, values.raw() + static_cast<size_t>(i) * width, width);
    }
    return out;
  }();
  return tensor ? std::move(tensor) : tensor.status().withContext("sparse tensor " + named(name));
}

onnx::TensorProto tensorToProto(const std::string& name, const Tensor& tensor) {
  TensorProto out;
  out.set_name(name);
  out.set_data_type(protoOfDType(tensor.dtype()));
  for (int64_t d : tensor.dims()) out.add_dims(d);
  if (tensor.dtype() == DType::String) {
    for (const std::string& s : tensor.strings()) out.add_string_data(s);
  } else {
    out.set_raw_data(tensor.raw(), tensor.bytes());
  }
  return out;
}

}  // namespace locution::frontend

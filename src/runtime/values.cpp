#include "runtime/values.h"

#include <fstream>
#include <sstream>

#include "hostops/attrs.h"
#include "hostops/byte_stream.h"

namespace locution::runtime {
namespace {

constexpr std::string_view kMagic = "locution values 1\n";
constexpr int kForms = 4;
constexpr int kDTypes =
#define DTYPE(...) +1
#include "core/dtypes.inc"
#undef DTYPE
    ;

void writeValue(hostops::ByteWriter& out, const hostops::HostValue& value) {
  out.number(static_cast<uint8_t>(value.form));
  if (value.isTensor()) hostops::writeTensor(out, value.tensor);
  if (!value.isSequence()) return;
  out.number(static_cast<uint8_t>(value.dtype));
  out.number(static_cast<uint64_t>(value.sequence.size()));
  for (const Tensor& t : value.sequence) hostops::writeTensor(out, t);
}

hostops::HostValue readValue(hostops::ByteReader& in) {
  using Form = hostops::HostValue::Form;
  switch (in.enumerator<Form>(kForms)) {
    case Form::Tensor:
      return hostops::readTensor(in);
    case Form::EmptyOptional:
      return hostops::HostValue::emptyOptional();
    case Form::Sequence: {
      auto dtype = in.enumerator<DType>(kDTypes);
      std::vector<Tensor> tensors;
      for (size_t n = in.count(1); tensors.size() < n && !in.failed();) tensors.push_back(hostops::readTensor(in));
      return hostops::HostValue::ofSequence(dtype, std::move(tensors));
    }
    default:
      return {};
  }
}

}  // namespace

Result<std::vector<hostops::HostValue>> readValues(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error("cannot open " + path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string bytes = text.str();
  hostops::ByteReader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return Status::error(path + " is not a file of values");
  std::vector<hostops::HostValue> values;
  for (size_t n = in.count(1); values.size() < n && !in.failed();) values.push_back(readValue(in));
  if (in.failed() || !in.atEnd()) return Status::error(path + " is cut off or damaged");
  return values;
}

Status writeValues(const std::string& path, const std::vector<hostops::HostValue>& values) {
  hostops::ByteWriter out;
  out.raw(kMagic.data(), kMagic.size());
  out.number(static_cast<uint64_t>(values.size()));
  for (const hostops::HostValue& value : values) writeValue(out, value);
  std::ofstream file(path, std::ios::binary);
  file.write(out.bytes().data(), static_cast<std::streamsize>(out.bytes().size()));
  file.close();
  return file ? Status::ok() : Status::error("cannot write " + path);
}

}  // namespace locution::runtime

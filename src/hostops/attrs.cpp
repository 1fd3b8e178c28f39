#include "hostops/attrs.h"

#include <iterator>
#include <optional>

#include "support/strings.h"

namespace locution::hostops {
namespace {

constexpr int kDTypes =
#define DTYPE(Name, text, bits, kind) +1
#include "core/dtypes.inc"
#undef DTYPE
    ;

// Indexed by TensorProto.DataType.
constexpr std::optional<DType> kOnnxTypes[] = {
    std::nullopt, DType::F32,    DType::U8,     DType::I8,       DType::U16,        DType::I16,    DType::I32,
    DType::I64,   DType::String, DType::Bool,   DType::F16,      DType::F64,        DType::U32,    DType::U64,
    DType::C64,   DType::C128,   DType::BF16,   DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
    DType::U4,    DType::I4,     DType::F4E2M1, DType::F8E8M0,   DType::U2,         DType::I2};

template <typename T>
const T* find(const Attrs& attrs, std::string_view key) {
  auto at = attrs.find(key);
  return at == attrs.end() ? nullptr : std::get_if<T>(&at->second);
}
template <typename T>
T valueOr(const Attrs& attrs, std::string_view key, T fallback) {
  const T* found = find<T>(attrs, key);
  return found ? *found : std::move(fallback);
}

struct AttrWriter {
  ByteWriter& out;
  void operator()(int64_t v) { out.number(v); }
  void operator()(double v) { out.number(v); }
  void operator()(const std::string& v) { out.text(v); }
  void operator()(const std::vector<int64_t>& v) { out.numbers(v); }
  void operator()(const std::vector<double>& v) { out.numbers(v); }
  void operator()(const std::vector<std::string>& v) {
    out.number(static_cast<uint64_t>(v.size()));
    for (const std::string& s : v) out.text(s);
  }
  void operator()(const Tensor& v) { writeTensor(out, v); }
};

std::vector<std::string> readTexts(ByteReader& in, size_t count) {
  std::vector<std::string> out;
  out.reserve(count);
  for (size_t i = 0; i < count && !in.failed(); ++i) out.push_back(in.text());
  return out;
}

Attr readAttr(ByteReader& in) {
  switch (in.enumerator<int>(static_cast<int>(std::variant_size_v<Attr>))) {
    case 0:
      return in.number<int64_t>();
    case 1:
      return in.number<double>();
    case 2:
      return in.text();
    case 3:
      return in.numbers<int64_t>();
    case 4:
      return in.numbers<double>();
    case 5:
      return readTexts(in, in.count(8));
    default:
      return readTensor(in);
  }
}

}  // namespace

int64_t checkedBytes(DType dtype, const std::vector<int64_t>& dims) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t elements = 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) return -1;
  int64_t bits = 0;
  if (__builtin_mul_overflow(elements, int64_t{dtypeBits(dtype)}, &bits) || bits > kLimit || elements > kLimit)
    return -1;
  return dtypeBytes(dtype, elements);
}

void writeTensor(ByteWriter& out, const Tensor& tensor) {
  out.number(static_cast<uint8_t>(tensor.dtype()));
  out.numbers(tensor.dims());
  if (tensor.dtype() == DType::String)
    for (const std::string& s : tensor.strings()) out.text(s);
  else
    out.raw(tensor.raw(), tensor.bytes());
}

Tensor readTensor(ByteReader& in) {
  auto dtype = in.enumerator<DType>(kDTypes);
  auto dims = in.numbers<int64_t>();
  int64_t bytes = checkedBytes(dtype, dims);
  if (in.failed() || bytes < 0) {
    in.fail();
    return {};
  }
  if (dtype == DType::String) {
    uint64_t elements = 1;
    for (int64_t d : dims) elements *= static_cast<uint64_t>(d);
    std::vector<std::string> values;
    for (uint64_t i = 0; i < elements && !in.failed(); ++i) values.push_back(in.text());
    return in.failed() ? Tensor() : Tensor::ofStrings(std::move(dims), std::move(values));
  }
  std::string_view data = in.raw(static_cast<size_t>(bytes));
  if (in.failed()) return {};
  Tensor out(dtype, std::move(dims));
  if (!data.empty()) std::memcpy(out.raw(), data.data(), data.size());
  return out;
}

std::string serialiseAttrs(const Attrs& attrs) {
  ByteWriter out;
  out.number(static_cast<uint64_t>(attrs.size()));
  for (const auto& [key, value] : attrs) {
    out.text(key);
    out.number(static_cast<uint8_t>(value.index()));
    std::visit(AttrWriter{out}, value);
  }
  return out.take();
}

Result<Attrs> parseAttrs(std::string_view bytes) {
  ByteReader in(bytes);
  Attrs out;
  size_t count = in.count(9);
  for (size_t i = 0; i < count && !in.failed(); ++i) {
    std::string key = in.text();
    Attr value = readAttr(in);
    // Written in the map's order: anything else would have two encodings.
    if (!out.empty() && !(out.rbegin()->first < key)) in.fail();
    if (!in.failed()) out.emplace_hint(out.end(), std::move(key), std::move(value));
  }
  if (in.failed() || !in.atEnd()) return Status::error("the attributes can't be read");
  return out;
}

bool hasAttr(const Attrs& attrs, std::string_view key) { return attrs.find(key) != attrs.end(); }
int64_t intAttr(const Attrs& attrs, std::string_view key, int64_t fallback) { return valueOr(attrs, key, fallback); }
double floatAttr(const Attrs& attrs, std::string_view key, double fallback) { return valueOr(attrs, key, fallback); }
std::string textAttr(const Attrs& attrs, std::string_view key, std::string_view fallback) {
  return valueOr(attrs, key, std::string(fallback));
}
// Importers may write an empty list as any kind of list, hence "of another type" means empty too.
std::vector<int64_t> intsAttr(const Attrs& attrs, std::string_view key) {
  return valueOr<std::vector<int64_t>>(attrs, key, {});
}
std::vector<double> floatsAttr(const Attrs& attrs, std::string_view key) {
  return valueOr<std::vector<double>>(attrs, key, {});
}
std::vector<std::string> textsAttr(const Attrs& attrs, std::string_view key) {
  return valueOr<std::vector<std::string>>(attrs, key, {});
}

Result<DType> dtypeAttr(const Attrs& attrs, std::string_view key, DType fallback) {
  auto at = attrs.find(key);
  if (at == attrs.end()) return fallback;
  if (const auto* name = std::get_if<std::string>(&at->second)) {
    if (auto dtype = parseDType(*name)) return *dtype;
    return Status::error("attribute " + std::string(key) + " names no data type: " + quoted(*name));
  }
  if (const auto* code = std::get_if<int64_t>(&at->second)) {
    if (*code >= 0 && *code < static_cast<int64_t>(std::size(kOnnxTypes)))
      if (auto dtype = kOnnxTypes[*code]) return *dtype;
    return Status::error("attribute " + std::string(key) + " is no known data type: " + std::to_string(*code));
  }
  return Status::error("attribute " + std::string(key) + " must be a data type");
}

}  // namespace locution::hostops

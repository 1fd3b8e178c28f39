#include "runtime/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "hostops/attrs.h"
#include "hostops/utf8.h"
#include "support/strings.h"

namespace locution::runtime {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeCode {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr TypeCode kTypes[] = {
    {"f4", DType::F32}, {"f8", DType::F64},  {"f2", DType::F16}, {"i1", DType::I8},    {"i2", DType::I16},
    {"i4", DType::I32}, {"i8", DType::I64},  {"u1", DType::U8},  {"u2", DType::U16},   {"u4", DType::U32},
    {"u8", DType::U64}, {"b1", DType::Bool}, {"c8", DType::C64}, {"c16", DType::C128}, {"V2", DType::BF16},
};

// The header: a Python dictionary literal of three known keys.
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}
  std::optional<Header> run() {
    Header out;
    int seen = 0;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      std::string key;
      if (!string(&key) || !take(':')) return std::nullopt;
      bool ok = key == "descr"           ? string(&out.descr)
                : key == "fortran_order" ? boolean(&out.fortran)
                : key == "shape"         ? shape(&out.dims)
                                         : false;
      if (!ok) return std::nullopt;
      ++seen;
      if (!take(',') && peek() != '}') return std::nullopt;
    }
    if (seen != 3 || out.descr.empty() || peek() != '\0') return std::nullopt;
    return out;
  }

 private:
  char peek() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool string(std::string* out) {
    char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    *out = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool* out) {
    peek();
    *out = rest_.substr(0, 4) == "True";
    if (!*out && rest_.substr(0, 5) != "False") return false;
    rest_.remove_prefix(*out ? 4 : 5);
    return true;
  }
  bool shape(std::vector<int64_t>* out) {
    if (!take('(')) return false;
    while (!take(')')) {
      int64_t value = 0;
      bool any = false;
      for (char c = peek(); c >= '0' && c <= '9'; c = rest_.empty() ? '\0' : rest_[0], any = true) {
        if (value > (int64_t{1} << 58)) return false;
        value = value * 10 + (c - '0');
        rest_.remove_prefix(1);
      }
      if (!any) return false;
      out->push_back(value);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }
  std::string_view rest_;
};

void swapBytes(Tensor& t) {
  size_t width = static_cast<size_t>(dtypeBits(t.dtype())) / 8;
  if (dtypeClass(t.dtype()) == DTypeClass::Complex) width /= 2;
  for (size_t at = 0; at < t.bytes(); at += width) std::reverse(t.raw() + at, t.raw() + at + width);
}

// U: UTF-32, S: bytes; both padded with zeros.
Result<Tensor> readStrings(std::string_view data, char kind, bool swapped, int64_t width,
                           const std::vector<int64_t>& dims, int64_t count) {
  size_t unit = kind == 'U' ? 4 : 1, item = static_cast<size_t>(width) * unit;
  std::vector<std::string> values;
  for (int64_t i = 0; i < count; ++i) {
    std::string_view cell = data.substr(static_cast<size_t>(i) * item, item);
    std::string text;
    if (kind == 'S') {
      text = std::string(cell.substr(0, cell.find_last_not_of('\0') + 1));
    } else {
      std::vector<uint32_t> codes(static_cast<size_t>(width));
      if (!codes.empty()) std::memcpy(codes.data(), cell.data(), item);
      if (swapped)
        for (uint32_t& c : codes) c = __builtin_bswap32(c);
      while (!codes.empty() && codes.back() == 0) codes.pop_back();
      for (uint32_t c : codes) {
        if (c >= hostops::kInvalidUtf8) return Status::error("a character that is none: " + std::to_string(c));
        hostops::appendCodePoint(text, c);
      }
    }
    values.push_back(std::move(text));
  }
  return Tensor::ofStrings(dims, std::move(values));
}

// In C order; `dims` are the file's.
Tensor fromFortran(const Tensor& t, const std::vector<int64_t>& dims) {
  if (dims.size() < 2) return t;
  std::vector<int64_t> reversed(dims.rbegin(), dims.rend()), perm;
  for (size_t i = dims.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  if (t.dtype() != DType::String) return permuted(t.reshaped(reversed), perm);
  std::vector<std::string> values(t.strings().size());
  std::vector<int64_t> index(dims.size(), 0);
  for (std::string& value : values) {
    size_t from = 0;
    for (size_t d = dims.size(); d-- > 0;) from = from * static_cast<size_t>(dims[d]) + static_cast<size_t>(index[d]);
    value = t.strings()[from];
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return Tensor::ofStrings(dims, std::move(values));
}

Result<Tensor> readData(const std::shared_ptr<Storage>& file, size_t offset, const Header& header) {
  std::string_view code = header.descr;
  char order = code[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') code.remove_prefix(1);
  size_t available = file->size() - offset;
  auto tooShort = [&](int64_t bytes) {
    return Status::error("is cut off: it holds " + std::to_string(available) + " bytes of data, and its header says " +
                         (bytes < 0 ? std::string("more than fits in memory") : std::to_string(bytes)));
  };
  if (!code.empty() && (code[0] == 'U' || code[0] == 'S')) {
    int64_t width = 0;
    for (char c : code.substr(1)) {
      if (c < '0' || c > '9' || width > (1 << 24))
        return Status::error("has the unknown type " + locution::quoted(header.descr));
      width = width * 10 + (c - '0');
    }
    int64_t count = hostops::checkedBytes(DType::U8, header.dims), bytes = -1, unit = code[0] == 'U' ? 4 : 1;
    if (count < 0 || __builtin_mul_overflow(count, width * unit, &bytes) || static_cast<size_t>(bytes) > available)
      return tooShort(bytes);
    // Without a byte each, a count of strings costs the file nothing and us a lot.
    if (bytes == 0 && count > (int64_t{1} << 20)) return tooShort(-1);
    std::string_view data(reinterpret_cast<const char*>(file->data()) + offset, static_cast<size_t>(bytes));
    LOCUTION_ASSIGN_OR_RETURN(Tensor t, readStrings(data, code[0], order == '>', width, header.dims, count));
    return header.fortran ? fromFortran(t, header.dims) : t;
  }
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeCode& t) { return t.code == code; });
  if (type == std::end(kTypes)) return Status::error("has the unknown type " + locution::quoted(header.descr));
  int64_t bytes = hostops::checkedBytes(type->dtype, header.dims);
  if (bytes < 0 || static_cast<size_t>(bytes) > available) return tooShort(bytes);
  Tensor t;
  if (bytes >= (1 << 20) && offset % 64 == 0 && order != '>') {
    t = Tensor(type->dtype, header.dims, file, offset);
  } else {
    t = Tensor(type->dtype, header.dims);
    if (bytes > 0) std::memcpy(t.raw(), file->data() + offset, static_cast<size_t>(bytes));
  }
  if (order == '>') swapBytes(t);
  if (type->dtype == DType::Bool)
    for (int64_t i = 0; i < t.elements(); ++i)
      if (t.data<uint8_t>()[i] > 1) return Status::error("has a boolean that is neither 0 nor 1");
  return header.fortran ? fromFortran(t, header.dims) : t;
}

Result<Tensor> parse(const std::shared_ptr<Storage>& file) {
  std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->size());
  if (bytes.size() < 10 || bytes.substr(0, kMagic.size()) != kMagic) return Status::error("is not an .npy file");
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  size_t major = byte(6), start = major == 1 ? 10 : 12;
  if (major < 1 || major > 3) return Status::error("is an .npy file of unknown version " + std::to_string(major));
  if (bytes.size() < start) return Status::error("is cut off in its header");
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) return Status::error("is cut off in its header");
  std::optional<Header> header = HeaderParser(bytes.substr(start, length)).run();
  if (!header)
    return Status::error("has a header that can't be read: " +
                         locution::quoted(bytes.substr(start, std::min<size_t>(length, 200))));
  return readData(file, start + length, *header);
}

/// What `tensor` is written as.
Tensor widened(const Tensor& tensor) {
  DType to = tensor.dtype();
  bool small = dtypeBits(to) < 8 && to != DType::String;
  if (isFloat(to) && (to == DType::BF16 || dtypeBits(to) <= 8)) to = DType::F32;
  if (small && isSignedInt(to)) to = DType::I8;
  if (small && isUnsignedInt(to)) to = DType::U8;
  if (to == tensor.dtype()) return tensor;
  Tensor out(to, tensor.dims());
  for (int64_t i = 0; i < out.elements(); ++i)
    if (to == DType::F32)
      out.data<float>()[i] = static_cast<float>(tensor.elementAsDouble(i));
    else
      out.setElementInt(i, tensor.elementAsInt(i));
  return out;
}

std::string stringCells(const Tensor& t, size_t* width) {
  std::vector<std::vector<uint32_t>> all;
  *width = 1;
  for (std::string_view text : t.strings()) {
    std::vector<uint32_t> codes;
    while (!text.empty()) {
      uint32_t c = hostops::takeCodePoint(text);
      codes.push_back(c < hostops::kInvalidUtf8 ? c : 0xfffd);
    }
    *width = std::max(*width, codes.size());
    all.push_back(std::move(codes));
  }
  std::string out;
  for (std::vector<uint32_t>& codes : all) {
    codes.resize(*width, 0);
    out.append(reinterpret_cast<const char*>(codes.data()), codes.size() * 4);
  }
  return out;
}

}  // namespace

Result<Tensor> parseNpy(std::shared_ptr<Storage> file) { return parse(file); }

Result<Tensor> readNpy(const std::string& path) {
  std::error_code error;
  uint64_t size = std::filesystem::file_size(path, error);
  if (error) return Status::error("cannot open " + path + ": " + error.message());
  if (size == 0) return Status::error(path + " is not an .npy file: it is empty");
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Storage> file, mapFile(path, 0, size));
  auto tensor = parse(file);
  if (!tensor.isOk()) return Status::error(path + " " + tensor.status().message());
  return tensor;
}

Status writeNpy(const std::string& path, const Tensor& tensor) {
  Tensor t = widened(tensor);
  std::string cells, descr;
  if (t.dtype() == DType::String) {
    size_t width = 1;
    cells = stringCells(t, &width);
    descr = "<U" + std::to_string(width);
  } else {
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeCode& c) { return c.dtype == t.dtype(); });
    descr = (dtypeBits(t.dtype()) == 8 ? "|" : "<") + std::string(type->code);
  }
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < t.dims().size(); ++i) dict += (i > 0 ? ", " : "") + std::to_string(t.dims()[i]);
  dict += t.dims().size() == 1 ? ",), }" : "), }";
  dict.append(63 - (10 + dict.size()) % 64, ' ');
  dict += '\n';
  std::string head = std::string(kMagic) + '\1' + '\0' + static_cast<char>(dict.size() & 0xff) +
                     static_cast<char>(dict.size() >> 8) + dict;

  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return Status::error("cannot write " + path + ": " + std::strerror(errno));
  const char* data = t.dtype() == DType::String ? cells.data() : reinterpret_cast<const char*>(t.raw());
  size_t size = t.dtype() == DType::String ? cells.size() : t.bytes();
  bool ok = std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
            (size == 0 || std::fwrite(data, 1, size, file) == size);
  ok = std::fclose(file) == 0 && ok;
  if (ok) return Status::ok();
  Status status = Status::error("cannot write " + path + ": " + std::strerror(errno));
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  return status;
}

}  // namespace locution::runtime

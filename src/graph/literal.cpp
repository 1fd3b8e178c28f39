#include "graph/literal.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/type_text.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::graph {
namespace {

template <typename T>
std::string finiteText(T value) {
  char text[40];
  std::string out(text, std::to_chars(text, text + sizeof text, value).ptr);
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

std::string hexBits(uint64_t bits) {
  char text[20];
  return "nan:0x" + std::string(text, std::to_chars(text, text + sizeof text, bits, 16).ptr);
}

// A float's text from its bits in `dtype`.
std::string floatBitsText(DType dtype, uint64_t bits) {
  if (dtype == DType::F64) {
    auto value = std::bit_cast<double>(bits);
    if (!std::isnan(value)) return finiteText(value);
    return bits == std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN()) ? "nan" : hexBits(bits);
  }
  float nan = std::numeric_limits<float>::quiet_NaN();
  bool isF32 = dtype == DType::F32;
  float value =
      isF32 ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : smallFloatToFloat(dtype, static_cast<uint16_t>(bits));
  if (!std::isnan(value)) return finiteText(value);
  uint64_t canonical = isF32 ? std::bit_cast<uint32_t>(nan) : floatToSmallFloat(dtype, nan, false);
  return bits == canonical ? "nan" : hexBits(bits);
}

bool isNumberChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '+' || c == '-' || c == '.';
}

template <typename T>
bool parsesWhole(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The bits in "nan:0x..." after "nan", if there is one.
Result<std::optional<uint64_t>> parsePayload(TextCursor& in) {
  if (!in.eat(":")) return std::optional<uint64_t>();
  std::string_view digits = in.word([](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  uint64_t bits = 0;
  if (digits.substr(0, 2) != "0x") return in.fail("expected the bits of a NaN as 0x...");
  auto [end, error] = std::from_chars(digits.data() + 2, digits.data() + digits.size(), bits, 16);
  if (error != std::errc() || end != digits.data() + digits.size())
    return in.fail("expected the bits of a NaN as 0x...");
  return std::optional<uint64_t>(bits);
}

Result<uint64_t> parseFloatBits(TextCursor& in, DType dtype) {
  std::string_view text = in.word(isNumberChar);
  int width = dtypeBits(dtype);
  if (text == "nan") {
    LOCUTION_ASSIGN_OR_RETURN(auto payload, parsePayload(in));
    if (payload && width < 64 && *payload >> width != 0) return in.fail("the bits of a NaN don't fit");
    if (payload) return *payload;
    if (dtype == DType::F64) return std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
    float nan = std::numeric_limits<float>::quiet_NaN();
    return dtype == DType::F32 ? std::bit_cast<uint32_t>(nan) : uint64_t{floatToSmallFloat(dtype, nan, false)};
  }
  std::string number(text);
  if (dtype == DType::F64) {
    double value = 0;
    if (!parsesWhole(text, value)) return in.fail("expected a number, not '" + number + "'");
    return std::bit_cast<uint64_t>(value);
  }
  float value = 0;
  if (!parsesWhole(text, value)) return in.fail("expected a number, not '" + number + "'");
  return dtype == DType::F32 ? std::bit_cast<uint32_t>(value) : uint64_t{floatToSmallFloat(dtype, value, false)};
}

Result<uint64_t> parseIntegerBits(TextCursor& in, DType dtype) {
  if (dtype == DType::Bool) {
    if (in.eat("true")) return uint64_t{1};
    if (in.eat("false")) return uint64_t{0};
  }
  std::string_view text = in.word(isNumberChar);
  int width = dtypeBits(dtype);
  int64_t value = 0;
  uint64_t bits = 0;
  if (isSignedInt(dtype) ? parsesWhole(text, value) : parsesWhole(text, bits)) {
    if (!isSignedInt(dtype) && (width == 64 || bits >> width == 0)) return bits;
    int64_t highest = static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1);
    if (isSignedInt(dtype) && value >= -highest - 1 && value <= highest) return static_cast<uint64_t>(value);
  }
  return in.fail("'" + std::string(text) + "' is no " + std::string(dtypeName(dtype)));
}

std::string elementText(const Tensor& tensor, int64_t i) {
  DType dtype = tensor.dtype();
  switch (dtypeClass(dtype)) {
    case DTypeClass::String:
      return quoted(tensor.strings()[static_cast<size_t>(i)]);
    case DTypeClass::Float:
      return floatBitsText(dtype, tensor.elementBits(i));
    case DTypeClass::UInt:
      return std::to_string(tensor.elementBits(i));
    case DTypeClass::Int:
      return std::to_string(tensor.elementAsInt(i));
    case DTypeClass::Bool: {
      uint64_t bits = tensor.elementBits(i);
      return bits == 0 ? "false" : bits == 1 ? "true" : std::to_string(bits);
    }
    case DTypeClass::Complex:
      break;
  }
  auto part = [&](int64_t k) {
    return dtype == DType::C64 ? floatBitsText(DType::F32, std::bit_cast<uint32_t>(tensor.data<float>()[2 * i + k]))
                               : floatBitsText(DType::F64, std::bit_cast<uint64_t>(tensor.data<double>()[2 * i + k]));
  };
  return "(" + part(0) + ", " + part(1) + ")";
}

Status parseElement(TextCursor& in, Tensor& tensor, int64_t i) {
  DType dtype = tensor.dtype();
  if (dtype == DType::String) {
    LOCUTION_ASSIGN_OR_RETURN(tensor.strings()[static_cast<size_t>(i)], in.quotedText());
    return Status::ok();
  }
  if (dtypeClass(dtype) == DTypeClass::Complex) {
    DType part = dtype == DType::C64 ? DType::F32 : DType::F64;
    for (int64_t k = 0; k < 2; ++k) {
      LOCUTION_RETURN_IF_ERROR(in.expect(k == 0 ? "(" : ","));
      LOCUTION_ASSIGN_OR_RETURN(uint64_t bits, parseFloatBits(in, part));
      if (part == DType::F32)
        tensor.data<uint32_t>()[2 * i + k] = static_cast<uint32_t>(bits);
      else
        tensor.data<uint64_t>()[2 * i + k] = bits;
    }
    return in.expect(")");
  }
  LOCUTION_ASSIGN_OR_RETURN(uint64_t bits, isFloat(dtype) ? parseFloatBits(in, dtype) : parseIntegerBits(in, dtype));
  tensor.setElementBits(i, bits);
  return Status::ok();
}

// "[item, item]" after an opening bracket that was taken already.
template <typename Item>
Status parseItems(TextCursor& in, const Item& item) {
  if (in.eat("]")) return Status::ok();
  do LOCUTION_RETURN_IF_ERROR(item());
  while (in.eat(","));
  return in.expect("]");
}

// An integer or a float, told apart by how it is written.
Result<Attr> parseNumber(TextCursor& in) {
  size_t start = in.position();
  std::string_view text = in.word(isNumberChar);
  if (text.find_first_of(".en") == std::string_view::npos) {
    int64_t value = 0;
    if (!parsesWhole(text, value)) return in.fail("expected a number, not '" + std::string(text) + "'");
    return Attr(value);
  }
  in.rewind(start);
  LOCUTION_ASSIGN_OR_RETURN(uint64_t bits, parseFloatBits(in, DType::F64));
  return Attr(std::bit_cast<double>(bits));
}

template <typename T, typename Text>
std::string listText(const std::vector<T>& items, const char* emptyName, const Text& text) {
  if (items.empty()) return std::string(emptyName) + "[]";
  std::string out = "[";
  for (const T& item : items) out += (out.size() > 1 ? ", " : "") + text(item);
  return out + "]";
}

Result<Attr> parseList(TextCursor& in) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  LOCUTION_RETURN_IF_ERROR(parseItems(in, [&]() -> Status {
    if (in.peek() == '"') {
      LOCUTION_ASSIGN_OR_RETURN(std::string text, in.quotedText());
      strings.push_back(std::move(text));
      return Status::ok();
    }
    LOCUTION_ASSIGN_OR_RETURN(Attr number, parseNumber(in));
    if (auto* integer = std::get_if<int64_t>(&number))
      ints.push_back(*integer);
    else
      floats.push_back(std::get<double>(number));
    return Status::ok();
  }));
  int kinds = (ints.empty() ? 0 : 1) + (floats.empty() ? 0 : 1) + (strings.empty() ? 0 : 1);
  if (kinds != 1) return in.fail(kinds == 0 ? "an empty list needs its type, as in ints[]" : "a list of mixed types");
  if (!ints.empty()) return Attr(std::move(ints));
  if (!floats.empty()) return Attr(std::move(floats));
  return Attr(std::move(strings));
}

}  // namespace

bool isBareNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-';
}
bool isBareName(std::string_view name) {
  // Two slashes would start a comment.
  return !name.empty() && std::all_of(name.begin(), name.end(), isBareNameChar) &&
         name.find("//") == std::string_view::npos;
}

std::string floatText(double value) { return floatBitsText(DType::F64, std::bit_cast<uint64_t>(value)); }

std::string elementsText(const Tensor& tensor, int64_t maxElements) {
  if (tensor.elements() > maxElements) return "#" + hexDigits(tensor.hash());
  if (tensor.rank() == 0) return elementText(tensor, 0);
  std::string out = "[";
  for (int64_t i = 0; i < tensor.elements(); ++i) out += (i > 0 ? ", " : "") + elementText(tensor, i);
  return out + "]";
}

std::string tensorText(const Tensor& tensor, int64_t maxElements) {
  if (!tensor.isValid()) return "tensor none";
  return "tensor " + std::string(dtypeName(tensor.dtype())) + "[" + tensor.shape().str() + "] " +
         elementsText(tensor, maxElements);
}

std::string attrText(const Attr& attr, int64_t maxElements) {
  struct Visitor {
    int64_t maxElements;
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return floatText(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return listText(v, "ints", [](int64_t item) { return std::to_string(item); });
    }
    std::string operator()(const std::vector<double>& v) const { return listText(v, "floats", floatText); }
    std::string operator()(const std::vector<std::string>& v) const { return listText(v, "strings", quoted); }
    std::string operator()(const Tensor& v) const { return tensorText(v, maxElements); }
  };
  return std::visit(Visitor{maxElements}, attr);
}

Result<Tensor> parseElements(TextCursor& in, DType dtype, const std::vector<int64_t>& dims) {
  if (in.peek() == '#') return in.fail("a constant printed as its hash can't be read back; print with a larger limit");
  Shape shape = Shape::of(dims);
  for (int64_t d : dims)
    if (d < 0) return in.fail("a constant with an extent of " + std::to_string(d));
  // Each element takes a character at least: a hostile shape must not allocate.
  if (shape.elements() > static_cast<int64_t>(in.remaining())) return in.fail("too few elements for " + shape.str());
  Tensor out(dtype, dims);
  if (dims.empty()) {
    LOCUTION_RETURN_IF_ERROR(parseElement(in, out, 0));
    return out;
  }
  LOCUTION_RETURN_IF_ERROR(in.expect("["));
  int64_t count = 0;
  LOCUTION_RETURN_IF_ERROR(parseItems(in, [&]() -> Status {
    if (count == out.elements()) return in.fail("more elements than " + shape.str());
    return parseElement(in, out, count++);
  }));
  if (count != out.elements())
    return in.fail("expected " + std::to_string(out.elements()) + " elements, got " + std::to_string(count));
  return out;
}

Result<Tensor> parseTensor(TextCursor& in) {
  LOCUTION_RETURN_IF_ERROR(in.expect("tensor"));
  if (in.eat("none")) return Tensor();
  LOCUTION_ASSIGN_OR_RETURN(ValueType type, parseValueType(in));
  if (!type.shape.isStatic() || type.kind != ValueKind::Tensor) return in.fail("a tensor needs a static shape");
  return parseElements(in, type.dtype, type.shape.extents());
}

Result<Attr> parseAttr(TextCursor& in) {
  if (in.eat("ints[]")) return Attr(std::vector<int64_t>());
  if (in.eat("floats[]")) return Attr(std::vector<double>());
  if (in.eat("strings[]")) return Attr(std::vector<std::string>());
  if (in.eat("[")) return parseList(in);
  if (in.peek() == '"') {
    LOCUTION_ASSIGN_OR_RETURN(std::string text, in.quotedText());
    return Attr(std::move(text));
  }
  if (in.peek() != 't') return parseNumber(in);
  LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, parseTensor(in));
  return Attr(std::move(tensor));
}

}  // namespace locution::graph

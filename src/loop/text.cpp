// Words and literals of loop IR's text, written and read.
#include "loop/text.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "loop/build.h"
#include "loop/scalar.h"

namespace locution::loop {

int precedenceOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::Or:
      return 1;
    case BinaryOp::Xor:
      return 2;
    case BinaryOp::And:
      return 3;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
      return 4;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return 5;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return 6;
    default:
      return 7;
  }
}

std::string_view reduceName(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return "add";
    case BinaryOp::Mul:
      return "mul";
    case BinaryOp::Min:
      return "min";
    case BinaryOp::Max:
      return "max";
    case BinaryOp::And:
      return "and";
    default:
      return "or";
  }
}

std::string typeText(Type type) {
  return std::string(dtypeName(type.dtype)) + (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

bool isNonFinite(std::string_view word) {
  std::string_view kind = word.substr(0, 3);
  if (kind != "inf" && kind != "nan") return false;
  return word.size() == 3 || (word[3] == '_' && parseDType(word.substr(4)));
}

bool isReservedWord(std::string_view word) {
  static constexpr std::string_view kWords[] = {"for",  "in",    "parallel",    "vector",   "unrolled",  "if",
                                                "else", "let",   "stack",       "register", "global",    "function",
                                                "true", "false", "where",       "select",   "ramp",      "broadcast",
                                                "min",  "max",   "computation", "constant", "exclusive", "reverse",
                                                "scan", "sum",   "product",     "and",      "or"};
  for (std::string_view w : kWords)
    if (w == word) return true;
  return word.substr(0, 7) == "reduce_" || isNonFinite(word) || findIntrinsic(word) || parseDType(word);
}

std::string identifierText(const std::string& name) {
  std::string out;
  for (char c : name)
    out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out = "_" + out;
  return isReservedWord(out) ? out + "_" : out;
}

std::string intText(DType type, int64_t value) {
  if (type == DType::Bool) return value ? "true" : "false";
  std::string digits = isUnsignedInt(type) ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  return type == DType::I64 ? digits : digits + "_" + std::string(dtypeName(type));
}

std::string floatText(DType type, double value) {
  std::string digits;
  if (std::isnan(value)) {
    digits = "nan";
  } else if (std::isinf(value)) {
    digits = value < 0 ? "-inf" : "inf";
  } else {
    char buffer[40];
    // The shortest digits that give the value back; float's own are shorter than double's.
    bool asFloat = type != DType::F64;
    auto r = asFloat ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value))
                     : std::to_chars(buffer, buffer + sizeof buffer, value);
    digits.assign(buffer, r.ptr);
    if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
  }
  return type == DType::F32 ? digits : digits + "_" + std::string(dtypeName(type));
}

Expr parseNumber(std::string_view text) {
  size_t bar = text.find('_');
  std::optional<DType> suffix;
  if (bar != std::string_view::npos && !(suffix = parseDType(text.substr(bar + 1)))) return nullptr;
  std::string_view digits = text.substr(0, bar);
  const char *begin = digits.data(), *end = begin + digits.size();
  bool integer = digits.find_first_of(".einf") == std::string_view::npos;
  DType type = suffix.value_or(integer ? DType::I64 : DType::F32);
  if (isFloat(type)) {
    // Read in the precision it was written in: a float's shortest digits mean the nearest float.
    double value = 0;
    float narrow = 0;
    auto r = type == DType::F64 ? std::from_chars(begin, end, value) : std::from_chars(begin, end, narrow);
    if (r.ptr != end || r.ec != std::errc()) return nullptr;
    return floatImm(type, type == DType::F64 ? value : static_cast<double>(narrow));
  }
  if (dtypeBits(type) == 0 || dtypeClass(type) == DTypeClass::Complex) return nullptr;
  int64_t value = 0;
  uint64_t natural = 0;
  auto r = isUnsignedInt(type) ? std::from_chars(begin, end, natural) : std::from_chars(begin, end, value);
  if (isUnsignedInt(type)) value = static_cast<int64_t>(natural);
  if (r.ptr != end || r.ec != std::errc() || wrapInt(type, value) != value) return nullptr;
  return intImm(type, value);
}

}  // namespace locution::loop

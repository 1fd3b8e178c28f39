// Cast and CastLike, between numbers and strings, and between numbers where the shape depends on data.
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>

#include "hostops/helpers.h"
#include "hostops/ops.h"
#include "support/strings.h"

namespace locution::hostops {
namespace {

/// Eight digits, whatever the float type: what ONNX Runtime writes.
std::string floatText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 8).ptr};
}

std::string elementText(const Tensor& t, int64_t i) {
  switch (dtypeClass(t.dtype())) {
    case DTypeClass::Float:
      return floatText(t.elementAsDouble(i));
    case DTypeClass::UInt:
      return std::to_string(static_cast<uint64_t>(t.elementAsInt(i)));
    default:
      return std::to_string(t.elementAsInt(i));
  }
}

/// strtod whatever the process's locale says about decimal points.
class NumberParser {
 public:
  NumberParser() : locale_(newlocale(LC_ALL_MASK, "C", nullptr)) {}
  ~NumberParser() {
    if (locale_) freelocale(locale_);
  }
  NumberParser(const NumberParser&) = delete;
  NumberParser& operator=(const NumberParser&) = delete;

  /// A number in plain or scientific notation, "INF" or "NaN" in any case; white space around it is fine, anything else isn't.
  Status set(Tensor& out, int64_t i, const std::string& text) const {
    std::string_view trimmed = text;
    trimmed.remove_prefix(std::min(trimmed.find_first_not_of(" \t\r\n"), trimmed.size()));
    trimmed = trimmed.substr(0, trimmed.find_last_not_of(" \t\r\n") + 1);
    if (trimmed.size() > 1 && trimmed[0] == '+' && trimmed[1] != '-') trimmed.remove_prefix(1);
    if (isInteger(out.dtype()) && setInteger(out, i, trimmed)) return Status::ok();
    std::string number(trimmed);
    char* stop = nullptr;
    // Straight to float32: by way of float64 it would be rounded twice.
    double value = out.dtype() == DType::F32 ? static_cast<double>(strtof_l(number.c_str(), &stop, locale_))
                                             : strtod_l(number.c_str(), &stop, locale_);
    bool whole = !number.empty() && stop == number.c_str() + number.size();
    if (!whole || (isInteger(out.dtype()) && !std::isfinite(value)))
      return Status::error("element " + std::to_string(i) + " is no " +
                           (isInteger(out.dtype()) ? "integer" : "number") + ": " + quoted(text));
    out.setElement(i, value);
    return Status::ok();
  }

 private:
  template <typename T>
  static bool parseAll(std::string_view text, T* value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && end == text.data() + text.size();
  }
  static bool setInteger(Tensor& out, int64_t i, std::string_view text) {
    int64_t value = 0;
    uint64_t large = 0;
    if (!parseAll(text, &value)) {
      if (!parseAll(text, &large)) return false;
      value = static_cast<int64_t>(large);
    }
    out.setElementInt(i, value);
    return true;
  }
  locale_t locale_;
};

void setNumber(Tensor& out, const Tensor& x, int64_t i, bool saturate) {
  DTypeClass from = dtypeClass(x.dtype());
  if (from == DTypeClass::Float || isFloat(out.dtype())) {
    bool isUnsigned = from == DTypeClass::UInt;
    double value = isUnsigned ? static_cast<double>(static_cast<uint64_t>(x.elementAsInt(i))) : x.elementAsDouble(i);
    if (isFloat(out.dtype()) && dtypeBits(out.dtype()) == 8) {
      out.data<uint8_t>()[i] =
          static_cast<uint8_t>(floatToSmallFloat(out.dtype(), static_cast<float>(value), saturate));
    } else {
      out.setElement(i, value);
    }
  } else {
    out.setElementInt(i, x.elementAsInt(i));
  }
}

Status castTo(const HostCall& call, DType to, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  if (dtypeClass(to) == DTypeClass::Complex || dtypeClass(x.dtype()) == DTypeClass::Complex)
    return Status::error("a cast from " + std::string(dtypeName(x.dtype())) + " to " + std::string(dtypeName(to)));
  if (x.dtype() == to) {
    outputs[0] = x;
    return Status::ok();
  }
  bool saturate = intAttr(call.attrs, "saturate", 1) != 0;
  NumberParser parser;
  Tensor y(to, x.dims());
  for (int64_t i = 0; i < y.elements(); ++i) {
    if (to == DType::String)
      y.strings()[static_cast<size_t>(i)] = elementText(x, i);
    else if (x.dtype() == DType::String)
      LOCUTION_RETURN_IF_ERROR(parser.set(y, i, x.strings()[static_cast<size_t>(i)]));
    else
      setNumber(y, x, i, saturate);
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace

Status cast(const HostCall& call, std::vector<HostValue>& outputs) {
  if (!hasAttr(call.attrs, "to")) return Status::error("attribute to is missing");
  LOCUTION_ASSIGN_OR_RETURN(DType to, dtypeAttr(call.attrs, "to", DType::F32));
  return castTo(call, to, outputs);
}
Status castLike(const HostCall& call, std::vector<HostValue>& outputs) {
  return castTo(call, call.tensor(1).dtype(), outputs);
}

}  // namespace locution::hostops

#include "core/shape.h"

#include <algorithm>

#include "core/saturate.h"
#include "support/check.h"
#include "support/strings.h"

namespace locution {

bool Shape::isStatic() const {
  return ranked_ && std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.isKnown(); });
}

std::vector<int64_t> Shape::extents() const {
  LOCUTION_CHECK(isStatic()) << "the shape " << str() << " isn't static";
  std::vector<int64_t> out;
  out.reserve(dims_.size());
  for (const Dim& d : dims_) out.push_back(d.value());
  return out;
}

int64_t Shape::elements() const {
  LOCUTION_CHECK(isStatic()) << "the shape " << str() << " isn't static";
  int64_t out = 1;
  bool empty = false;
  for (const Dim& d : dims_) {
    empty |= d.value() == 0;
    out = saturatingMul(out, d.value());
  }
  return empty ? 0 : out;
}

Shape Shape::substitute(const SymbolBinding& binding) const {
  Shape out = *this;
  for (Dim& d : out.dims_) d = d.substitute(binding);
  return out;
}

std::string Shape::str() const {
  if (!ranked_) return "?";
  if (dims_.empty()) return "scalar";
  std::string out;
  for (const Dim& d : dims_) {
    if (!out.empty()) out += "x";
    std::string text = d.str();
    // `x` separates dims, so a name that has one goes in parentheses like any larger expression.
    bool bare = d.isKnown() || text.front() == '"' || (isDimName(text) && text.find('x') == std::string::npos);
    // A quoted name may start a larger expression.
    if (!d.isKnown() && text.front() == '"' && d != Dim::symbol(unescaped(text.substr(1, text.size() - 2))))
      bare = false;
    out += bare ? text : "(" + text + ")";
  }
  return out;
}

std::string Layout::str() const {
  if (isRowMajor()) return "row-major";
  std::string out;
  for (int64_t dim : order) out += (out.empty() ? "order " : ",") + std::to_string(dim);
  if (blockedDim >= 0)
    out += (out.empty() ? "block " : " block ") + std::to_string(blockedDim) + "/" + std::to_string(block);
  return out;
}

std::string ValueType::str() const {
  std::string out = std::string(dtypeName(dtype)) + "[" + shape.str() + "]";
  if (!layout.isRowMajor()) out += " layout(" + layout.str() + ")";
  if (quantisation) {
    out += " quant(scale " + quoted(quantisation->scale);
    if (!quantisation->zeroPoint.empty()) out += " zero " + quoted(quantisation->zeroPoint);
    if (quantisation->axis != -1) out += " axis " + std::to_string(quantisation->axis);
    if (quantisation->block != 0) out += " block " + std::to_string(quantisation->block);
    out += ")";
  }
  if (kind == ValueKind::Sequence) return "seq(" + out + ")";
  if (kind == ValueKind::Optional) return "opt(" + out + ")";
  return out;
}

}  // namespace locution

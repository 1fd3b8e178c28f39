#include "frontend/onnx/schema.h"

#include <algorithm>

#include "frontend/onnx/normalise.h"

namespace locution::frontend {
namespace {

constexpr std::string_view kOnnx = "";
constexpr std::string_view kMicrosoft = "com.microsoft";

// Sorted by domain, name and opset as they stand in the file; `findRow` relies on it, and a test checks it.
constexpr OpRow kRows[] = {
#define ONNX_OP(name, since, function, inputs, outputs, attributes) \
  {kOnnx, #name, since, normalise::function, inputs, outputs, attributes},
#define MICROSOFT_OP(name, function, inputs, outputs, attributes) \
  {kMicrosoft, #name, 1, normalise::function, inputs, outputs, attributes},
#include "frontend/onnx/onnx_ops.inc"
#undef ONNX_OP
#undef MICROSOFT_OP
};

/// Calls f with each word of a blank-separated list.
template <typename F>
void forEachWord(std::string_view text, const F& f) {
  while (!text.empty()) {
    size_t end = text.find(' ');
    std::string_view word = text.substr(0, end);
    if (!word.empty()) f(word);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

}  // namespace

std::span<const OpRow> allRows() { return kRows; }

const OpRow* findRow(std::string_view domain, std::string_view name, int64_t opset, int64_t& firstSince) {
  auto less = [](const OpRow& row, const std::pair<std::string_view, std::string_view>& key) {
    return std::make_pair(row.domain, row.name) < key;
  };
  const OpRow* row = std::lower_bound(std::begin(kRows), std::end(kRows), std::make_pair(domain, name), less);
  const OpRow* found = nullptr;
  firstSince = 0;
  for (; row != std::end(kRows) && row->domain == domain && row->name == name; ++row) {
    if (firstSince == 0) firstSince = row->since;
    if (row->since <= opset) found = row;
  }
  return found;
}

std::string_view canonicalDomain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

std::vector<AttrSpec> attrSpecs(const OpRow& row) {
  std::vector<AttrSpec> out;
  forEachWord(row.attributes, [&](std::string_view word) {
    AttrSpec spec;
    size_t colon = word.find(':');
    spec.name = word.substr(0, colon);
    spec.type = word.substr(colon + 1);
    spec.required = spec.type.back() == '!';
    if (spec.required) spec.type.remove_suffix(1);
    out.push_back(spec);
  });
  return out;
}

Status checkArity(const OpRow& row, const std::vector<bool>& inputs, size_t outputs) {
  size_t at = 0;
  bool variadic = false;
  std::string_view missing;
  forEachWord(row.inputs, [&](std::string_view word) {
    if (word.back() == '*')
      variadic = true;
    else if (word.back() != '?' && missing.empty() && (at >= inputs.size() || !inputs[at]))
      missing = word;
    ++at;
  });
  if (!missing.empty()) return Status::error("input " + std::string(missing) + " is missing");
  if (!variadic && inputs.size() > at)
    return Status::error(std::to_string(inputs.size()) + " inputs are given, it takes " + std::to_string(at) +
                         " at most");
  size_t known = 0;
  bool variadicOutputs = false;
  forEachWord(row.outputs, [&](std::string_view word) {
    if (word.back() == '*') variadicOutputs = true;
    ++known;
  });
  if (!variadicOutputs && outputs > known)
    return Status::error(std::to_string(outputs) + " outputs are asked for, it has " + std::to_string(known));
  return Status::ok();
}

}  // namespace locution::frontend

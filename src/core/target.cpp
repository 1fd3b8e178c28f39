#include "core/target.h"

#include <charconv>
#include <map>
#include <vector>

#include "support/strings.h"

namespace locution {
namespace {

// One list of the fields serves both directions.
template <typename Spec, typename Visit>
void forEachField(Spec& spec, const Visit& visit) {
  visit("triple", spec.triple);
  visit("cpu", spec.cpu);
  visit("features", spec.features);
  visit("vectorBytes", spec.vectorBytes);
  visit("vectorRegisters", spec.vectorRegisters);
  visit("hasFma", spec.hasFma);
  visit("hasMask", spec.hasMask);
  visit("hasVnni", spec.hasVnni);
  visit("hasF16c", spec.hasF16c);
  visit("strict", spec.strict);
  visit("threads", spec.threads);
  visit("l1Bytes", spec.l1Bytes);
  visit("l2Bytes", spec.l2Bytes);
  visit("l3Bytes", spec.l3Bytes);
  visit("peakGflops", spec.peakGflops);
  visit("readGbs", spec.readGbs);
}

std::string textOf(const std::string& value) { return value; }
std::string textOf(bool value) { return value ? "true" : "false"; }
template <typename T>
std::string textOf(T value) {
  char text[40];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

bool parseInto(const std::string& text, std::string& value) {
  value = text;
  return true;
}
bool parseInto(const std::string& text, bool& value) {
  value = text == "true";
  return text == "true" || text == "false";
}
template <typename T>
bool parseInto(const std::string& text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Negated, so that NaN fails too. Sizes, rates and counts are all positive.
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= T(1e15);
}
bool parseInto(const std::string& text, int& value) {
  int64_t wide = 0;
  if (!parseInto(text, wide) || wide > 1 << 20) return false;
  value = static_cast<int>(wide);
  return true;
}

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace

std::string TargetSpec::str() const {
  std::string out;
  forEachField(*this,
               [&](const char* name, const auto& value) { out += std::string(name) + " = " + textOf(value) + "\n"; });
  return out;
}

/// Fields may stand in any order and be left out (then they keep their defaults); empty lines and lines that start with # are
/// skipped. Errors: an unknown or repeated field, a value that doesn't fit.
Result<TargetSpec> parseTarget(const std::string& text) {
  std::map<std::string, std::pair<std::string, size_t>> fields;  // name -> value, line
  size_t number = 0;
  for (const std::string& raw : splitText(text, '\n')) {
    ++number;
    std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#') continue;
    size_t equals = line.find('=');
    if (equals == std::string::npos)
      return Status::error("line " + std::to_string(number) + ": expected 'field = value'");
    std::string name = trimmed(line.substr(0, equals));
    if (!fields.emplace(name, std::pair(trimmed(line.substr(equals + 1)), number)).second)
      return Status::error("line " + std::to_string(number) + ": the field " + quoted(name) + " stands twice");
  }
  TargetSpec spec;
  Status status;
  forEachField(spec, [&](const char* name, auto& value) {
    auto found = fields.find(name);
    if (found == fields.end()) return;
    if (status.isOk() && !parseInto(found->second.first, value))
      status = Status::error("line " + std::to_string(found->second.second) + ": " + quoted(found->second.first) +
                             " is no value for the field " + name);
    fields.erase(found);
  });
  LOCUTION_RETURN_IF_ERROR(status);
  if (!fields.empty())
    return Status::error("line " + std::to_string(fields.begin()->second.second) + ": unknown field " +
                         quoted(fields.begin()->first));
  return spec;
}

}  // namespace locution

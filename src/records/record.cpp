#include "records/record.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "records/fields.h"
#include "records/utf8.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::records {
namespace {

constexpr const char* kOutcomes[] = {
#define OUTCOME(name, text) text,
#include "records/outcomes.inc"
#undef OUTCOME
};

// Lengths are written before contents, so that no two records make the same bytes.
struct Bytes {
  std::string out;
  void number(uint64_t value) {
    for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
  }
  void add(uint64_t value) { number(value); }
  void add(int64_t value) { number(static_cast<uint64_t>(value)); }
  void add(double value) { number(std::bit_cast<uint64_t>(value)); }
  void add(Outcome value) { add(std::string(outcomeName(value))); }
  void add(const std::string& value) {
    number(value.size());
    out += value;
  }
  void add(const std::optional<double>& value) {
    out += value ? '\1' : '\0';
    if (value) add(*value);
  }
  void add(const std::vector<double>& value) {
    number(value.size());
    for (double v : value) add(v);
  }
};

bool isTime(double value) { return std::isfinite(value) && value > 0; }

struct Checker {
  Status status;
  void fail(const char* field, const std::string& what) {
    if (status.isOk()) status = Status::error(std::string("a record's ") + field + " " + what);
  }
  void look(const char*, uint64_t) {}
  void look(const char*, Outcome) {}
  void look(const char* field, int64_t value) {
    if (value < 0) fail(field, "can't be negative: " + std::to_string(value));
  }
  void look(const char* field, const std::string& value) {
    if (!isPlainUtf8(value)) fail(field, "is not text in UTF-8: " + quoted(value));
  }
  void look(const char* field, const std::vector<double>& value) {
    if (!std::all_of(value.begin(), value.end(), isTime)) fail(field, "must be positive seconds");
  }
  void look(const char* field, const std::optional<double>& value) {
    // A spread of one sample is zero.
    if (value && !isTime(*value) && !(*value == 0 && !std::signbit(*value)))
      fail(field, "is no ratio: " + std::to_string(*value));
  }
};

}  // namespace

const char* outcomeName(Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

std::optional<Outcome> outcomeOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kOutcomes); ++i)
    if (name == kOutcomes[i]) return static_cast<Outcome>(i);
  return std::nullopt;
}

double median(std::vector<double> values) {
  LOCUTION_CHECK(!values.empty()) << "the median of nothing";
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

bool isKey(std::string_view text) {
  return text.size() == 32 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<double> Record::seconds() const {
  if (samples.empty()) return std::nullopt;
  return median(samples);
}

std::string Record::id() const {
  Bytes bytes;
  forEachField(*this, [&](const char*, const auto& value) { bytes.add(value); });
  return keyOf(bytes.out);
}

Status Record::check() const {
  Checker checker;
  forEachField(*this, [&](const char* name, const auto& value) { checker.look(name, value); });
  auto key = [&](const char* field, const std::string& value) {
    if (!isKey(value)) checker.fail(field, "is no key of 32 hexadecimal digits: " + quoted(value));
  };
  key("workload", workload);
  key("target", target);
  key("machine", machine);
  if (!incumbent.empty()) key("incumbent", incumbent);
  if (sentence.empty()) checker.fail("sentence", "is missing");
  if (outcome == Outcome::Ok && samples.empty()) checker.fail("samples", "are missing, though the outcome is ok");
  if (ratio && !isTime(*ratio)) checker.fail("ratio", "must be positive");
  if (ratio && incumbent.empty()) checker.fail("incumbent", "is missing, though there is a ratio");
  return checker.status;
}

std::string cpuModel() {
  // AArch64 kernels name no model, only the codes of its maker and part.
  std::ifstream file("/proc/cpuinfo");
  std::string line, codes;
  while (std::getline(file, line) && !(line.empty() && !codes.empty())) {
    size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer") || line.starts_with("CPU part") || line.starts_with("CPU variant"))
      codes += (codes.empty() ? "" : " ") + value;
  }
  return codes.empty() ? "unknown" : codes;
}

std::string machineText(const std::string& profile) { return "model = " + cpuModel() + "\n" + profile; }

}  // namespace locution::records

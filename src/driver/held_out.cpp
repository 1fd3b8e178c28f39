#include "driver/held_out.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "space/kernel_kind.h"
#include "support/strings.h"

namespace locution::driver {

namespace {

double pointsOf(const loop::Stage& s) {
  double out = 1;
  for (const auto* axes : {&s.axes, &s.reduce})
    for (const loop::Axis& a : *axes) out *= static_cast<double>(a.extent);
  return out;
}

int64_t largestPrimeFactor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return n > 1 ? n : largest;
}

bool hasFactorAbove(const loop::Computation& kernel, int64_t limit) {
  if (kernel.stages.empty()) return false;
  const auto largest =
      std::max_element(kernel.stages.begin(), kernel.stages.end(),
                       [](const loop::Stage& a, const loop::Stage& b) { return pointsOf(a) < pointsOf(b); });
  for (const auto* axes : {&largest->axes, &largest->reduce})
    for (const loop::Axis& a : *axes)
      if (largestPrimeFactor(a.extent) > limit) return true;
  return false;
}

// A stage of its own is what the kind is read off: in a chain the depthwise stage is one of several.
bool hasDepthwise(const loop::Computation& kernel, int64_t height, int64_t width) {
  return std::any_of(kernel.stages.begin(), kernel.stages.end(), [&](const loop::Stage& s) {
    std::vector<int64_t> window;
    for (const loop::Axis& r : s.reduce)
      if (r.extent > 1) window.push_back(r.extent);
    if (window != std::vector<int64_t>{height, width}) return false;
    loop::Computation alone = kernel;
    alone.stages = {s};
    return space::kindOf(alone) == space::KernelKind::Depthwise;
  });
}

std::optional<int64_t> numberOf(std::string_view text) {
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && n > 0 ? std::optional(n) : std::nullopt;
}

}  // namespace

Result<HeldOut::Group> HeldOut::parseGroup(const std::string& line) {
  std::istringstream in(line);
  Group g;
  std::string number, extra;
  in >> g.kind >> g.name;
  const bool isTarget = g.kind == "target";
  if (isTarget) in >> number;
  if (g.name.empty() || (in >> extra)) return Status::error("want a group and its name, not '" + line + "'");
  g.text = g.kind + " " + g.name + (isTarget ? " " + number : "");
  if (g.kind == "model" || g.kind == "op") return g;
  std::optional<int64_t> first, second = 1;
  if (isTarget) {
    first = numberOf(number);
  } else if (g.kind == "factor") {
    first = numberOf(g.name);
  } else if (g.kind == "depthwise") {
    const size_t x = g.name.find('x');
    first = numberOf(g.name.substr(0, x));
    second = x == std::string::npos ? std::nullopt : numberOf(g.name.substr(x + 1));
  } else {
    return Status::error("there is no group '" + g.kind + "' (there are: model, op, depthwise, factor, target)");
  }
  if (!first || !second) return Status::error("'" + line + "' has no valid number");
  g.number = *first;
  g.other = *second;
  return g;
}

Result<HeldOut> HeldOut::parse(std::string_view text, const std::string& file) {
  HeldOut out;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto group = parseGroup(line);
    if (!group.isOk()) return group.status().withContext(file + ":" + std::to_string(number));
    out.groups_.push_back(std::move(*group));
  }
  return out;
}

Result<HeldOut> HeldOut::read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return Status::error(file + ": can't be read");
  return parse(text.str(), file);
}

bool HeldOut::holds(const Group& g, const CorpusWorkload& w, const TargetSpec& target) {
  if (g.kind == "model") return w.models.count(g.name) > 0;
  if (g.kind == "op") return w.ops.count(g.name) > 0;
  if (g.kind == "factor") return hasFactorAbove(w.workload.kernel, g.number);
  if (g.kind == "depthwise") return hasDepthwise(w.workload.kernel, g.number, g.other);
  return target.cpu == g.name && target.threads == g.number;
}

std::string HeldOut::kindOf(const std::string& group) {
  const std::string kind = group.substr(0, group.find(' '));
  return kind == "depthwise" ? "op" : kind;
}

std::vector<std::string> HeldOut::groupsOf(const CorpusWorkload& workload, const TargetSpec& target) const {
  std::vector<std::string> out;
  for (const Group& g : groups_)
    if (holds(g, workload, target)) out.push_back(g.text);
  return out;
}

}  // namespace locution::driver

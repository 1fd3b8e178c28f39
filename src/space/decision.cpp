#include "space/decision.h"

#include <algorithm>
#include <charconv>

namespace locution::space {

namespace {

enum class ValueKind : uint8_t { Number, Axis, Loop };

constexpr std::string_view kNames[] = {
#define DECISION(Name, text, kind, help) text,
#include "space/decisions.inc"
#undef DECISION
};
constexpr std::string_view kHelp[] = {
#define DECISION(Name, text, kind, help) help,
#include "space/decisions.inc"
#undef DECISION
};
constexpr ValueKind kKinds[] = {
#define DECISION(Name, text, kind, help) ValueKind::kind,
#include "space/decisions.inc"
#undef DECISION
};

struct LoopName {
  int64_t value;
  std::string_view text;
};
constexpr LoopName kLoops[] = {{kRowLoop, "row"},
                               {kRowLoopInner, "row.i"},
                               {kColumnLoop, "col"},
                               {kColumnLoopInner, "col.i"},
                               {kPartLoop, "part"}};

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> axis(std::string_view text) {
  if (text == "none") return kNoAxis;
  if (text.size() < 2 || (text[0] != 'i' && text[0] != 'r')) return std::nullopt;
  auto k = number(text.substr(1));
  if (!k || *k < 0 || *k >= kReduceAxis) return std::nullopt;
  return text[0] == 'i' ? *k : kReduceAxis + *k;
}

}  // namespace

std::string_view decisionName(Decision decision) { return kNames[static_cast<size_t>(decision)]; }
std::string_view decisionHelp(Decision decision) { return kHelp[static_cast<size_t>(decision)]; }

std::string choiceText(Decision decision, int64_t value) {
  std::string out(decisionName(decision));
  out += '=';
  const ValueKind kind = kKinds[static_cast<size_t>(decision)];
  if (kind == ValueKind::Number) return out + std::to_string(value);
  for (const LoopName& l : kLoops)
    if (kind == ValueKind::Loop && l.value == value) return out.append(l.text);
  if (value == kNoAxis) return out + "none";
  return out + (value >= kReduceAxis ? "r" + std::to_string(value - kReduceAxis) : "i" + std::to_string(value));
}

std::optional<std::pair<Decision, int64_t>> parseChoice(std::string_view text) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos) return std::nullopt;
  const auto* name = std::find(std::begin(kNames), std::end(kNames), text.substr(0, at));
  if (name == std::end(kNames)) return std::nullopt;
  const auto k = static_cast<size_t>(name - std::begin(kNames));
  const std::string_view value = text.substr(at + 1);
  std::optional<int64_t> parsed;
  if (kKinds[k] == ValueKind::Number) {
    parsed = number(value);
  } else {
    for (const LoopName& l : kLoops)
      if (kKinds[k] == ValueKind::Loop && l.text == value) parsed = l.value;
    if (!parsed) parsed = axis(value);
  }
  if (!parsed) return std::nullopt;
  return std::pair{static_cast<Decision>(k), *parsed};
}

const std::vector<int64_t>& ladder() {
  static const std::vector<int64_t> kLadder = [] {
    std::vector<int64_t> steps;
    for (int64_t i = 1; i <= 16; ++i) steps.push_back(i);
    for (int64_t i : {18, 20, 22, 24, 26, 28, 30, 32}) steps.push_back(i);
    for (int64_t octave = 32; octave < 4096; octave *= 2)
      for (int64_t quarter = 5; quarter <= 8; ++quarter) steps.push_back(octave * quarter / 4);
    return steps;
  }();
  return kLadder;
}

std::vector<int64_t> ladderUpTo(int64_t most) {
  const std::vector<int64_t>& all = ladder();
  return {all.begin(), std::upper_bound(all.begin(), all.end(), most)};
}

}  // namespace locution::space

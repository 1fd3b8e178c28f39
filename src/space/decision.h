// The decisions there are (decisions.inc), and how their values read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace locution::space {

enum class Decision : uint8_t {
#define DECISION(Name, text, kind, help) Name,
#include "space/decisions.inc"
#undef DECISION
};
inline constexpr size_t kDecisions = 0
#define DECISION(Name, text, kind, help) +1
#include "space/decisions.inc"
#undef DECISION
    ;

/// Axes as values: spatial ones by their index, reduced ones from kReduceAxis on.
inline constexpr int64_t kNoAxis = -1, kReduceAxis = 16;
/// Loops as values: axes, and the loops over tiles of rows and columns; the inner ones lie within a block.
inline constexpr int64_t kRowLoop = 32, kRowLoopInner = 33, kColumnLoop = 34, kColumnLoopInner = 35, kPartLoop = 36;

std::string_view decisionName(Decision decision);
std::string_view decisionHelp(Decision decision);
/// "mr=6", "vec=i3", "vec=r0", "row=none", "next=col"
std::string choiceText(Decision decision, int64_t value);
std::optional<std::pair<Decision, int64_t>> parseChoice(std::string_view text);

/// Sizes and counts that are worth telling apart: all up to 16, then steps of an eighth to a quarter, up to 4096.
const std::vector<int64_t>& ladder();
/// The steps of the ladder in [1, most].
std::vector<int64_t> ladderUpTo(int64_t most);

/// Of one stage; stage -1: of the kernel as a whole.
struct Choice {
  int32_t stage = 0;
  Decision decision{};
  int64_t value = 0;
  bool operator==(const Choice&) const = default;
};
using Choices = std::vector<Choice>;

}  // namespace locution::space

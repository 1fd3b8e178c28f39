#include "generator/search/replay.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace locution::generator {

using space::Choice;
using space::Choices;
using space::Decision;
using space::Walk;

namespace {

enum class ValueKind : uint8_t { Number, Axis, Loop };
constexpr ValueKind kKinds[] = {
#define DECISION(Name, text, kind, help) ValueKind::kind,
#include "space/decisions.inc"
#undef DECISION
};
ValueKind kindOf(Decision d) { return kKinds[static_cast<size_t>(d)]; }

bool isLegal(const Walk& walk, int64_t value) {
  return std::find(walk.legal().begin(), walk.legal().end(), value) != walk.legal().end();
}

int64_t anyOf(const std::vector<int64_t>& values, Random& random) { return values[below(random, values.size())]; }

int64_t nearest(const std::vector<int64_t>& legal, int64_t value) {
  auto distance = [&](int64_t v) {
    return std::abs(std::log2(static_cast<double>(v) + 1) - std::log2(static_cast<double>(value) + 1));
  };
  return *std::min_element(legal.begin(), legal.end(), [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
}

int64_t answer(const Walk& walk, const Choices& rest, Random& random) {
  const bool isOrder = space::StageChoices::isRepeated(walk.decision());
  for (const Choice& c : rest) {
    if (c.stage != walk.stage() || c.decision != walk.decision()) continue;
    if (isLegal(walk, c.value)) return c.value;
    if (!isOrder && kindOf(c.decision) == ValueKind::Number) return nearest(walk.legal(), c.value);
    if (!isOrder) break;
  }
  return anyOf(walk.legal(), random);
}

void choose(Walk& walk, int64_t value) {
  const Decision asked = walk.decision();
  LOCUTION_CHECK(walk.choose(value)) << space::choiceText(asked, value) << " is not legal";
}

Walk prefix(const space::Space& space, const Choices& choices, size_t count) {
  Walk walk(space);
  for (size_t i = 0; i < count; ++i) choose(walk, choices[i].value);
  return walk;
}

int64_t otherValue(const std::vector<int64_t>& legal, int64_t value, bool isNumber, Random& random) {
  const auto at = static_cast<size_t>(std::find(legal.begin(), legal.end(), value) - legal.begin());
  constexpr double kNeighbour = 0.6;
  if (isNumber && unit(random) < kNeighbour) {
    if (at == 0) return legal[1];
    if (at + 1 == legal.size()) return legal[at - 1];
    return legal[below(random, 2) == 0 ? at - 1 : at + 1];
  }
  size_t other = below(random, legal.size() - 1);
  return legal[other < at ? other : other + 1];
}

}  // namespace

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }
double unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

Walk finish(Walk walk, const Choices& rest, Random& random) {
  while (!walk.isDone()) choose(walk, answer(walk, rest, random));
  return walk;
}

std::optional<Walk> mutate(const space::Space& space, const Choices& parent, Random& random) {
  if (parent.empty()) return std::nullopt;
  const size_t at = below(random, parent.size());
  Walk walk = prefix(space, parent, at);
  const Choice& old = parent[at];
  choose(walk, otherValue(walk.legal(), old.value, kindOf(old.decision) == ValueKind::Number, random));
  return finish(std::move(walk), parent, random);
}

Walk crossover(const space::Space& space, const Choices& first, const Choices& second, Random& random) {
  return finish(prefix(space, first, below(random, first.size() + 1)), second, random);
}

Walk randomWalk(const space::Space& space, Random& random) {
  return space::walkThrough(space, [&](const Walk& walk) { return anyOf(walk.legal(), random); });
}

}  // namespace locution::generator

#include "generator/search/spread.h"

#include "generator/search/replay.h"
#include "generator/search/seen.h"

namespace locution::generator {

namespace {

constexpr double kUniform = 0.25;
/// A further mutation follows with this chance: one to some ten, mostly two or three.
constexpr double kGoOn = 0.6;
/// Draws in a row that give nothing new: the space is taken for exhausted.
constexpr int kPatience = 200;

space::Walk draw(const space::Space& space, const space::Choices& start, Random& random) {
  if (unit(random) < kUniform) return randomWalk(space, random);
  std::optional<space::Walk> walk = mutate(space, start, random);
  while (walk && unit(random) < kGoOn) walk = mutate(space, walk->choices(), random);
  return walk ? std::move(*walk) : randomWalk(space, random);
}

}  // namespace

std::vector<Proposal> spread(const space::Space& space, const space::Choices& start, size_t count, uint64_t seed) {
  Random random(seed);
  Seen seen;
  if (auto plan = space::planOf(space, start)) seen.add(*plan);
  std::vector<Proposal> out;
  for (int draws = 0; out.size() < count && draws < kPatience; ++draws) {
    const space::Walk walk = draw(space, start, random);
    schedule::Plan plan = walk.plan();
    if (!seen.add(plan)) continue;
    out.push_back({walk.choices(), std::move(plan)});
    draws = 0;
  }
  return out;
}

}  // namespace locution::generator

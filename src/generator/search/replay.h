// New walks from old ones, for evolution: answers are taken over where they are still legal.
#pragma once

#include <random>

#include "space/space.h"

namespace locution::generator {

using Random = std::mt19937_64;

/// A number in [0, count).
size_t below(Random& random, size_t count);
/// A number in [0, 1), the same on every machine.
double unit(Random& random);

/// Answers what is still open as `rest` did; where that is not legal, by the nearest legal size, or at random where values are no sizes.
/// Loops are put in the order that `rest` had.
space::Walk finish(space::Walk walk, const space::Choices& rest, Random& random);
/// One answer is another one, mostly a step of its sizes away; the others are replayed. Null when the kernel leaves no choice.
std::optional<space::Walk> mutate(const space::Space& space, const space::Choices& parent, Random& random);
/// The first answers of one, the others of another.
space::Walk crossover(const space::Space& space, const space::Choices& first, const space::Choices& second,
                      Random& random);
space::Walk randomWalk(const space::Space& space, Random& random);

}  // namespace locution::generator

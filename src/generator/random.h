// Plans drawn at random: every decision uniformly among its legal values.
#pragma once

#include <cstdint>
#include <memory>

#include "generator/scheduler.h"
#include "space/space.h"

namespace locution::generator {

/// A walk from the first decision to the last; equal seeds give equal walks.
space::Walk randomWalk(const space::Space& space, uint64_t seed);

/// Of each kernel the walk that `seed` and what the kernel computes give.
std::unique_ptr<Scheduler> makeRandomWalks(uint64_t seed);

}  // namespace locution::generator

// What a collection measures of a kernel: plans near the one that the rules write, where the good ones lie, and plans drawn from the whole
// space, which show what is bad and why. No measurement decides what comes next, so a seed names the plans once and for all.
#pragma once

#include <cstdint>
#include <vector>

#include "generator/search/search.h"

namespace locution::generator {

/// At most `count` different plans, none of them that of `start`; fewer where the space has no more. A quarter is drawn uniformly, the rest
/// lies one or more mutations from `start`.
std::vector<Proposal> spread(const space::Space& space, const space::Choices& start, size_t count, uint64_t seed);

}  // namespace locution::generator

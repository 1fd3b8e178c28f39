// The rules that schedulers are made of: each answers the questions about one stage, or declines what it has nothing to say about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "generator/wishes.h"
#include "space/access.h"
#include "space/space.h"

namespace locution::generator {

using space::Access;
using space::isUnitStride;
using space::lanesFor;
using space::mergeable;

/// Sums of products, by the traffic and cycles of register tiles and cache blocks. Declines other stages, and those without a vector
/// axis.
std::optional<Wishes> contractionWishes(const space::StageChoices& stage);

/// Convolutions that minimal filtering makes faster, by a model of cycles and traffic.
std::optional<Wishes> winogradWishes(const space::StageChoices& stage);

/// Points, movements and reductions, by how they walk through memory. Declines scans.
std::optional<Wishes> streamWishes(const space::StageChoices& stage);

/// Into how many strips of rows a chain of products (attention) is cut.
int64_t chooseStrips(const space::Space& space);
/// Into how many tasks the rows of convolutions that run row by row are cut.
int64_t chooseRowTasks(const space::Space& space);
/// A product within a chain, strip by strip.
std::optional<Wishes> chainWishes(const space::Space& space, const space::StageChoices& stage);

/// The analytic rules' way through a space. `amend`, where given, has the last word: what it answers, given what the rules would, must be
/// legal.
space::Walk analyticWalk(const space::Space& space,
                         const std::function<int64_t(const space::Walk& walk, int64_t wish)>& amend = {});

}  // namespace locution::generator

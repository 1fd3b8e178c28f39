// The rules that schedulers are made of: each answers the questions about one stage, or declines what it has nothing to say about.
#pragma once

#include <cstddef>
#include <optional>

#include "core/target.h"
#include "generator/wishes.h"
#include "loop/compute.h"
#include "schedule/plan.h"
#include "space/access.h"
#include "space/plan_writer.h"
#include "space/space.h"

namespace locution::generator {

using space::Access;
using space::accesses;
using space::axisName;
using space::groupSize;
using space::isUnitStride;
using space::lanesFor;
using space::mergeable;
using space::PlanWriter;
using space::productOperands;
using space::reduceName;

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

/// The analytic rules' way through a space.
space::Walk analyticWalk(const space::Space& space);

struct StageQuestion {
  const loop::Computation& kernel;
  size_t stage;   ///< index into the kernel's stages
  size_t shared;  ///< how many leading axes are loops that all stages have in common
  const TargetSpec& target;

  const loop::Stage& self() const { return kernel.stages[stage]; }
};
/// Fixed rules for any stage (the baseline's).
void planStage(const StageQuestion& question, schedule::Plan* plan);

}  // namespace locution::generator

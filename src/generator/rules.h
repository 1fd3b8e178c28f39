// The rules that schedulers are made of: each writes the steps of one stage, or declines what it has nothing to say about.
#pragma once

#include <cstddef>

#include "core/target.h"
#include "loop/compute.h"
#include "schedule/plan.h"
#include "space/access.h"
#include "space/plan_writer.h"

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

struct StageQuestion {
  const loop::Computation& kernel;
  size_t stage;   ///< index into the kernel's stages
  size_t shared;  ///< how many leading axes are loops that all stages have in common
  const TargetSpec& target;

  const loop::Stage& self() const { return kernel.stages[stage]; }
  /// The kernel is this stage and nothing else: its outer loops may be shared out to threads.
  bool isAlone() const { return kernel.stages.size() == 1 && shared == 0; }
};

/// The leading axes that all stages have in common become loops outside them, shared out to threads; returns how many.
size_t planShared(const loop::Computation& kernel, schedule::Plan* plan);

/// Fixed rules for any stage (the baseline's).
void planStage(const StageQuestion& question, schedule::Plan* plan);

/// Sums of products, by the traffic and cycles of register tiles and cache blocks. False: not such a stage, or no vector axis.
bool planContraction(const StageQuestion& question, schedule::Plan* plan);

/// A whole kernel that is a chain of products (attention), strip by strip of rows. False: not such a kernel.
bool planChain(const loop::Computation& kernel, const TargetSpec& target, schedule::Plan* plan);

/// Convolutions that minimal filtering makes faster, by a model of cycles and traffic. False: not such a stage, or no gain.
bool planWinograd(const StageQuestion& question, schedule::Plan* plan);

/// Points, movements and reductions, by how they walk through memory. False: a scan, or a contraction.
bool planStream(const StageQuestion& question, schedule::Plan* plan);

}  // namespace locution::generator

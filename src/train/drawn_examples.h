// Sentences that need no measurement: what the analytic rules write for networks of drawn layers (driver/drawn.h). A model that has learnt
// them writes legal schedules as good as the rules'; measured ones then show it what is better.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "driver/held_out.h"
#include "driver/options.h"
#include "train/examples.h"

namespace locution::train {

struct DrawnSentences {
  int64_t networks = 0;
  uint64_t seed = 0;
  std::vector<driver::CompileOptions> targets;  ///< each network is drawn for one of them, in turn
  std::optional<driver::HeldOut> heldOut;       ///< workloads that are left out
};

/// One example a workload and target, without a time: the policy learns from it, the value does not. Errors: as readCorpus.
Result<Examples> drawnExamples(const DrawnSentences& drawn, int64_t mostTokens);

}  // namespace locution::train

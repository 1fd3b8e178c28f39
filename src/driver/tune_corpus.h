// Kernels of a model, or of many, tuned: what `locution tune` does.
#pragma once

#include <vector>

#include "driver/options.h"
#include "driver/selection.h"
#include "support/status.h"
#include "tune/tuner.h"

namespace locution::driver {

/// `options.records` names where measurements are kept, empty: nowhere. Fills `tune.store` and `compiler` itself.
/// Errors: no workloads; a target that this machine can't run; records that can't be opened.
Result<tune::TuneResult> tuneCorpus(const std::vector<Selected>& workloads, const CompileOptions& options,
                                    tune::TuneOptions tune);

}  // namespace locution::driver

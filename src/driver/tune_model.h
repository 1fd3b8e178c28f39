// A model's kernels tuned: what `locution tune` does.
#pragma once

#include <string>

#include "driver/options.h"
#include "support/status.h"
#include "tune/tuner.h"

namespace locution::driver {

/// `options.records` names where measurements are kept, empty: nowhere. Fills `tune.store`, `model` and `compiler` itself.
/// Errors: as compileModel; a target that this machine can't run; records that can't be opened.
Result<tune::TuneResult> tuneModel(const std::string& path, const CompileOptions& options, tune::TuneOptions tune);

}  // namespace locution::driver

// The Tensor Language Model as the options name it: its weights (a file, or those that were built in) and the machine's adapter.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"
#include "generator/scheduler.h"
#include "generator/tlm/adapter.h"
#include "generator/tlm/weights.h"
#include "support/status.h"

namespace locution::driver {

/// `file` empty: the weights that were built in. Errors: weights that can't be read or don't fit the vocabulary, or none built in.
Result<generator::tlm::Weights> tlmWeights(const std::string& file);

/// Where the adapter of a machine lies: beside its profile.
std::string adapterBeside(const std::string& machineFile);
/// The adapter that the options name, or the one beside their machine profile where there is one; empty: none.
std::string adapterFile(const CompileOptions& options);

struct LanguageModel {
  generator::tlm::Weights base;
  std::optional<generator::tlm::Adapter> adapter;
  generator::tlm::Weights weights;  ///< the base's with the adapter's matrices added
  std::vector<std::string> warnings;
};
/// Errors: as tlmWeights; an adapter that can't be read, is damaged or, where it was asked for by name, belongs to other weights or
/// words. One beside the machine profile that does is left aside with a warning.
Result<LanguageModel> languageModel(const CompileOptions& options);

/// `sentences`: 0 for the likeliest sentence alone.
std::unique_ptr<generator::Scheduler> makeTlmScheduler(const LanguageModel& model, int64_t sentences);

}  // namespace locution::driver

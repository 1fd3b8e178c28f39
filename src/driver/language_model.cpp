#include "driver/language_model.h"

#include <filesystem>
#include <utility>

#include "driver/tlm_embedded.h"
#include "driver/tlm_programs.h"
#include "generator/tlm/tlm_scheduler.h"

namespace locution::driver {

namespace tlm = generator::tlm;

namespace {

constexpr const char *kOff = "off", *kFlag = "--adapter";

}  // namespace

Result<tlm::Weights> tlmWeights(const std::string& file) {
  if (file.empty() && embeddedTlmWeights().empty())
    return Status::error("this build has no weights of the language model; give some with --tlm-weights FILE");
  auto weights = file.empty() ? tlm::parseWeights(embeddedTlmWeights()) : tlm::readWeights(file);
  if (!weights.isOk()) return weights.status().withContext(file.empty() ? "the built-in weights" : "--tlm-weights");
  return weights;
}

std::string adapterBeside(const std::string& machineFile) { return machineFile + ".adapter"; }

std::string adapterFile(const CompileOptions& options) {
  if (options.adapter == kOff) return "";
  if (!options.adapter.empty() || options.machineFile.empty()) return options.adapter;
  std::error_code ignored;
  std::string beside = adapterBeside(options.machineFile);
  return std::filesystem::exists(beside, ignored) ? beside : "";
}

Result<LanguageModel> languageModel(const CompileOptions& options) {
  LanguageModel out;
  LOCUTION_ASSIGN_OR_RETURN(out.base, tlmWeights(options.tlmWeights));
  out.weights = out.base;
  const std::string file = adapterFile(options);
  if (file.empty()) return out;
  auto read = tlm::readAdapter(file);
  if (!read.isOk()) return read.status().withContext(kFlag);
  const Status base = tlm::checkBase(read->adapter, out.base);
  const Status& fits = read->vocabulary.isOk() ? base : read->vocabulary;
  if (!fits.isOk()) {
    const Status named = fits.withContext(file).withContext(kFlag);
    if (!options.adapter.empty()) return named;
    out.warnings.push_back(named.message() + "; it is left aside: `locution adapt` makes one for these");
    return out;
  }
  auto merged = tlm::adapted(out.base, read->adapter);
  if (!merged.isOk()) return merged.status().withContext(file).withContext(kFlag);
  out.weights = std::move(*merged);
  out.adapter = std::move(read->adapter);
  return out;
}

std::unique_ptr<generator::Scheduler> makeTlmScheduler(const LanguageModel& model, int64_t sentences) {
  tlm::SchedulerOptions options;
  options.isGreedy = sentences == 0;
  options.sentences = sentences;
  if (model.adapter) options.known = model.adapter->plans;
  return tlm::makeTlm(model.weights, inferencePrograms(model.weights.config), options);
}

}  // namespace locution::driver

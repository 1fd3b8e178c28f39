#include "driver/scheduling.h"

#include <charconv>

#include "driver/kernels.h"
#include "driver/language_model.h"
#include "generator/rules.h"
#include "generator/search/from_records.h"
#include "generator/search/search.h"
#include "generator/sentences.h"
#include "records/store.h"
#include "runtime/cpu_features.h"
#include "support/strings.h"
#include "targets/cpu/cpu_target.h"
#include "tune/tuner.h"

namespace locution::driver {

namespace {

bool isSearch(const std::string& name) {
  const std::vector<std::string> names = generator::searchNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr const char* kTlm = "tlm";

/// The number behind a colon; 0: none.
int64_t countBehind(const std::string& text, size_t colon) {
  if (colon == std::string::npos) return 0;
  int64_t count = 0;
  const char *begin = text.data() + colon + 1, *last = text.data() + text.size();
  auto [end, error] = std::from_chars(begin, last, count);
  return error == std::errc() && end == last ? count : 0;
}

Result<SchedulerSpec> parseTlm(const std::string& text, size_t colon) {
  constexpr int64_t kSentences = 32, kMost = 4096;
  SchedulerSpec out;
  out.name = kTlm;
  out.sentences = kSentences;
  if (colon == std::string::npos) return out;
  if (text.substr(colon + 1) == "greedy") {
    out.sentences = 0;
    return out;
  }
  out.sentences = countBehind(text, colon);
  if (out.sentences < 1 || out.sentences > kMost)
    return Status::error("--scheduler " + text +
                         ": want tlm, tlm:greedy, or tlm:N with N sentences to draw for each kernel (1 to 4096)");
  return out;
}

std::string architecture(const std::string& triple) { return triple.substr(0, triple.find('-')); }

}  // namespace

// The plans that a search found, by kernel; the analytic one for others.
class Scheduling::Found : public generator::Scheduler {
 public:
  std::string_view name() const override { return "search"; }
  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    if (kernel.raw) return {};
    const space::Space space(kernel, target);
    return *space::planOf(space, *choices(space));
  }
  std::optional<space::Choices> choices(const space::Space& space) const override {
    auto it = found.find(kernelKey(space.kernel()));
    return it != found.end() ? it->second : generator::analyticWalk(space).choices();
  }

  std::map<uint64_t, space::Choices> found;
};

Scheduling::Scheduling(SchedulerSpec spec) : spec_(std::move(spec)) {}
Scheduling::~Scheduling() = default;

Result<SchedulerSpec> parseScheduler(const std::string& text) {
  SchedulerSpec out;
  const size_t colon = text.find(':');
  out.name = text.substr(0, colon);
  std::vector<std::string> known = generator::schedulerNames();
  known.emplace_back("records");
  if (out.name == kTlm) return parseTlm(text, colon);
  const bool isKnown = std::find(known.begin(), known.end(), out.name) != known.end();
  if (!isKnown && !isSearch(out.name)) {
    for (const char* s : {"tlm", "tlm:N", "tlm:greedy"}) known.emplace_back(s);
    for (const std::string& s : generator::searchNames()) known.push_back(s + ":N");
    return Status::error("unknown scheduler '" + text + "' (there are: " + join(known, ", ") + ")");
  }
  if (isKnown) {
    if (colon == std::string::npos) return out;
    return Status::error("--scheduler " + text + ": " + out.name + " measures nothing, so it takes no number");
  }
  out.trials = countBehind(text, colon);
  if (out.trials < 1)
    return Status::error("--scheduler " + text + ": want " + out.name +
                         ":N, with N the plans to measure for the whole model");
  return out;
}

std::vector<tune::TuneKernel> kernelsToTune(const Lowered& lowered) {
  std::vector<tune::TuneKernel> out;
  std::map<uint64_t, size_t> byKey;
  for (const Step& step : lowered.steps) {
    const auto* k = std::get_if<KernelStep>(&step);
    if (!k || k->computation.raw) continue;
    auto [it, added] = byKey.emplace(kernelKey(k->computation), out.size());
    if (added) out.push_back({k->computation, k->op, 0});
    ++out[it->second].count;
  }
  return out;
}

Status requireThisMachine(const TargetSpec& target) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec host, targets::cpu::makeTarget("", "native", 1));
  std::string missing = architecture(target.triple) != architecture(host.triple)
                            ? architecture(target.triple)
                            : join(runtime::missingFeatures(target.features), ", ");
  if (missing.empty()) return Status::ok();
  return Status::error("plans are measured on this machine, which can't run code for the target (it has no " + missing +
                       "); `--scheduler records` takes what another machine measured");
}

bool Scheduling::isReproducible(const std::string& scheduler) {
  auto spec = parseScheduler(scheduler);
  return spec.isOk() && spec->trials == 0 && spec->name != "records";
}

bool Scheduling::readsAdapter(const std::string& scheduler) {
  auto spec = parseScheduler(scheduler);
  return spec.isOk() && spec->name == kTlm;
}

Result<std::unique_ptr<Scheduling>> Scheduling::make(const CompileOptions& options, const TargetSpec& target) {
  LOCUTION_ASSIGN_OR_RETURN(SchedulerSpec spec, parseScheduler(options.scheduler));
  std::unique_ptr<Scheduling> out(new Scheduling(spec));
  out->jobs_ = options.jobs;
  out->seed_ = options.seed;
  const bool reads = spec.name == "records", writes = spec.trials > 0;
  if (!options.tlmWeights.empty() && spec.name != kTlm)
    return Status::error("--tlm-weights: the scheduler " + spec.name + " reads no weights");
  if (!options.adapter.empty() && options.adapter != "off" && spec.name != kTlm)
    return Status::error("--adapter: the scheduler " + spec.name + " reads no adapter");
  if (reads && options.records.empty())
    return Status::error("--scheduler records: want --records FILE or postgresql://... to take plans from");
  if (!options.records.empty()) {
    if (!reads && !writes)
      return Status::error("--records: the scheduler " + spec.name + " neither reads nor writes records");
    using Open = records::Store::Open;
    LOCUTION_ASSIGN_OR_RETURN(out->store_, records::Store::open(options.records, reads ? Open::Read : Open::Create));
    out->place_ = out->store_->place();
  }
  if (reads) {
    auto known = generator::makeFromRecords(std::move(out->store_));
    out->records_ = known.get();
    out->scheduler_ = std::move(known);
  } else if (writes) {
    LOCUTION_RETURN_IF_ERROR(requireThisMachine(target));
    auto found = std::make_unique<Found>();
    out->found_ = found.get();
    out->scheduler_ = std::move(found);
  } else if (spec.name == kTlm) {
    auto model = languageModel(options);
    if (!model.isOk())
      return options.tlmWeights.empty() ? model.status().withContext("--scheduler tlm") : model.status();
    out->warnings_ = model->warnings;
    out->scheduler_ = makeTlmScheduler(*model, spec.sentences);
  } else {
    LOCUTION_ASSIGN_OR_RETURN(out->scheduler_, generator::makeScheduler(spec.name));
  }
  return out;
}

Status Scheduling::prefer(const std::string& sentences, const std::string& file) {
  LOCUTION_ASSIGN_OR_RETURN(scheduler_, generator::makeFromSentences(sentences, file, std::move(scheduler_)));
  return Status::ok();
}

Status Scheduling::prepare(const Lowered& lowered, const codegen::KernelCompiler& compiler, const std::string& model,
                           const Progress& progress) {
  if (!found_) return Status::ok();
  const std::vector<tune::TuneKernel> kernels = kernelsToTune(lowered);
  tune::TuneOptions options;
  options.search = spec_.name;
  options.trials = spec_.trials;
  options.seed = seed_;
  options.store = store_.get();
  options.model = model;
  options.compiler = compilerVersion();
  options.progress = [&](const tune::TuneProgress& p) {
    const double share = static_cast<double>(p.trials) / static_cast<double>(std::max<int64_t>(1, p.wanted));
    if (progress) progress("measuring plans of " + p.kernel, 0.1 + 0.2 * share);
  };
  LOCUTION_ASSIGN_OR_RETURN(tune::TuneResult result, tune::tuneKernels(kernels, compiler, jobs_, options));
  for (size_t i = 0; i < kernels.size(); ++i)
    if (result.kernels[i].plan) found_->found[kernelKey(kernels[i].computation)] = result.kernels[i].choices;
  return Status::ok();
}

std::vector<std::string> Scheduling::warnings() const {
  if (!records_) return warnings_;
  const generator::FromRecords::Report report = records_->report();
  if (!report.status.isOk()) return {"the analytic plans were taken: " + report.status.message()};
  if (report.found == 0 && report.unknown > 0)
    return {"--records " + place_ +
            ": knows none of the model's kernels on this target; the analytic plans were taken"};
  return {};
}

}  // namespace locution::driver

// `locution adapt`: the language model learns from this machine's own measurements.
#include "train/adaptation.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "commands.h"
#include "driver/scheduling.h"
#include "long_run.h"
#include "reproducer.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

namespace {

constexpr double kMinutes = 10;

/// One line that is rewritten on a terminal; elsewhere a line now and then.
class Line {
 public:
  void show(double seconds, const std::string& text) {
    constexpr double kEvery = 30, kEveryOnTerminal = 0.2;
    if (seconds - last_ < (isTerminal_ ? kEveryOnTerminal : kEvery)) return;
    last_ = seconds;
    std::fprintf(stderr, isTerminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
    std::fflush(stderr);
  }
  /// A line that stays.
  void note(const std::string& text) const {
    std::fprintf(stderr, "%s%s\n", isTerminal_ ? "\r\033[K" : "", text.c_str());
  }
  void end() const {
    if (isTerminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool isTerminal_ = isatty(STDERR_FILENO) != 0;
  double last_ = -INFINITY;
};

std::string measuringText(const tune::SamplingProgress& p, double seconds) {
  char text[256];
  const std::string of = p.wanted > 0 ? " of " + std::to_string(p.wanted) : "";
  std::snprintf(text, sizeof text, "%lld%s plans measured, %lld of %lld workloads, %.1f/s",
                static_cast<long long>(p.measured), of.c_str(), static_cast<long long>(p.workloads),
                static_cast<long long>(p.of), static_cast<double>(p.measured) / std::max(1e-9, p.seconds));
  std::string out = text;
  if (seconds > 0) out += ", " + duration(std::max(0.0, seconds - p.seconds)) + " left";
  return out;
}

std::string trainingText(const train::TlmProgress& p) {
  char text[256];
  std::snprintf(text, sizeof text, "step %lld of %lld: loss %.4f, %.4f a decision, accuracy %.1f %%; %s left",
                static_cast<long long>(p.step), static_cast<long long>(p.steps), p.loss, p.policy, p.accuracy * 100,
                duration(p.secondsLeft).c_str());
  return text;
}

void printSummary(const train::AdaptationResult& r, const std::string& file, const std::string& records) {
  const tune::SamplingResult& m = r.measured;
  std::printf("%lld plans of %lld workloads measured", static_cast<long long>(m.measured),
              static_cast<long long>(m.workloads));
  if (m.recalled > 0) std::printf(", %lld were known", static_cast<long long>(m.recalled));
  if (m.failed > 0) std::printf(", %lld failed", static_cast<long long>(m.failed));
  if (m.unmeasurable > 0) std::printf("; %lld workloads can't be measured", static_cast<long long>(m.unmeasurable));
  std::printf(" (%s)\n", records.c_str());
  if (!r.untrained.empty()) std::printf("nothing was trained: %s\n", r.untrained.c_str());
  std::printf("%lld steps of training; %lld workloads measured again, before and after\n",
              static_cast<long long>(r.steps), static_cast<long long>(r.judged));
  std::printf(
      "times faster, geometric mean: with the best known plans %.3f (worst %.3f, %lld workloads changed); what the "
      "model "
      "itself writes for %lld workloads that it did not learn from %.3f%s\n",
      r.whole, r.least, static_cast<long long>(r.changed), static_cast<long long>(r.heldBack), r.model,
      r.hasNewMatrices ? "" : ", so its matrices stay as they were");
  if (r.isBetter)
    std::printf("%s: written", file.c_str());
  else
    std::printf("%s: no gain, so it stays as it was", file.c_str());
  std::printf(", after %s%s\n", duration(r.seconds).c_str(),
              r.isInterrupted ? "; interrupted: the same command goes on" : "");
}

/// Where things lie: the adapter, and the records beside it or the machine's profile.
struct Places {
  std::string adapter, records;
};
Result<Places> placesOf(const Options& options) {
  if (options.adapter == "off") return Status::error("--adapter off: there would be nothing to make");
  if (options.adapter.empty() && options.machine.empty())
    return Status::error(
        "want --machine FILE, the machine's profile, beside which the adapter will lie (it is measured where there is "
        "none), or --adapter FILE");
  Places out;
  out.adapter = options.adapter.empty() ? driver::adapterBeside(options.machine) : options.adapter;
  out.records = !options.records.empty()  ? options.records
                : options.machine.empty() ? out.adapter + ".records"
                                          : options.machine + ".records";
  return out;
}

}  // namespace

Status adaptCommand(const Options& options) {
  armReproducer(options);
  if (!(options.minutes >= 0)) return Status::error("--minutes: want a number of minutes, or 0 for no limit");
  if (options.measurements < 0) return Status::error("--measurements: at least 1, or 0 for no limit");
  constexpr int64_t kMostRank = 256;
  if (options.rank < 1 || options.rank > kMostRank)
    return Status::error("--rank: want 1 to " + std::to_string(kMostRank));
  LOCUTION_ASSIGN_OR_RETURN(const Places places, placesOf(options));
  std::error_code ignored;
  // What can't work is said before anything takes time.
  Options naming = options;
  naming.records.clear();
  if (!options.adapter.empty() && !std::filesystem::exists(options.adapter, ignored)) naming.adapter = "off";
  LOCUTION_ASSIGN_OR_RETURN(const driver::CompileOptions named, compileOptions(naming));
  train::Adaptation adaptation;
  LOCUTION_ASSIGN_OR_RETURN(adaptation.model, driver::languageModel(named));
  for (const std::string& w : adaptation.model.warnings) std::fprintf(stderr, "warning: %s\n", w.c_str());
  if (!options.machine.empty() && !std::filesystem::exists(options.machine, ignored)) {
    std::fprintf(stderr, "%s: measuring this machine\n", options.machine.c_str());
    LOCUTION_RETURN_IF_ERROR(writeMachineProfile("", "", options.machine).status());
  }
  // The corpus is read by rules, which need neither records nor a language model.
  Options own = naming;
  own.tlmWeights.clear();
  own.adapter.clear();
  LOCUTION_ASSIGN_OR_RETURN(const driver::CompileOptions compile, compileOptions(own));
  LOCUTION_ASSIGN_OR_RETURN(const TargetSpec target, driver::resolveTarget(compile));
  LOCUTION_RETURN_IF_ERROR(driver::requireThisMachine(target));
  LOCUTION_ASSIGN_OR_RETURN(const SelectedCorpus corpus, selectedCorpus(own, compile));
  for (const driver::Selected& s : corpus.selected)
    adaptation.workloads.push_back({&s.workload->workload, *s.workload->models.begin()});
  const double minutes = options.minutes > 0 || options.measurements > 0 ? options.minutes : kMinutes;
  adaptation.records = places.records;
  adaptation.lora = {options.rank, 2.0 * static_cast<double>(options.rank)};
  adaptation.measurements = options.measurements;
  adaptation.seconds = 60 * minutes;
  adaptation.seed = options.seed;
  adaptation.jobs = options.jobs;
  adaptation.compiler = driver::compilerVersion();

  const Interrupts interrupts;
  Line line;
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  bool hasToldOfInterrupt = false;
  train::AdaptationWatch watch;
  watch.isInterrupted = [&] {
    const bool met = Interrupts::met();
    if (met && !std::exchange(hasToldOfInterrupt, true))
      line.note("interrupted: going on with what there is; once more ends at once");
    return met;
  };
  watch.measuring = [&](const tune::SamplingProgress& p) {
    line.show(seconds(), measuringText(p, adaptation.seconds));
  };
  watch.training.begin = [&](const train::TlmFacts& f) {
    line.note("learning from " + std::to_string(f.sentences) + " sentences of " + std::to_string(f.workloads) +
              " workloads");
  };
  watch.training.progress = [&](const train::TlmProgress& p) { line.show(seconds(), trainingText(p)); };
  watch.judging = [&](size_t done, size_t of) {
    line.show(seconds(), std::to_string(done) + " of " + std::to_string(of) + " workloads measured again");
  };
  const std::unique_ptr<codegen::KernelCompiler> compiler = targets::cpu::makeKernelCompiler(target);
  auto result = train::adapt(adaptation, *compiler, watch);
  line.end();
  if (!result.isOk()) return result.status();
  if (result->isBetter) LOCUTION_RETURN_IF_ERROR(generator::tlm::writeAdapter(result->adapter, places.adapter));
  printSummary(*result, places.adapter, places.records);
  return Status::ok();
}

}  // namespace locution::tools

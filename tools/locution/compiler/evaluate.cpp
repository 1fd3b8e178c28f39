// `locution evaluate`: schedulers against the best plans that are known.
#include "tune/evaluate.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "commands.h"
#include "driver/language_model.h"
#include "driver/scheduling.h"
#include "generator/search/from_records.h"
#include "io.h"
#include "long_run.h"
#include "reproducer.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Above it the analytic plan is taken to leave speed on the table: measurements repeat to about a hundredth.
constexpr double kGap = 0.03;

Result<std::unique_ptr<generator::Scheduler>> contender(const std::string& name,
                                                        const driver::CompileOptions& options) {
  constexpr std::string_view kRecords = "records:";
  if (name == "tlm" || name.starts_with("tlm:")) {
    LOCUTION_ASSIGN_OR_RETURN(driver::SchedulerSpec spec, driver::parseScheduler(name));
    LOCUTION_ASSIGN_OR_RETURN(driver::LanguageModel model, driver::languageModel(options));
    for (const std::string& w : model.warnings) std::fprintf(stderr, "warning: %s\n", w.c_str());
    return driver::makeTlmScheduler(model, spec.sentences);
  }
  if (!name.starts_with(kRecords)) return generator::makeScheduler(name);
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<records::Store> store,
                            records::Store::open(name.substr(kRecords.size()), records::Store::Open::Read));
  return std::unique_ptr<generator::Scheduler>(generator::makeFromRecords(std::move(store)));
}

Json summaryOf(const tune::EvaluateSummary& s) {
  Json j;
  j = {{"workloads", s.workloads}, {"gaps", s.gaps}, {"analytic", s.analytic}, {"analytic_worst", s.analyticWorst}};
  for (const tune::EvaluateSummary::Of& of : s.contenders)
    j["contenders"][of.name] = {{"of_best", of.mean}, {"worst", of.worst},   {"over_analytic", of.overAnalytic},
                                {"least", of.least},  {"closed", of.closed}, {"failed", of.failed}};
  return j;
}

Json toJson(const std::vector<tune::Evaluated>& rows, const std::vector<tune::Contender>& contenders,
            const Options& options, const TargetSpec& target) {
  Json j;
  j["target"] = target.str();
  j["cpu"] = records::cpuModel();
  j["gap"] = kGap;
  j["least_trials"] = options.leastTrials;
  for (const tune::Evaluated& r : rows) {
    Json row = {{"workload", r.id}, {"kind", r.kind}, {"count", r.count}, {"held_out", r.groups}};
    if (r.problem.empty()) {
      row["seconds"] = r.seconds;
      row["trials"] = r.trials;
      row["best"] = r.best;
      row["best_plan"] = r.bestPlan;
      for (size_t c = 0; c < contenders.size(); ++c) row["ratios"][contenders[c].name] = r.ratios[c];
    } else {
      row["problem"] = r.problem;
    }
    j["workloads"].push_back(std::move(row));
  }
  j["summary"] = summaryOf(tune::summarise(rows, contenders, options.leastTrials, kGap));
  for (const std::string& group : tune::groupsOf(rows))
    j["held_out"][group] = summaryOf(tune::summarise(rows, contenders, options.leastTrials, kGap, group));
  return j;
}

}  // namespace

Status evaluateCommand(const Options& options) {
  armReproducer(options);
  if (options.records.empty())
    return Status::error("want --records FILE or postgresql://... with the best known plans");
  if (options.rounds < 1) return Status::error("--rounds: at least 1");
  LOCUTION_ASSIGN_OR_RETURN(const driver::CompileOptions judged, compileOptions(options));
  // The corpus is read by rules, which need neither records nor a language model.
  Options own = options;
  own.records.clear();
  own.tlmWeights.clear();
  own.adapter.clear();
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(own));
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, driver::resolveTarget(compile));
  LOCUTION_RETURN_IF_ERROR(driver::requireThisMachine(target));
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<records::Store> best, records::Store::open(options.records));
  std::vector<std::unique_ptr<generator::Scheduler>> schedulers;
  std::vector<tune::Contender> contenders;
  for (const std::string& name : options.contenders) {
    LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<generator::Scheduler> s, contender(name, judged));
    contenders.push_back({name, s.get()});
    schedulers.push_back(std::move(s));
  }
  LOCUTION_ASSIGN_OR_RETURN(const SelectedCorpus corpus, selectedCorpus(own, compile));
  std::vector<tune::EvaluateWorkload> workloads;
  for (const driver::Selected& s : corpus.selected) {
    std::set<std::string> kinds;
    for (const std::string& g : s.groups) kinds.insert(driver::HeldOut::kindOf(g));
    workloads.push_back({&s.workload->workload, static_cast<double>(s.workload->count), kinds});
  }
  if (workloads.empty()) return Status::error("there is no kernel to evaluate");
  const std::unique_ptr<codegen::KernelCompiler> compiler = targets::cpu::makeKernelCompiler(target);
  const Interrupts interrupts;
  tune::EvaluateOptions evaluate;
  evaluate.rounds = options.rounds;
  evaluate.jobs = options.jobs;
  evaluate.seed = options.seed;
  evaluate.isStopped = Interrupts::met;
  const bool isTerminal = isatty(STDERR_FILENO) != 0;
  if (isTerminal)
    evaluate.progress = [](size_t done, size_t of) { std::fprintf(stderr, "\r\033[K%zu of %zu workloads", done, of); };
  LOCUTION_ASSIGN_OR_RETURN(std::vector<tune::Evaluated> rows,
                            tune::evaluate(workloads, contenders, *compiler, *best, evaluate));
  if (isTerminal) std::fputs("\r\033[K", stderr);
  std::fputs(tune::print(rows, contenders, options.leastTrials, kGap).c_str(), stdout);
  if (options.json.empty()) return Status::ok();
  return writeText(options.json, toJson(rows, contenders, options, target).dump(1) + "\n");
}

}  // namespace locution::tools

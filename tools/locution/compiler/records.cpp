// `locution records`: what a database of measured sentences holds, and records in and out of it.
#include "records/store.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "commands.h"
#include "core/target.h"
#include "long_run.h"
#include "targets/cpu/cpu_target.h"
#include "tune/again.h"

namespace locution::tools {
namespace {

using records::Best;
using records::Count;
using records::Outcome;
using records::Store;
using records::TextKind;

/// "x86-64-v3 2 threads strict", with enough of the key to tell profiles apart.
Result<std::string> targetName(Store& store, const std::string& key) {
  LOCUTION_ASSIGN_OR_RETURN(auto text, store.text(TextKind::Target, key));
  std::string mark = " [" + key.substr(0, 8) + "]";
  auto target = parseTarget(text.value_or(""));
  // Written by another version, with other fields.
  if (!target.isOk() || !text) return "unknown" + mark;
  return target->cpu + " " + std::to_string(target->threads) + (target->threads == 1 ? " thread" : " threads") +
         (target->strict ? " strict" : "") + mark;
}

/// What a target's workloads came to.
struct TargetSum {
  std::map<Outcome, int64_t> outcomes;
  int64_t records = 0, stale = 0;
  std::set<std::string> workloads;
  double logRatios = 0;  ///< of each workload's best to its incumbent
  int64_t ratios = 0;
};

void report(const std::string& what, const std::string& from, const Store::Merged& merged) {
  std::printf("%s %s: %" PRId64 " records (%" PRId64 " were there), %" PRId64 " texts\n", what.c_str(), from.c_str(),
              merged.records, merged.present, merged.texts);
}

/// The line of one workload's best sentence on a target.
void printBest(const std::string& workload, const Best& best) {
  std::printf("  %s  %6" PRId64 "  %8.3f  %10.6f  %s\n", workload.c_str(), best.measurements, best.value,
              best.record.seconds().value_or(0) * 1e3, best.record.sentence.c_str());
}

Status printTarget(Store& store, const std::string& target, TargetSum& sum, bool each) {
  LOCUTION_ASSIGN_OR_RETURN(std::string name, targetName(store, target));
  if (each) std::printf("\n%s\n  %-32s  %6s  %8s  %10s  sentence\n", name.c_str(), "workload", "runs", "ratio", "ms");
  for (const std::string& workload : sum.workloads) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Best> best, store.best(workload, target));
    if (best.empty()) continue;
    sum.logRatios += std::log(best[0].value);
    ++sum.ratios;
    if (each) printBest(workload, best[0]);
  }
  return Status::ok();
}

Status summary(Store& store, bool each) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Count> counts, store.counts());
  std::map<std::string, TargetSum> targets;
  std::set<std::string> workloads;
  int64_t records = 0, stale = 0;
  for (const Count& count : counts) {
    TargetSum& sum = targets[count.target];
    sum.outcomes[count.outcome] += count.records;
    sum.records += count.records;
    sum.workloads.insert(count.workload);
    workloads.insert(count.workload);
    records += count.records;
    if (!count.stale) continue;
    sum.stale += count.records;
    stale += count.records;
  }
  std::printf("%s: %" PRId64 " records (%" PRId64 " stale) of %zu workloads on %zu targets\n", store.place().c_str(),
              records, stale, workloads.size(), targets.size());
  for (auto& [target, sum] : targets) LOCUTION_RETURN_IF_ERROR(printTarget(store, target, sum, each));
  if (targets.empty()) return Status::ok();
  std::printf("\n%-44s %9s", "target", "workloads");
#define OUTCOME(name, text) std::printf(" %9s", text);
#include "records/outcomes.inc"
#undef OUTCOME
  // Over the workloads that have a ratio: how much faster their best is than what it was measured against.
  std::printf(" %9s %10s\n", "stale", "best ratio");
  for (auto& [target, sum] : targets) {
    LOCUTION_ASSIGN_OR_RETURN(std::string name, targetName(store, target));
    std::printf("%-44s %9zu", name.c_str(), sum.workloads.size());
#define OUTCOME(name, text) std::printf(" %9" PRId64, sum.outcomes[Outcome::name]);
#include "records/outcomes.inc"
#undef OUTCOME
    std::printf(" %9" PRId64, sum.stale);
    if (sum.ratios) std::printf(" %10.3f\n", std::exp(sum.logRatios / static_cast<double>(sum.ratios)));
    if (!sum.ratios) std::printf(" %10s\n", "-");
  }
  return Status::ok();
}

/// Measures some records once more; a line of each where `-v` asks for it, then how far ratios are off.
Status again(Store& store, const Options& options) {
  tune::AgainOptions measure;
  measure.records = options.again;
  measure.seed = options.seed;
  measure.jobs = options.jobs;
  measure.makeCompiler = targets::cpu::makeKernelCompiler;
  measure.isStopped = Interrupts::met;
  const bool isTerminal = isatty(STDERR_FILENO) != 0;
  measure.progress = [&](size_t done, size_t all) {
    if (isTerminal) std::fprintf(stderr, "\r\033[Kmeasured %zu of %zu", done, all);
  };
  LOCUTION_ASSIGN_OR_RETURN(std::vector<tune::MeasuredAgain> measured, tune::measureAgain(store, measure));
  if (isTerminal) std::fprintf(stderr, "\r\033[K");
  std::vector<double> differences;
  for (const tune::MeasuredAgain& m : measured) {
    if (m.ratio > 0) differences.push_back(m.difference());
    if (!options.verbose) continue;
    LOCUTION_ASSIGN_OR_RETURN(std::string target, targetName(store, m.record.target));
    std::printf("%s  %s  ratio %.3f, then %.3f%s%s  %s\n", target.c_str(), m.record.workload.substr(0, 16).c_str(),
                m.ratio, *m.record.ratio, m.problem.empty() ? "" : ": ", m.problem.c_str(), m.record.sentence.c_str());
  }
  std::sort(differences.begin(), differences.end());
  std::printf("%zu of %zu records measured again", differences.size(), measured.size());
  if (!differences.empty())
    std::printf("; the ratio to the incumbent differs by %.1f %% in the median, %.1f %% at the 90th percentile",
                records::median(differences) * 100, differences[(differences.size() - 1) * 9 / 10] * 100);
  std::printf("\n");
  return Status::ok();
}

}  // namespace

Status recordsCommand(const Options& options) {
  bool changes = !options.importFiles.empty() || !options.mergeFiles.empty();
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                            Store::open(options.records, changes ? Store::Open::Create : Store::Open::Read));
  for (const std::string& file : options.importFiles) {
    LOCUTION_ASSIGN_OR_RETURN(Store::Merged merged, store->importFrom(file));
    report("imported", file, merged);
  }
  for (const std::string& place : options.mergeFiles) {
    LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<Store> other, Store::open(place, Store::Open::Read));
    LOCUTION_ASSIGN_OR_RETURN(Store::Merged merged, store->merge(*other));
    report("merged", other->place(), merged);
  }
  if (!options.exportFile.empty()) {
    LOCUTION_RETURN_IF_ERROR(store->exportTo(options.exportFile));
    LOCUTION_ASSIGN_OR_RETURN(int64_t count, store->count({.stale = records::Filter::Stale::Include}));
    std::printf("exported %s: %" PRId64 " records\n", options.exportFile.c_str(), count);
  }
  if (options.again < 0) return Status::error("--again: at least 1");
  if (options.again > 0) {
    const Interrupts interrupts;
    return again(*store, options);
  }
  if (changes || !options.exportFile.empty()) return Status::ok();
  return summary(*store, options.verbose);
}

}  // namespace locution::tools

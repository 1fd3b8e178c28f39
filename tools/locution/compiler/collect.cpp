// `locution collect`: measures plans of a corpus of workloads, for the records.
#include "tune/collect.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "driver/scheduling.h"
#include "long_run.h"
#include "reproducer.h"
#include "support/hash.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

namespace {

// A name that no other worker has, whatever machine shares the database.
std::string workerName() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + std::to_string(getpid()) + "/" +
         std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
}

class Collection {
 public:
  explicit Collection(const Options& options) : options_(options) {}

  Status run() {
    if (options_.plans < 1) return Status::error("--plans: at least 1");
    if (options_.records.empty() && !options_.list)
      return Status::error("want --records FILE or postgresql://... to keep what is measured, or --list");
    LOCUTION_ASSIGN_OR_RETURN(std::vector<VirtualTarget> targets, virtualTargets(options_));
    if (!options_.list) {
      LOCUTION_ASSIGN_OR_RETURN(store_, records::Store::open(options_.records));
    }
    for (const VirtualTarget& t : targets)
      if (!Interrupts::met()) LOCUTION_RETURN_IF_ERROR(collectOn(t));
    return Status::ok();
  }

 private:
  Status collectOn(const VirtualTarget& target) {
    Options own = options_;
    own.cpu = target.cpu;
    own.threads = target.threads;
    own.records.clear();
    LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(own));
    LOCUTION_ASSIGN_OR_RETURN(TargetSpec spec, driver::resolveTarget(compile));
    if (!options_.list) LOCUTION_RETURN_IF_ERROR(driver::requireThisMachine(spec));
    if (isTerminal_) std::fprintf(stderr, "\r\033[Kreading the corpus for %s", spec.cpu.c_str());
    LOCUTION_ASSIGN_OR_RETURN(const SelectedCorpus corpus, selectedCorpus(own, compile));
    if (isTerminal_) std::fprintf(stderr, "\r\033[K");
    std::vector<tune::CollectWorkload> chosen;
    for (const driver::Selected& s : corpus.selected) {
      chosen.push_back({&s.workload->workload, *s.workload->models.begin()});
      if (options_.list) print(*s.workload, s.groups, spec);
    }
    if (options_.list) return Status::ok();
    const std::unique_ptr<codegen::KernelCompiler> compiler = targets::cpu::makeKernelCompiler(spec);
    return measure(chosen, *compiler);
  }

  static void print(const driver::CorpusWorkload& w, const std::vector<std::string>& groups, const TargetSpec& spec) {
    auto joined = [](const auto& words) {
      std::string out;
      for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
      return out.empty() ? std::string("-") : out;
    };
    std::printf("%s\t%s\t%d\t%.4g\t%s\t%s\t%s\t%s\n", w.workload.id().c_str(), spec.cpu.c_str(), spec.threads,
                driver::points(w.workload.kernel), joined(w.models).c_str(), joined(w.ops).c_str(),
                joined(groups).c_str(), keyOf(w.workload.text).c_str());
  }

  Status measure(const std::vector<tune::CollectWorkload>& workloads, const codegen::KernelCompiler& compiler) {
    tune::CollectOptions collect;
    collect.plans = options_.plans;
    collect.seed = options_.seed;
    collect.jobs = options_.jobs;
    collect.worker = workerName();
    collect.compiler = driver::compilerVersion();
    collect.isStopped = Interrupts::met;
    const TargetSpec& spec = compiler.target();
    collect.progress = [&](const tune::CollectProgress& p) {
      constexpr double kEvery = 30, kEveryOnTerminal = 0.2;
      if (p.seconds - last_ < (isTerminal_ ? kEveryOnTerminal : kEvery)) return;
      last_ = p.seconds;
      const double rate = static_cast<double>(p.measured) / std::max(1e-9, p.seconds);
      const double left =
          p.done > 0 ? p.seconds * static_cast<double>(p.tasks - p.done) / static_cast<double>(p.done) : 0;
      std::fprintf(stderr, "%s%s, %d threads: %lld of %lld workloads, %lld plans, %.1f/s, %s left%s",
                   isTerminal_ ? "\r\033[K" : "", spec.cpu.c_str(), spec.threads, static_cast<long long>(p.done),
                   static_cast<long long>(p.tasks), static_cast<long long>(p.measured), rate, duration(left).c_str(),
                   isTerminal_ ? "" : "\n");
    };
    last_ = 0;
    LOCUTION_ASSIGN_OR_RETURN(tune::CollectResult result, tune::collect(workloads, compiler, *store_, collect));
    if (isTerminal_) std::fprintf(stderr, "\r\033[K");
    std::printf("%s, %d threads: %lld plans of %lld workloads measured in %s, %.1f a second", spec.cpu.c_str(),
                spec.threads, static_cast<long long>(result.measured), static_cast<long long>(result.workloads),
                duration(result.seconds).c_str(),
                static_cast<double>(result.measured) / std::max(1e-9, result.seconds));
    if (result.recalled > 0) std::printf("; %lld were stored", static_cast<long long>(result.recalled));
    if (result.elsewhere > 0)
      std::printf("; %lld workloads are done by others or before", static_cast<long long>(result.elsewhere));
    if (result.failed > 0) std::printf("; %lld plans failed", static_cast<long long>(result.failed));
    for (const auto& [reason, count] : result.left)
      std::printf("; %lld left out: %s", static_cast<long long>(count), reason.c_str());
    std::printf("%s\n", result.isInterrupted ? "; interrupted: the same command goes on" : "");
    std::fflush(stdout);
    return Status::ok();
  }

  const Options& options_;
  const bool isTerminal_ = isatty(STDERR_FILENO) != 0;
  double last_ = 0;
  std::unique_ptr<records::Store> store_;
};

}  // namespace

Status collectCommand(const Options& options) {
  armReproducer(options);
  const Interrupts interrupts;
  return Collection(options).run();
}

}  // namespace locution::tools

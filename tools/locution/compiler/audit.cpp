// `locution audit`: the space of plans put to the test.
#include "tune/audit.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "driver/corpus.h"
#include "reproducer.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

namespace {

struct Target {
  TargetSpec spec;
  std::unique_ptr<codegen::KernelCompiler> compiler;  ///< null: its code can't run here
};

// SSE4.2, AVX2, AVX-512 and this machine, for one and for two threads.
Result<std::vector<Target>> targets() {
  std::vector<Target> out;
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec host, targets::cpu::makeTarget("", "native", 1));
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"})
    for (int threads : {1, 2}) {
      LOCUTION_ASSIGN_OR_RETURN(TargetSpec spec, targets::cpu::makeTarget("", cpu, threads));
      const bool runs = spec.vectorBytes <= host.vectorBytes && (!spec.hasMask || host.hasMask);
      out.push_back({spec, runs ? targets::cpu::makeKernelCompiler(spec) : nullptr});
    }
  return out;
}

}  // namespace

Status auditCommand(const Options& options) {
  armReproducer(options);
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  driver::CorpusOptions corpus{options.places, options.drawn, options.seed, options.mostPoints};
  LOCUTION_ASSIGN_OR_RETURN(std::vector<driver::CorpusWorkload> kernels, driver::readCorpus(corpus, compile));
  std::vector<space::Workload> workloads;
  for (driver::CorpusWorkload& w : kernels) workloads.push_back(std::move(w.workload));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Target> made, targets());
  std::vector<tune::AuditTarget> specs;
  for (const Target& t : made) specs.push_back({t.spec, t.compiler.get()});
  tune::AuditOptions audit;
  audit.sentences = options.sentences;
  audit.compiled = options.compiledPlans;
  audit.measured = options.measuredPlans;
  audit.seed = options.seed;
  const bool isTerminal = isatty(STDERR_FILENO) != 0;
  if (isTerminal) audit.progress = [](const std::string& what) { std::fprintf(stderr, "\r\033[K%s", what.c_str()); };
  LOCUTION_ASSIGN_OR_RETURN(tune::AuditReport report, tune::audit(workloads, specs, audit));
  if (isTerminal) std::fputs("\r\033[K", stderr);
  std::fputs(tune::print(report).c_str(), stdout);
  if (report.failures.empty()) return Status::ok();
  return Status::error("the audit failed");
}

}  // namespace locution::tools

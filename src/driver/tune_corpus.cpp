#include "driver/tune_corpus.h"

#include "driver/compiler.h"
#include "driver/scheduling.h"
#include "targets/cpu/cpu_target.h"

namespace locution::driver {

Result<tune::TuneResult> tuneCorpus(const std::vector<Selected>& workloads, const CompileOptions& options,
                                    tune::TuneOptions tune) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, resolveTarget(options));
  LOCUTION_RETURN_IF_ERROR(requireThisMachine(target));
  if (workloads.empty()) return Status::error("there are no kernels that could be scheduled in another way");
  std::unique_ptr<records::Store> store;
  if (!options.records.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(store, records::Store::open(options.records));
  }
  std::vector<tune::TuneKernel> kernels;
  for (const Selected& s : workloads) {
    tune::TuneKernel& k = kernels.emplace_back(s.workload->workload.kernel, s.workload->op, s.workload->count);
    k.computation.name = s.workload->name;
  }
  tune.store = store.get();
  tune.compiler = compilerVersion();
  return tune::tuneKernels(kernels, *targets::cpu::makeKernelCompiler(target), options.jobs, tune);
}

}  // namespace locution::driver

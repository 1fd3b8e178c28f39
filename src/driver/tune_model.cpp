#include "driver/tune_model.h"

#include <filesystem>

#include "driver/compiler.h"
#include "driver/prepare.h"
#include "driver/scheduling.h"

namespace locution::driver {

Result<tune::TuneResult> tuneModel(const std::string& path, const CompileOptions& options, tune::TuneOptions tune) {
  CompileOptions own = options;
  own.scheduler = "analytic";
  own.records.clear();
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, resolveTarget(own));
  LOCUTION_RETURN_IF_ERROR(requireThisMachine(target));
  // Before the work, not after it.
  std::unique_ptr<records::Store> store;
  if (!options.records.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(store, records::Store::open(options.records));
  }
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(own));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  Status s = session->optimise(graph);
  if (!s.isOk()) return s.withContext(path);
  auto lowered = session->lower(graph);
  if (!lowered.isOk()) return lowered.status().withContext(path);
  const std::vector<tune::TuneKernel> kernels = kernelsToTune(*lowered);
  if (kernels.empty()) return Status::error(path + ": has no kernels that could be scheduled in another way");
  // Their contents don't matter for times; they are made up.
  *lowered = Lowered();
  graph = graph::Graph();
  tune.store = store.get();
  tune.model = std::filesystem::path(path).stem().string();
  tune.compiler = compilerVersion();
  return tune::tuneKernels(kernels, session->compiler(), options.jobs, tune);
}

}  // namespace locution::driver

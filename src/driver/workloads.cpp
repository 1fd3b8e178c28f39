#include "driver/workloads.h"

#include <map>

#include "driver/lower.h"
#include "driver/prepare.h"

namespace locution::driver {

std::vector<ModelWorkload> distinctWorkloads(const std::vector<const loop::Computation*>& kernels) {
  std::vector<ModelWorkload> out;
  std::map<std::string, size_t> found;
  for (const loop::Computation* k : kernels) {
    space::Workload w = space::canonical(*k);
    auto [it, isNew] = found.emplace(w.text, out.size());
    if (isNew) out.push_back({std::move(w), 0});
    ++out[it->second].count;
  }
  return out;
}

Result<std::vector<ModelWorkload>> modelWorkloads(const std::string& path, const CompileOptions& options) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  Status s = session->optimise(graph);
  if (!s.isOk()) return s.withContext(path);
  auto lowered = session->lower(graph);
  if (!lowered.isOk()) return lowered.status().withContext(path);
  std::vector<const loop::Computation*> kernels;
  for (const Step& step : lowered->steps)
    if (const auto* k = std::get_if<KernelStep>(&step); k && !k->computation.raw) kernels.push_back(&k->computation);
  return distinctWorkloads(kernels);
}

}  // namespace locution::driver

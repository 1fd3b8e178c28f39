#include "driver/provenance.h"

#include <map>
#include <set>

#include "loop/passes.h"

namespace locution::driver {

namespace {

bool reads(const loop::Stage& reader, const loop::Buffer* buffer) {
  return loop::readsBuffer(reader.body, buffer) || (reader.epilogue && loop::readsBuffer(reader.epilogue, buffer));
}

}  // namespace

std::vector<std::vector<std::string>> opsOfKernels(const std::vector<NodeStages>& nodes,
                                                   const std::vector<loop::Computation>& kernels) {
  std::vector<std::vector<std::string>> out(kernels.size());
  std::map<const loop::Buffer*, std::set<size_t>> stored;
  for (size_t k = 0; k < kernels.size(); ++k)
    for (const loop::Stage& s : kernels[k].stages) stored[s.out.get()].insert(k);
  std::vector<const loop::Stage*> stages;
  std::vector<size_t> nodeOf;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const loop::Stage& s : nodes[n].stages) {
      stages.push_back(&s);
      nodeOf.push_back(n);
    }
  // Readers come after what they read.
  std::vector<std::set<size_t>> within(stages.size()), kernelsOf(nodes.size());
  for (size_t i = stages.size(); i-- > 0;) {
    auto it = stored.find(stages[i]->out.get());
    if (it != stored.end()) {
      within[i] = it->second;
    } else {
      for (size_t j = i + 1; j < stages.size(); ++j)
        if (reads(*stages[j], stages[i]->out.get())) within[i].insert(within[j].begin(), within[j].end());
    }
    kernelsOf[nodeOf[i]].insert(within[i].begin(), within[i].end());
  }
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t k : kernelsOf[n]) out[k].push_back(nodes[n].op);
  return out;
}

}  // namespace locution::driver

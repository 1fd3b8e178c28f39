// Search over one kernel's space: what to measure next, given what was measured. A search proposes walks of the space, so whatever it
// proposes is legal, and never one plan twice, be it reached by different answers. Equal seeds and equal observations give equal proposals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/search/cost_model.h"
#include "schedule/plan.h"
#include "space/space.h"

namespace locution::generator {

struct Proposal {
  space::Choices choices;
  schedule::Plan plan;
};

class Search {
 public:
  virtual ~Search() = default;
  /// At most `count` plans that were neither proposed nor observed; fewer when nothing else is found: the space is small.
  virtual std::vector<Proposal> propose(size_t count) = 0;
  /// What came out: the time over the incumbent's; null: it ran wrong, crashed, or not at all. Also of what another search has measured.
  virtual void observe(const space::Choices& choices, std::optional<double> ratio) = 0;
};

/// Uniform among the legal answers at each question.
std::unique_ptr<Search> makeRandomSearch(const space::Space& space, uint64_t seed);
/// Evolution of a population of walks under a cost model that learns from the observations, in the manner of Ansor (Zheng et al., OSDI 2020)
/// and MetaSchedule (Shao et al., NeurIPS 2022). `model` is shared by the kernels of a model, and learns from all of them.
std::unique_ptr<Search> makeEvolutionarySearch(const space::Space& space, uint64_t seed,
                                               std::shared_ptr<CostModel> model);

/// By name: searches.inc. Errors: no such search, or what it needs is not installed.
Result<std::unique_ptr<Search>> makeSearch(std::string_view name, const space::Space& space, uint64_t seed,
                                           std::shared_ptr<CostModel> model);
std::vector<std::string> searchNames();

}  // namespace locution::generator

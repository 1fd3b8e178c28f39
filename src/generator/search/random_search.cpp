#include "generator/search/replay.h"
#include "generator/search/search.h"
#include "generator/search/seen.h"
#include "support/strings.h"

namespace locution::generator {

namespace {

// Draws in a row that give nothing new: the space is taken for exhausted.
constexpr int kPatience = 200;

class RandomSearch : public Search {
 public:
  RandomSearch(const space::Space& space, uint64_t seed) : space_(space), random_(seed) {}

  std::vector<Proposal> propose(size_t count) override {
    std::vector<Proposal> out;
    for (int draws = 0; out.size() < count && draws < kPatience; ++draws) {
      const space::Walk walk = randomWalk(space_, random_);
      schedule::Plan plan = walk.plan();
      if (!seen_.add(plan)) continue;
      out.push_back({walk.choices(), std::move(plan)});
      draws = 0;
    }
    return out;
  }

  void observe(const space::Choices& choices, std::optional<double>) override {
    if (auto plan = space::planOf(space_, choices)) seen_.add(*plan);
  }

 private:
  const space::Space& space_;
  Random random_;
  Seen seen_;
};

}  // namespace

std::unique_ptr<Search> makeRandomSearch(const space::Space& space, uint64_t seed) {
  return std::make_unique<RandomSearch>(space, seed);
}

std::vector<std::string> searchNames() {
  return {
#define SEARCH(name, needsModel, help) name,
#include "generator/search/searches.inc"
#undef SEARCH
  };
}

Result<std::unique_ptr<Search>> makeSearch(std::string_view name, const space::Space& space, uint64_t seed,
                                           std::shared_ptr<CostModel> model) {
  if (name == "random") return makeRandomSearch(space, seed);
  if (name == "evolutionary") return makeEvolutionarySearch(space, seed, std::move(model));
  return Status::error("there is no search '" + std::string(name) + "' (there are: " + join(searchNames(), ", ") + ")");
}

}  // namespace locution::generator

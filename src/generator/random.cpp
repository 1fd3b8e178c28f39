#include "generator/random.h"

#include <random>

#include "loop/passes.h"
#include "support/hash.h"

namespace locution::generator {

namespace {

class RandomWalks : public Scheduler {
 public:
  explicit RandomWalks(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "random"; }
  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    const space::Space space(kernel, target);
    return randomWalk(space, hashText(std::to_string(seed_), loop::hash(kernel))).plan();
  }

 private:
  uint64_t seed_;
};

}  // namespace

space::Walk randomWalk(const space::Space& space, uint64_t seed) {
  std::mt19937_64 rng(seed);
  return space::walkThrough(space, [&](const space::Walk& walk) { return walk.legal()[rng() % walk.legal().size()]; });
}

std::unique_ptr<Scheduler> makeRandomWalks(uint64_t seed) { return std::make_unique<RandomWalks>(seed); }

}  // namespace locution::generator

// The analytic scheduler: each kind of stage has rules that answer every question from the machine profile (vector width, registers,
// cache sizes) and a model of cycles and traffic, without measuring.
#include "generator/rules.h"
#include "generator/scheduler.h"

namespace locution::generator {

using schedule::Plan;
using space::Decision;

namespace {

Wishes kernelWishes(const space::Space& space) {
  Wishes wishes;
  wishes.set(Decision::Share, space.mostShared());
  wishes.set(Decision::SharedParallel, space.mostShared());
  if (space.isChain()) wishes.set(Decision::Strips, chooseStrips(space));
  if (space.isRolled()) wishes.set(Decision::RowTasks, chooseRowTasks(space));
  return wishes;
}

Wishes stageWishes(const space::Space& space, const space::StageChoices& stage) {
  if (space.isChain()) {
    if (auto wishes = chainWishes(space, stage)) return *wishes;
  } else {
    if (auto wishes = winogradWishes(stage)) return *wishes;
    if (auto wishes = contractionWishes(stage)) return *wishes;
  }
  if (auto wishes = streamWishes(stage)) return *wishes;
  // A scan: every row on its own.
  Wishes wishes;
  wishes.set(Decision::Parallel, static_cast<int64_t>(stage.scope().own.size()));
  return wishes;
}

class Analytic : public Scheduler {
 public:
  std::string_view name() const override { return "analytic"; }
  Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    if (kernel.raw) return {};
    return analyticWalk(space::Space(kernel, target)).plan();
  }
  std::optional<space::Choices> choices(const space::Space& space) const override {
    return analyticWalk(space).choices();
  }
};

}  // namespace

space::Walk analyticWalk(const space::Space& space,
                         const std::function<int64_t(const space::Walk& walk, int64_t wish)>& amend) {
  Wishes wishes = kernelWishes(space);
  int32_t stage = -1;
  return space::walkThrough(space, [&](const space::Walk& walk) {
    if (walk.stage() != stage) {
      stage = walk.stage();
      wishes = stageWishes(space, walk.current());
    }
    const int64_t wish = wishes.answer(walk);
    return amend ? amend(walk, wish) : wish;
  });
}

std::unique_ptr<Scheduler> makeAnalytic() { return std::make_unique<Analytic>(); }

}  // namespace locution::generator

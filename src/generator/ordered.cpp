// The analytic rules, but every floating-point sum adds its terms one after the other: lanes never lie along it, steps of a pass never
// accumulate apart. Where the target contracts no products either, equal inputs give equal bits on every instruction set.
#include "generator/rules.h"
#include "generator/scheduler.h"

namespace locution::generator {

namespace {

using space::Decision;

/// The order of its terms shows in the result.
bool isRounded(const space::StageChoices& stage) {
  const loop::Stage& s = *stage.facts().stage;
  const bool isSum = s.combiner == loop::Combiner::Sum || s.combiner == loop::Combiner::Product;
  return isSum && isFloat(s.body->type.dtype);
}

int64_t atMost(const std::vector<int64_t>& legal, int64_t wish) {
  int64_t best = legal.front();
  for (int64_t value : legal)
    if (value <= wish) best = value;
  return best;
}

/// `wish`: of the analytic rules.
int64_t inOrder(const space::Walk& walk, int64_t wish) {
  if (walk.stage() < 0) return wish;
  const space::StageChoices& stage = walk.current();
  if (walk.decision() == Decision::Algorithm || !isRounded(stage))
    return walk.decision() == Decision::Algorithm ? 0 : wish;
  constexpr int64_t kRows = 8;  // sums that are under way at once
  const bool isScalar = stage.get(Decision::Vector, 0) == space::kNoAxis;
  switch (walk.decision()) {
    case Decision::Vector:
      return wish >= space::kReduceAxis ? space::kNoAxis : wish;
    case Decision::Apart:
      return 0;
    case Decision::RowAxis:
      return isScalar ? walk.legal().back() : wish;
    case Decision::Rows:
      return isScalar ? atMost(walk.legal(), kRows) : wish;
    default:
      return wish;
  }
}

class Ordered : public Scheduler {
 public:
  std::string_view name() const override { return "ordered"; }
  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    if (kernel.raw) return {};
    return analyticWalk(space::Space(kernel, target), inOrder).plan();
  }
  std::optional<space::Choices> choices(const space::Space& space) const override {
    return analyticWalk(space, inOrder).choices();
  }
};

}  // namespace

std::unique_ptr<Scheduler> makeOrdered() { return std::make_unique<Ordered>(); }

}  // namespace locution::generator

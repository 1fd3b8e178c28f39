// The analytic scheduler: each kind of stage has rules that pick every decision from the machine profile (vector width, registers,
// cache sizes) and a model of cycles and traffic, without measuring. What no rule knows gets the baseline's.
#include "generator/plan_writer.h"
#include "generator/rules.h"
#include "generator/scheduler.h"
#include "schedule/stages.h"

namespace locution::generator {

using loop::Computation;
using schedule::Plan;
using schedule::Primitive;
using schedule::Tail;

namespace {

class Analytic : public Scheduler {
 public:
  std::string_view name() const override { return "analytic"; }
  Plan propose(const Computation& kernel, const TargetSpec& target) const override {
    Plan plan;
    if (kernel.raw || planChain(kernel, target, &plan)) return plan;
    auto shared = static_cast<size_t>(schedule::sharedAxes(kernel));
    if (shared > 0) {
      plan.steps.push_back({Primitive::Share, 0, {}, static_cast<int64_t>(shared), Tail::Peel});
      std::vector<std::string> names;
      for (size_t i = 0; i < shared; ++i) names.push_back(axisName(i));
      PlanWriter(&plan, -1, names).parallel(shared);
    }
    for (size_t i = 0; i < kernel.stages.size(); ++i) {
      StageQuestion question{kernel, i, shared, target};
      if (planWinograd(question, &plan)) return plan;
      if (!planContraction(question, &plan) && !planStream(question, &plan)) planStage(question, &plan);
    }
    return plan;
  }
};

}  // namespace

std::unique_ptr<Scheduler> makeAnalytic() { return std::make_unique<Analytic>(); }

}  // namespace locution::generator

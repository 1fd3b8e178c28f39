// The analytic scheduler: each kind of stage has rules that pick every decision from the machine profile (vector width, registers,
// cache sizes) and a model of cycles and traffic, without measuring. What no rule knows gets the baseline's.
#include "generator/rules.h"
#include "generator/scheduler.h"

namespace locution::generator {

using loop::Computation;
using schedule::Plan;

namespace {

class Analytic : public Scheduler {
 public:
  std::string_view name() const override { return "analytic"; }
  Plan propose(const Computation& kernel, const TargetSpec& target) const override {
    Plan plan;
    if (kernel.raw || planChain(kernel, target, &plan)) return plan;
    const size_t shared = planShared(kernel, &plan);
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

#include "generator/scheduler.h"

#include "support/strings.h"

namespace locution::generator {

std::vector<std::string> schedulerNames() {
  return {
#define SCHEDULER(name, maker, help) name,
#include "generator/schedulers.inc"
#undef SCHEDULER
  };
}

Result<std::unique_ptr<Scheduler>> makeScheduler(const std::string& spec) {
#define SCHEDULER(name, maker, help) \
  if (spec == name) return maker();
#include "generator/schedulers.inc"
#undef SCHEDULER
  return Status::error("unknown scheduler '" + spec + "' (there are: " + join(schedulerNames(), ", ") + ")");
}

}  // namespace locution::generator

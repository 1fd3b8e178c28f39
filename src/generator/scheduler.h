// Who decides how a kernel is scheduled: one interface; the ways to write plans are schedulers.inc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "schedule/plan.h"
#include "space/space.h"
#include "support/status.h"

namespace locution::generator {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::string_view name() const = 0;
  /// A legal plan for the kernel on the target. Deterministic; safe to call from several threads.
  virtual schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const = 0;
  /// The decisions behind that plan; nothing where the scheduler's plans are not of the kernel's space.
  virtual std::optional<space::Choices> choices(const space::Space&) const { return std::nullopt; }
  /// For whoever reads the sentence of those decisions: how they came about, in lines; empty where there is nothing to tell.
  virtual std::string explain(const space::Space&) const { return {}; }
  /// Asked before `propose`. Errors: what a user wrote about this kernel is no plan of it.
  virtual Status check(const loop::Computation&, const TargetSpec&) const { return Status::ok(); }
};

/// Sensible and fixed: vectorised innermost, a register tile for contractions, the outer loops parallel.
std::unique_ptr<Scheduler> makeBaseline();
/// Every decision from the machine profile and a model of cycles and traffic (analytic.cpp).
std::unique_ptr<Scheduler> makeAnalytic();
/// The same with every floating-point sum in the order of its terms (ordered.cpp).
std::unique_ptr<Scheduler> makeOrdered();

/// By its name on the command line ("analytic"); the message lists the names there are.
Result<std::unique_ptr<Scheduler>> makeScheduler(const std::string& spec);
std::vector<std::string> schedulerNames();

}  // namespace locution::generator

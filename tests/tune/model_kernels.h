// A model's kernels as measuring sees them: each different one once.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/kernels.h"
#include "driver/prepare.h"

namespace locution::tune {

struct ModelKernels {
  std::shared_ptr<driver::Session> session;
  struct Kernel {
    loop::Computation computation;
    int count = 0;  ///< in the model
  };
  std::vector<Kernel> kernels;
  std::map<std::string, size_t> byName;  ///< of all of the model's, into `kernels`
};

inline Result<ModelKernels> kernelsOf(const std::string& path, const driver::CompileOptions& options) {
  ModelKernels out;
  LOCUTION_ASSIGN_OR_RETURN(out.session, driver::Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, out.session->load(path));
  LOCUTION_RETURN_IF_ERROR(out.session->optimise(graph));
  LOCUTION_ASSIGN_OR_RETURN(driver::Lowered lowered, out.session->lower(graph));
  std::map<uint64_t, size_t> byKey;
  for (const driver::Step& step : lowered.steps) {
    const auto* k = std::get_if<driver::KernelStep>(&step);
    if (!k || k->computation.raw) continue;
    auto [it, added] = byKey.emplace(driver::kernelKey(k->computation), out.kernels.size());
    if (added) out.kernels.push_back({k->computation, 0});
    ++out.kernels[it->second].count;
    out.byName[k->computation.name] = it->second;
  }
  return out;
}

/// The plan with one split at a time made larger or smaller, vectors apart; not all of them are legal.
inline std::vector<schedule::Plan> variationsOf(const schedule::Plan& plan) {
  std::vector<schedule::Plan> out;
  auto isVector = [&](const std::string& loop) {
    return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const schedule::Step& s) {
      return s.primitive == schedule::Primitive::Vectorise && s.loops == std::vector<std::string>{loop};
    });
  };
  for (int round = 0; round < 6; ++round)
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const schedule::Step& step = plan.steps[i];
      if (step.primitive != schedule::Primitive::Split || isVector(step.loops[0] + ".i")) continue;
      const int64_t f = step.factor, least = f % 8 == 0 ? 8 : 1;
      const int64_t other = std::vector<int64_t>{
          f - least, f + least, f / 2, f * 2, f + 2 * least, f - 2 * least}[static_cast<size_t>(round)];
      if (other < least || other == f) continue;
      schedule::Plan variation = plan;
      variation.steps[i].factor = other;
      if (std::find(out.begin(), out.end(), variation) == out.end()) out.push_back(std::move(variation));
    }
  return out;
}

}  // namespace locution::tune

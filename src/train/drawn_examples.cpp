#include "train/drawn_examples.h"

#include <cmath>
#include <limits>
#include <thread>

#include "driver/compiler.h"
#include "driver/corpus.h"
#include "generator/rules.h"
#include "support/hash.h"

namespace locution::train {

namespace {

Result<Examples> drawnFor(const DrawnSentences& drawn, size_t index, int64_t mostTokens) {
  const driver::CompileOptions& options = drawn.targets[index];
  LOCUTION_ASSIGN_OR_RETURN(const TargetSpec target, driver::resolveTarget(options));
  driver::CorpusOptions corpus;
  const auto count = static_cast<int64_t>(drawn.targets.size());
  corpus.drawn = (drawn.networks + count - 1 - static_cast<int64_t>(index)) / count;
  corpus.seed = drawn.seed + index;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<driver::CorpusWorkload> workloads, driver::readCorpus(corpus, options));
  Examples out;
  for (const driver::CorpusWorkload& w : workloads) {
    if (drawn.heldOut && !drawn.heldOut->groupsOf(w, target).empty()) continue;
    const space::Space space(w.workload.kernel, target);
    Example e = exampleOf(space, generator::analyticWalk(space).choices());
    if (e.places.empty()) continue;
    if (static_cast<int64_t>(e.tokens.size()) > mostTokens) {
      ++out.tooLong;
      continue;
    }
    e.value = std::numeric_limits<double>::quiet_NaN();
    ExampleGroup group{keyOf(w.workload.text), keyOf(target.str()), "", {}};
    group.examples.push_back(std::move(e));
    out.groups.push_back(std::move(group));
  }
  return out;
}

}  // namespace

Result<Examples> drawnExamples(const DrawnSentences& drawn, int64_t mostTokens) {
  std::vector<std::optional<Result<Examples>>> parts(drawn.targets.size());
  std::vector<std::thread> workers;
  for (size_t i = 0; i < parts.size(); ++i)
    workers.emplace_back([&, i] { parts[i].emplace(drawnFor(drawn, i, mostTokens)); });
  for (std::thread& w : workers) w.join();
  Examples out;
  for (std::optional<Result<Examples>>& part : parts) {
    if (!part->isOk()) return part->status();
    for (ExampleGroup& g : (**part).groups) out.groups.push_back(std::move(g));
    out.tooLong += (**part).tooLong;
  }
  return out;
}

}  // namespace locution::train

// The tuner on a made-up machine, where a plan's time is a function of its text: what it finds, keeps, and takes up again.
#include "tune/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "generator/schedule_check.h"
#include "tune/made_up_timer.h"

namespace locution::tune {
namespace {

using namespace generator::test;  // NOLINT: helpers

struct Tuning {
  TuneResult result;
  std::vector<std::pair<size_t, std::string>> log;  ///< kernel, plan
};

std::vector<TuneKernel> someKernels() {
  return {{matmul(37, 64, 53, "first"), "MatMul", 3}, {matmul(96, 256, 128, "second"), "MatMul", 1}};
}

Tuning tuned(const TuneOptions& options, const std::vector<TuneKernel>& kernels = someKernels(), double fastest = 0.5) {
  const TargetSpec target = wide();
  Tuning run;
  auto make = [&](std::vector<BenchTimer::Kernel> timed) -> std::unique_ptr<PlanTimer> {
    return std::make_unique<MadeUpTimer>(std::move(timed), &run.log, fastest);
  };
  auto result = tuneKernels(kernels, target, make, options);
  EXPECT_TRUE(result.isOk()) << result.status().message();
  if (result.isOk()) run.result = std::move(*result);
  return run;
}

TuneOptions optionsOf(const std::string& search, int64_t trials) {
  TuneOptions o;
  o.search = search;
  o.trials = trials;
  o.compiler = "test";
  return o;
}

// Without the incumbents and without what is measured again at the end.
std::vector<std::pair<size_t, std::string>> trialsOf(const Tuning& run, size_t incumbents) {
  std::vector<std::pair<size_t, std::string>> out;
  std::set<std::pair<size_t, std::string>> seen;
  for (size_t i = incumbents; i < run.log.size(); ++i)
    if (seen.insert(run.log[i]).second) out.push_back(run.log[i]);
  return out;
}

TEST(Tuner, MeasuresIncumbentsFirstAndNoPlanTwice) {
  for (const char* search : {"random", "evolutionary"}) {
    const Tuning run = tuned(optionsOf(search, 96));
    const auto incumbents = generator::makeAnalytic();
    for (size_t k = 0; k < 2; ++k)
      EXPECT_EQ(run.log[k], std::make_pair(k, incumbents->propose(someKernels()[k].computation, wide()).str()));
    EXPECT_EQ(run.result.trials, 96);
    EXPECT_EQ(trialsOf(run, 2).size(), 96u);
    std::set<std::pair<size_t, std::string>> distinct(run.log.begin() + 2, run.log.begin() + 98);
    EXPECT_EQ(distinct.size(), 96u) << search;
    EXPECT_EQ(run.result.kernels[0].trials + run.result.kernels[1].trials, 96);
  }
}

TEST(Tuner, TheBestPlanIsMeasuredAgainAndWins) {
  const Tuning run = tuned(optionsOf("evolutionary", 128));
  for (const TunedKernel& k : run.result.kernels) {
    ASSERT_TRUE(k.plan.has_value());
    EXPECT_TRUE(k.isConfirmed);
    EXPECT_LT(k.after, k.before);
    EXPECT_FALSE(k.sentence.empty());
  }
}

TEST(Tuner, WhereNothingIsFasterTheIncumbentStays) {
  const Tuning run = tuned(optionsOf("evolutionary", 64), someKernels(), 1.0);
  for (const TunedKernel& k : run.result.kernels) {
    EXPECT_FALSE(k.plan.has_value());
    EXPECT_EQ(k.after, k.before);
  }
}

TEST(Tuner, EqualSeedsMeasureTheSame) {
  TuneOptions options = optionsOf("evolutionary", 96);
  options.seed = 5;
  const Tuning a = tuned(options), b = tuned(options);
  EXPECT_EQ(a.log, b.log);
  options.seed = 6;
  EXPECT_NE(tuned(options).log, a.log);
}

TEST(Tuner, TakesUpWhereItWasInterrupted) {
  auto store = emptyStore();
  TuneOptions options = optionsOf("evolutionary", 96);
  options.store = store.get();
  int64_t progress = 0;
  options.progress = [&](const TuneProgress& p) { progress = p.trials; };
  options.isStopped = [&] { return progress >= 40; };
  const Tuning first = tuned(options);
  EXPECT_TRUE(first.result.isInterrupted);
  EXPECT_LT(first.result.trials, 96);
  options.isStopped = {};
  const Tuning second = tuned(options);
  EXPECT_FALSE(second.result.isInterrupted);
  EXPECT_EQ(second.result.resumed, first.result.trials);
  EXPECT_EQ(second.result.trials, 96);
  const auto before = trialsOf(first, 2);
  const std::set<std::pair<size_t, std::string>> known(before.begin(), before.end());
  int64_t fresh = 0;
  for (const auto& t : trialsOf(second, 2)) fresh += known.count(t) == 0 ? 1 : 0;
  EXPECT_EQ(fresh, 96 - first.result.trials);
  // All done: nothing but the incumbents and the finalists is measured.
  const Tuning third = tuned(options);
  EXPECT_EQ(third.result.resumed, 96);
  EXPECT_EQ(third.result.trials, 96);
  for (size_t k = 0; k < 2; ++k) EXPECT_EQ(third.result.kernels[k].plan->str(), second.result.kernels[k].plan->str());
}

TEST(Tuner, RecordsHoldWhatWasMeasured) {
  auto store = emptyStore();
  TuneOptions options = optionsOf("random", 64);
  options.store = store.get();
  options.seed = 9;
  options.model = "net";
  tuned(options);
  records::Filter filter;
  filter.proposer = "random";
  filter.model = "net";
  std::set<std::pair<std::string, std::string>> sentences;
  auto all = store->all(filter);
  ASSERT_TRUE(all.isOk());
  for (const records::Record& r : *all) {
    EXPECT_EQ(r.seed, 9u);
    EXPECT_EQ(r.ratio.has_value(), r.outcome == records::Outcome::Ok);
    sentences.emplace(r.workload, r.sentence);
  }
  EXPECT_EQ(sentences.size(), 64u);
  ASSERT_TRUE(store->verify().isOk());
}

TEST(Tuner, AKernelThatCannotBeMeasuredIsNamed) {
  std::vector<TuneKernel> kernels = someKernels();
  kernels.insert(kernels.begin() + 1, {matmul(12, 32, 16, "broken"), "MatMul", 5});
  const Tuning run = tuned(optionsOf("random", 32), kernels);
  EXPECT_EQ(run.result.kernels[1].problem, "its operands can't be made up");
  EXPECT_TRUE(run.result.kernels[0].problem.empty());
  EXPECT_EQ(run.result.trials, 32);
}

TEST(Tuner, AnUnknownSearchIsAnError) {
  auto make = [&](std::vector<BenchTimer::Kernel>) { return std::unique_ptr<PlanTimer>(); };
  auto result = tuneKernels(someKernels(), wide(), make, optionsOf("genetic", 8));
  ASSERT_FALSE(result.isOk());
  EXPECT_EQ(result.status().message(), "there is no search 'genetic' (there are: random, evolutionary)");
}

}  // namespace
}  // namespace locution::tune

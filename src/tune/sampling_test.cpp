// Sampling on a made-up machine: what is proposed and drawn is measured once, kept, and taken up again; finalists are compared.
#include "tune/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "generator/random.h"
#include "generator/schedule_check.h"
#include "language/sentence.h"
#include "tune/made_up_timer.h"

namespace locution::tune {
namespace {

using namespace generator::test;  // NOLINT: helpers

using Log = std::vector<std::pair<size_t, std::string>>;

struct Fixture {
  Fixture() {
    for (const loop::Computation& c : {matmul(37, 64, 53, "first"), matmul(96, 256, 128, "second")})
      canonical.push_back(space::canonical(c));
    for (const space::Workload& w : canonical) workloads.push_back({&w, "net"});
    options.proposer = "model";
    options.compiler = "test";
  }
  std::unique_ptr<Sampling> open(double fastest = 0.5) {
    auto make = [&](std::vector<BenchTimer::Kernel> timed) -> std::unique_ptr<PlanTimer> {
      return std::make_unique<MadeUpTimer>(std::move(timed), &log, fastest);
    };
    auto sampling = Sampling::open(workloads, target, make, *store, options);
    EXPECT_TRUE(sampling.isOk()) << sampling.status().message();
    return std::move(*sampling);
  }
  SamplingResult run(Sampling& sampling) {
    auto result = sampling.run([&](const space::Space& space, uint64_t seed) -> Result<std::vector<space::Choices>> {
      // As a model that says the same first every time.
      std::vector<space::Choices> out = {generator::randomWalk(space, 1).choices()};
      for (uint64_t i = 0; i < 40; ++i) out.push_back(generator::randomWalk(space, seed ^ (i << 8)).choices());
      asked.push_back(out);
      return out;
    });
    EXPECT_TRUE(result.isOk()) << result.status().message();
    return result.isOk() ? *result : SamplingResult();
  }

  std::vector<space::Workload> canonical;
  std::vector<SamplingWorkload> workloads;
  const TargetSpec target = wide();
  std::unique_ptr<records::Store> store = emptyStore();
  SamplingOptions options;
  Log log;
  std::vector<std::vector<space::Choices>> asked;
};

TEST(Sampling, MeasuresWhatIsProposedAndSomeDrawn) {
  Fixture f;
  f.options.measurements = 60;
  auto sampling = f.open();
  const SamplingResult result = f.run(*sampling);
  EXPECT_EQ(result.measured, 60);
  EXPECT_EQ(result.workloads, 2);
  EXPECT_EQ(f.log.size(), 62u);  // and two analytic ones
  EXPECT_EQ(std::set(f.log.begin(), f.log.end()).size(), 62u);
  for (size_t i = 0; i < 2; ++i) {
    const space::Space& space = sampling->space(i);
    // The likeliest is measured, of the others the first sixteen of twenty.
    const std::string first = space::planOf(space, f.asked[i][0])->str();
    EXPECT_EQ(std::count(f.log.begin(), f.log.end(), std::pair(i, first)), 1);
    std::set<std::string> proposed;
    for (const space::Choices& c : f.asked[i]) proposed.insert(space::planOf(space, c)->str());
    const size_t begin = 1 + i * 21;
    int64_t count = 0;
    for (size_t k = begin; k < begin + 20; ++k) count += static_cast<int64_t>(proposed.count(f.log[k].second));
    EXPECT_EQ(count, 16);
    const auto best = sampling->best(i, 3);
    ASSERT_EQ(best.size(), 3u);
    auto compared = sampling->compare(i, best, 3);
    ASSERT_TRUE(compared.isOk());
    for (const Compared& c : *compared) EXPECT_EQ(c.choosing, c.telling);
    EXPECT_LT((*compared)[0].choosing, 1);
    EXPECT_LE((*compared)[0].choosing, (*compared)[1].choosing);
    EXPECT_LE((*compared)[1].choosing, (*compared)[2].choosing);
  }
}

TEST(Sampling, TakesUpWhatIsStored) {
  Fixture f;
  f.options.measurements = 60;
  int64_t measured = 0;
  f.options.progress = [&](const SamplingProgress& p) { measured = p.measured; };
  f.options.isStopped = [&] { return measured >= 20; };
  const SamplingResult first = f.run(*f.open());
  EXPECT_TRUE(first.isInterrupted);
  EXPECT_EQ(first.measured, 20);
  f.options.isStopped = {};
  f.log.clear();
  auto again = f.open();
  const SamplingResult second = f.run(*again);
  EXPECT_FALSE(second.isInterrupted);
  EXPECT_EQ(second.recalled, 20);
  EXPECT_EQ(second.measured, 40);
  EXPECT_EQ(second.workloads, 2);
  // Another model's plans are known, but are none of its own.
  f.options.proposer = "another";
  f.log.clear();
  const SamplingResult third = f.run(*f.open());
  EXPECT_EQ(third.recalled, 60);
  EXPECT_EQ(third.measured, 60);
  EXPECT_EQ(std::set(f.log.begin(), f.log.end()).size(), 62u);
}

TEST(Sampling, LeavesOutWhatCannotBeMeasured) {
  Fixture f;
  f.canonical[0].kernel.name = "broken";
  f.options.measurements = 10;
  auto sampling = f.open();
  const SamplingResult result = f.run(*sampling);
  EXPECT_EQ(result.unmeasurable, 1);
  EXPECT_EQ(result.workloads, 1);
  EXPECT_EQ(result.measured, 10);
  const size_t broken = sampling->space(0).kernel().name == "broken" ? 0 : 1;
  EXPECT_TRUE(sampling->best(broken, 5).empty());
  auto compared = sampling->compare(broken, {generator::randomWalk(sampling->space(broken), 3).choices()}, 2);
  ASSERT_TRUE(compared.isOk());
  EXPECT_TRUE(std::isinf((*compared)[0].telling));
}

TEST(Sampling, EndsWhenASmallSpaceIsKnown) {
  Fixture f;
  f.canonical = {space::canonical(matmul(2, 2, 2, "tiny"))};
  f.workloads = {{&f.canonical[0], "net"}};
  f.options.measurements = 1 << 20;
  const SamplingResult result = f.run(*f.open());
  EXPECT_LT(result.measured, 1 << 20);
  EXPECT_EQ(f.log.size(), static_cast<size_t>(result.measured) + 1);
}

}  // namespace
}  // namespace locution::tune

// Searches against a made-up machine: time is a function of the answers, so what a good search finds is known.
#include "generator/search/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "generator/schedule_check.h"
#include "generator/search/features.h"
#include "generator/search/replay.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers
using space::Choices;
using space::Decision;

Computation twice(int64_t n) {
  Computation c;
  c.name = "twice";
  auto a = makeBuffer("a", {DType::F32, 1}, {n});
  auto out = makeBuffer("out", {DType::F32, 1}, {n});
  c.inputs = {a};
  Stage s;
  s.out = out;
  s.axes = axesOf({n}, "i");
  s.body = load(a, {s.axes[0].var}) + load(a, {s.axes[0].var});
  c.stages = {s};
  c.outputs = {out};
  return c;
}

// Seconds over those of the best plan there could be: wide vectors, a tile of twelve, few parts, packed, shared out to threads.
double madeUpTime(const space::Space& space, const Choices& choices) {
  space::Walk walk(space);
  for (const space::Choice& c : choices) walk.choose(c.value);
  const space::StageChoices& s = walk.stages()[0];
  auto off = [](double value, double best) { return std::abs(std::log2(value / best)); };
  const auto lanes = static_cast<double>(s.get(Decision::Lanes, 1)),
             rows = static_cast<double>(s.get(Decision::Rows, 1)),
             vectors = static_cast<double>(s.get(Decision::Vectors, 1));
  double t = 0.4 * off(lanes, 8) + 0.5 * off(rows * vectors, 12) + 0.2 * off(vectors, 2);
  t += s.isFold() ? 1.0 : 0;
  t += s.get(Decision::Pack1, 0) == 0 ? 0.3 : 0;
  t += s.get(Decision::Parallel, 0) == 0 ? 0.6 : 0;
  t += 0.05 * off(static_cast<double>(s.get(Decision::ReduceParts, 1)), 4);
  t += 0.1 * off(static_cast<double>(s.get(Decision::Unroll, 1)), 4);
  return std::exp(t);
}

std::shared_ptr<CostModel> model() {
  auto made = makeBoostedTrees();
  EXPECT_TRUE(made.isOk()) << made.status().message();
  return *made;
}

// The best of `trials`, measured in batches; all proposals go to `log`.
double searched(const space::Space& space, Search& search, size_t trials, std::vector<Choices>* log = nullptr) {
  double best = INFINITY;
  for (size_t done = 0; done < trials; done += 16)
    for (const Proposal& p : search.propose(16)) {
      const double time = madeUpTime(space, p.choices);
      best = std::min(best, time);
      search.observe(p.choices, time / 4);
      if (log) log->push_back(p.choices);
    }
  return best;
}

TEST(Search, ProposesLegalPlansAndNoneTwice) {
  const TargetSpec target = wide();
  for (const Computation& kernel : {matmul(37, 64, 53), twice(1000)}) {
    const space::Space space(kernel, target);
    for (const std::string& name : searchNames()) {
      auto search = makeSearch(name, space, 1, model());
      ASSERT_TRUE(search.isOk());
      std::set<std::string> plans;
      for (int round = 0; round < 6; ++round)
        for (const Proposal& p : (*search)->propose(16)) {
          auto plan = space::planOf(space, p.choices);
          ASSERT_TRUE(plan.has_value()) << name;
          EXPECT_EQ(*plan, p.plan);
          EXPECT_TRUE(plans.insert(plan->str()).second) << name << ": twice: " << plan->str();
          (*search)->observe(p.choices, plans.size() % 7 == 0 ? std::nullopt : std::optional<double>(1.5));
        }
      EXPECT_GE(plans.size(), 20u) << name;
    }
  }
}

TEST(Search, DoesNotProposeWhatWasObserved) {
  const TargetSpec target = wide();
  const Computation kernel = matmul(37, 64, 53);
  const space::Space space(kernel, target);
  for (const std::string& name : searchNames()) {
    auto first = makeSearch(name, space, 5, model()), second = makeSearch(name, space, 5, model());
    const std::vector<Proposal> known = (*first)->propose(16);
    for (const Proposal& p : known) (*second)->observe(p.choices, 2);
    for (const Proposal& p : (*second)->propose(64))
      for (const Proposal& k : known) EXPECT_FALSE(p.plan == k.plan) << name;
  }
}

TEST(Search, ComesToTheEndOfASmallSpace) {
  const TargetSpec target = narrow();
  const Computation kernel = twice(4);
  const space::Space space(kernel, target);
  for (const std::string& name : searchNames()) {
    auto search = makeSearch(name, space, 1, model());
    size_t found = 0;
    for (int round = 0; round < 50; ++round) {
      const std::vector<Proposal> batch = (*search)->propose(16);
      for (const Proposal& p : batch) (*search)->observe(p.choices, 1);
      found += batch.size();
      if (batch.empty()) break;
    }
    EXPECT_GE(found, 2u) << name;
    EXPECT_TRUE((*search)->propose(16).empty()) << name;
  }
}

TEST(Search, EqualSeedsAndObservationsGiveEqualProposals) {
  const TargetSpec target = wide();
  const Computation kernel = matmul(96, 256, 128);
  const space::Space space(kernel, target);
  for (const std::string& name : searchNames()) {
    std::vector<Choices> a, b, c;
    searched(space, **makeSearch(name, space, 3, model()), 96, &a);
    searched(space, **makeSearch(name, space, 3, model()), 96, &b);
    searched(space, **makeSearch(name, space, 4, model()), 96, &c);
    EXPECT_EQ(a, b) << name;
    EXPECT_NE(a, c) << name;
  }
}

TEST(Search, EvolutionFindsWhatRandomDrawsMiss) {
  TargetSpec target = wide();
  target.threads = 2;
  const Computation kernel = matmul(96, 256, 128);
  const space::Space space(kernel, target);
  double random = 0, evolutionary = 0;
  constexpr int kSeeds = 16;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    random += std::log(searched(space, *makeRandomSearch(space, seed), 160)) / kSeeds;
    evolutionary += std::log(searched(space, *makeEvolutionarySearch(space, seed, model()), 160)) / kSeeds;
  }
  EXPECT_LT(evolutionary, 0.5 * random);
  EXPECT_LT(evolutionary, 0.35);
}

TEST(Replay, MutationChangesOneAnswerAndKeepsOthers) {
  const TargetSpec target = wide();
  const Computation kernel = matmul(37, 64, 53);
  const space::Space space(kernel, target);
  Random random(9);
  size_t kept = 0, all = 0, changed = 0;
  for (int i = 0; i < 300; ++i) {
    const Choices parent = randomWalk(space, random).choices();
    const auto child = mutate(space, parent, random);
    ASSERT_TRUE(child && child->isDone());
    EXPECT_NE(child->choices(), parent);
    for (const space::Choice& c : child->choices()) {
      ++all;
      kept += std::find(parent.begin(), parent.end(), c) != parent.end() ? 1 : 0;
    }
    ++changed;
  }
  EXPECT_GT(kept, all * 3 / 4);
  EXPECT_EQ(changed, 300u);
}

TEST(Replay, OwnAnswersGiveTheSameWalk) {
  const TargetSpec target = wide();
  for (const Computation& kernel : {matmul(37, 64, 53), twice(100)}) {
    const space::Space space(kernel, target);
    Random random(2);
    for (int i = 0; i < 100; ++i) {
      const Choices own = randomWalk(space, random).choices(), other = randomWalk(space, random).choices();
      EXPECT_EQ(finish(space::Walk(space), own, random).choices(), own);
      EXPECT_TRUE(crossover(space, own, other, random).isDone());
    }
  }
}

TEST(Features, OneColumnANameAndPaddingCounts) {
  TargetSpec target = wide();
  const Computation kernel = matmul(30, 24, 16);
  const space::Space space(kernel, target);
  const std::vector<std::string>& names = featureNames();
  auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  auto of = [&](int64_t rows, int64_t vectors) {
    const space::Walk walk = space::walkThrough(space, [&](const space::Walk& w) {
      if (w.decision() == Decision::Vector) return int64_t{1};
      if (w.decision() == Decision::RowAxis) return int64_t{0};
      if (w.decision() == Decision::Lanes) return int64_t{8};
      if (w.decision() == Decision::Rows) return rows;
      if (w.decision() == Decision::Vectors) return vectors;
      return w.legal()[0];
    });
    return featuresOf(walk);
  };
  const std::vector<float> exact = of(5, 3), padded = of(4, 2);
  ASSERT_EQ(exact.size(), names.size());
  EXPECT_FLOAT_EQ(exact[column("rowWaste")], 0);
  EXPECT_FLOAT_EQ(exact[column("columnWaste")], 0);
  EXPECT_FLOAT_EQ(exact[column("tile")], 15);
  EXPECT_NEAR(padded[column("rowWaste")], std::log2(32.0 / 30), 1e-6);
  EXPECT_NEAR(padded[column("columnWaste")], std::log2(32.0 / 24), 1e-6);
  EXPECT_FLOAT_EQ(padded[column("mr")], std::log2(5.0f));
  EXPECT_GT(padded[column("estimate")], exact[column("estimate")]);
}

TEST(CostModel, LearnsToRank) {
  TargetSpec target = wide();
  const Computation kernel = matmul(96, 256, 128);
  const space::Space space(kernel, target);
  Random random(1);
  auto trees = model();
  EXPECT_FALSE(trees->predict({}).has_value());
  std::vector<std::vector<float>> rows;
  std::vector<double> times;
  for (int i = 0; i < 600; ++i) {
    const space::Walk walk = randomWalk(space, random);
    const double time = std::log(madeUpTime(space, walk.choices()) / 4);
    if (i < 400) {
      trees->add(featuresOf(walk), time);
    } else {
      rows.push_back(featuresOf(walk));
      times.push_back(time);
    }
  }
  const auto predicted = trees->predict(rows);
  ASSERT_TRUE(predicted && predicted->size() == rows.size());
  int agree = 0, pairs = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (std::abs(times[i] - times[j]) < 0.1) continue;
      ++pairs;
      agree += (times[i] < times[j]) == ((*predicted)[i] < (*predicted)[j]) ? 1 : 0;
    }
  EXPECT_GT(agree, pairs * 9 / 10);
  EXPECT_EQ(*trees->predict(rows), *predicted);
}

}  // namespace
}  // namespace locution::generator

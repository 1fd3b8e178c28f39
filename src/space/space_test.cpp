// The whole space of small kernels, plan by plan.
#include "space/space.h"

#include <gtest/gtest.h>

#include <functional>

#include "loop/passes.h"
#include "schedule/apply.h"
#include "space/census.h"

namespace locution::space {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

TargetSpec narrow() {
  TargetSpec t;
  t.vectorBytes = 16;
  t.vectorRegisters = 8;
  return t;
}

Computation product(int64_t m, int64_t n, int64_t k) {
  Computation c;
  auto a = makeBuffer("a", {DType::F32, 1}, {m, k});
  auto b = makeBuffer("b", {DType::F32, 1}, {k, n});
  auto out = makeBuffer("out", {DType::F32, 1}, {m, n});
  Stage s;
  s.out = out;
  s.axes = {{makeVar("i"), m}, {makeVar("j"), n}};
  s.reduce = {{makeVar("r"), k}};
  s.combiner = Combiner::Sum;
  s.body = load(a, {s.axes[0].var, s.reduce[0].var}) * load(b, {s.reduce[0].var, s.axes[1].var});
  c.name = "product";
  c.inputs = {a, b};
  c.constants = {b};
  c.outputs = {out};
  c.stages = {s};
  return c;
}

// Every answer to every question.
void everyWalk(const Walk& walk, const std::function<void(const Walk&)>& onPlan) {
  if (walk.isDone()) return onPlan(walk);
  for (int64_t value : walk.legal()) {
    Walk next = walk;
    ASSERT_TRUE(next.choose(value));
    everyWalk(next, onPlan);
  }
}

TEST(Space, EveryPlanOfASmallProductIsApplied) {
  const Computation c = product(2, 5, 3);
  const TargetSpec t = narrow();
  const Space space(c, t);
  int64_t plans = 0;
  constexpr int64_t kEvery = 29;
  everyWalk(Walk(space), [&](const Walk& walk) {
    if (++plans % kEvery != 0) return;
    const auto again = planOf(space, walk.choices());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, walk.plan());
    auto lowered = schedule::apply(c, *again);
    const auto* error = std::get_if<schedule::ApplyError>(&lowered);
    ASSERT_EQ(error, nullptr) << schedule::reasonText(error->reason) << "\n" << again->str();
    Status valid = verify(std::get<schedule::Lowered>(lowered).function);
    ASSERT_TRUE(valid.isOk()) << valid.message() << "\n" << again->str();
  });
  EXPECT_GT(plans, 5000);
  const double estimated = takeCensus(space, 20000, 1).plans;
  EXPECT_NEAR(estimated / static_cast<double>(plans), 1, 0.1) << plans;
}

TEST(Space, WhatIsNotLegalIsRefusedAndChangesNothing) {
  const Computation c = product(12, 20, 30);
  const TargetSpec t = narrow();
  const Space space(c, t);
  Walk walk(space);
  while (!walk.isDone()) {
    const std::vector<int64_t> legal = walk.legal();
    const size_t answered = walk.choices().size();
    EXPECT_FALSE(walk.choose(-77));
    EXPECT_FALSE(walk.choose(1 << 20));
    EXPECT_EQ(walk.legal(), legal);
    EXPECT_EQ(walk.choices().size(), answered);
    ASSERT_TRUE(walk.choose(legal.back()));
  }
  EXPECT_FALSE(walk.choose(0));
  Choices choices = walk.choices();
  EXPECT_TRUE(planOf(space, choices).has_value());
  choices.pop_back();
  EXPECT_FALSE(planOf(space, choices).has_value());
  choices.push_back({0, Decision::Rows, 77});
  EXPECT_FALSE(planOf(space, choices).has_value());
}

TEST(Space, CopiesAreCountedByLoops) {
  // Rows and columns as one loop of rows: each factor would be copied for every element of the result.
  const Computation c = product(64, 64, 64);
  const TargetSpec t = narrow();
  const Space space(c, t);
  Walk walk(space);
  auto answer = [&](Decision d, int64_t value) {
    while (!walk.isDone() && walk.decision() != d) ASSERT_TRUE(walk.choose(walk.legal().front()));
    ASSERT_TRUE(walk.choose(value)) << choiceText(d, value);
  };
  answer(Decision::Vector, kNoAxis);
  answer(Decision::RowAxis, 1);
  answer(Decision::RowAxes, 2);
  while (!walk.isDone()) {
    EXPECT_NE(walk.decision(), Decision::Pack0);
    EXPECT_NE(walk.decision(), Decision::Pack1);
    ASSERT_TRUE(walk.choose(walk.legal().front()));
  }
}

TEST(Space, DecisionsHaveText) {
  for (size_t d = 0; d < kDecisions; ++d)
    for (int64_t value : {kNoAxis, int64_t{0}, int64_t{3}, kReduceAxis + 2, kRowLoop, kColumnLoopInner, kPartLoop}) {
      const auto decision = static_cast<Decision>(d);
      const std::string text = choiceText(decision, value);
      const auto parsed = parseChoice(text);
      if (parsed && parsed->second == value) {
        EXPECT_EQ(parsed->first, decision) << text;
      }
    }
  EXPECT_EQ(choiceText(Decision::Vector, kReduceAxis + 1), "vec=r1");
  EXPECT_EQ(choiceText(Decision::Next, kColumnLoopInner), "next=col.i");
  EXPECT_EQ(choiceText(Decision::RowAxis, kNoAxis), "row=none");
  for (const char* text : {"", "mr", "mr=", "mr=x", "=3", "vec=i16", "vec=q1", "what=1", "next=16"})
    EXPECT_FALSE(parseChoice(text)) << text;
  EXPECT_EQ(ladderUpTo(3), (std::vector<int64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace locution::space

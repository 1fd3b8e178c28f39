// What tests of schedulers have in common: small computations, and whether what is scheduled means the same as the naive loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "generator/random.h"
#include "generator/scheduler.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "schedule/apply.h"
#include "schedule/stages.h"

namespace locution::generator::test {

using namespace loop;  // NOLINT: tests about loop IR

inline std::vector<Axis> axesOf(const std::vector<int64_t>& extents, const char* stem) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) axes.push_back({makeVar(stem + std::to_string(i)), extents[i]});
  return axes;
}

inline std::vector<Expr> vars(const std::vector<Axis>& axes) {
  std::vector<Expr> out;
  for (const Axis& a : axes) out.push_back(a.var);
  return out;
}

/// [m, k] times a constant [k, n].
inline Computation matmul(int64_t m, int64_t n, int64_t k, const std::string& name = "matmul") {
  Computation c;
  c.name = name;
  auto a = makeBuffer("a", {DType::F32, 1}, {m, k});
  auto b = makeBuffer("b", {DType::F32, 1}, {k, n});
  auto out = makeBuffer("out", {DType::F32, 1}, {m, n});
  c.inputs = {a, b};
  c.constants = {b};
  Stage s;
  s.out = out;
  s.axes = axesOf({m, n}, "i");
  s.reduce = axesOf({k}, "r");
  s.combiner = Combiner::Sum;
  s.body = load(a, {s.axes[0].var, s.reduce[0].var}) * load(b, {s.reduce[0].var, s.axes[1].var});
  c.stages = {s};
  c.outputs = {out};
  return c;
}

inline Tensor randomTensor(const Buffer& b, unsigned seed) {
  std::mt19937 rng(seed);
  Tensor t(b.element.dtype, extents(b));
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, static_cast<double>(static_cast<int>(rng() % 17) - 8) / 4);
  return t;
}

inline TargetSpec wide() {
  TargetSpec t;
  t.vectorBytes = 64;
  t.vectorRegisters = 32;
  return t;
}
inline TargetSpec narrow() {
  TargetSpec t;
  t.vectorBytes = 16;
  t.vectorRegisters = 16;
  return t;
}

// Runs the schedule (packs first) and the naive loops; inputs are small multiples of 1/4, so that sums are exact in any order.
inline void expectSame(const Computation& whole, const TargetSpec& target, const Scheduler& scheduler) {
  std::map<const Buffer*, Tensor> values, wanted;
  std::vector<Tensor> params;
  unsigned seed = 1;
  for (const BufferRef& b : whole.inputs) params.push_back(values[b.get()] = randomTensor(*b, seed++));
  for (const BufferRef& b : whole.outputs) params.emplace_back(b->element.dtype, extents(*b));
  Status s = interpret(naiveLoops(whole), params);
  ASSERT_TRUE(s.isOk()) << s.message();
  for (size_t i = 0; i < whole.outputs.size(); ++i) wanted[whole.outputs[i].get()] = params[whole.inputs.size() + i];
  std::function<void(const Computation&)> run = [&](const Computation& c) {
    if (c.raw) {
      Function f{c.name, c.inputs, c.outputs.size(), c.raw, 1};
      f.params.insert(f.params.end(), c.outputs.begin(), c.outputs.end());
      std::vector<Tensor> args;
      for (const BufferRef& b : c.inputs) args.push_back(values.at(b.get()));
      for (const BufferRef& b : c.outputs) args.push_back(values[b.get()] = Tensor(b->element.dtype, extents(*b)));
      Status done = interpret(f, args);
      ASSERT_TRUE(done.isOk()) << done.message();
      return;
    }
    schedule::Plan plan = scheduler.propose(c, target);
    auto parsed = schedule::parsePlan(plan.str());
    ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
    EXPECT_EQ(*parsed, plan);
    auto lowered = schedule::apply(c, plan);
    auto* l = std::get_if<schedule::Lowered>(&lowered);
    ASSERT_NE(l, nullptr) << plan.str() << "\n"
                          << schedule::reasonText(std::get<schedule::ApplyError>(lowered).reason) << "\n"
                          << print(c);
    for (const schedule::PackedOperand& p : l->packs) run(p.computation);
    Status ok = verify(l->function);
    ASSERT_TRUE(ok.isOk()) << ok.message() << "\n" << plan.str() << "\n" << print(l->function);
    std::vector<Tensor> args;
    for (const BufferRef& b : l->function.params) {
      auto it = values.find(b.get());
      args.push_back(it != values.end() ? it->second : (values[b.get()] = Tensor(b->element.dtype, extents(*b))));
    }
    Status done = interpret(l->function, args);
    ASSERT_TRUE(done.isOk()) << done.message() << "\n" << plan.str() << "\n" << print(l->function);
  };
  for (const Computation& kernel : schedule::cutKernels(schedule::fuseStages(whole), target)) run(kernel);
  for (const BufferRef& b : whole.outputs) {
    const Tensor &have = values.at(b.get()), &want = wanted.at(b.get());
    for (int64_t i = 0; i < want.elements(); ++i)
      ASSERT_NEAR(have.elementAsDouble(i), want.elementAsDouble(i), 1e-5 * (1 + std::fabs(want.elementAsDouble(i))))
          << whole.name << " at " << i;
  }
}

// Any walk through the space of plans means the same.
inline void expectSameAtRandom(const Computation& whole, const TargetSpec& target) {
  const char* more = std::getenv("LOCUTION_WALKS");
  const int walks = more ? std::atoi(more) : 1;
  for (int seed = 0; seed < walks; ++seed) expectSame(whole, target, *makeRandomWalks(static_cast<uint64_t>(seed)));
}

}  // namespace locution::generator::test

// Products of 8-bit (or 16-bit) integers taken four at a time are the integers that naive loops give, interpreted and compiled: any signedness, odd
// extents, extreme values, padding with a zero point.
#include <map>

#include "loop/interpreter.h"
#include "loop/passes.h"
#include "schedule/apply.h"
#include "schedule/winograd.h"
#include "targets/cpu/kernel_test_util.h"

namespace locution::targets::cpu {
namespace {

using namespace loop;  // NOLINT: tests about loop IR
using schedule::Lowered;

struct Case {
  DType x = DType::U8, w = DType::I8;
  int64_t pixels = 5, channels = 16, outputs = 24, taps = 3;
  int64_t padding = 0;  ///< what the borders hold
  bool isExtreme = false;
};

/// A convolution of stride 1 along one dim with one element of padding on each side.
Computation convolution(const Case& c) {
  Computation made;
  made.name = "conv";
  auto x = makeBuffer("x", {c.x, 1}, {c.pixels, c.channels}),
       w = makeBuffer("w", {c.w, 1}, {c.outputs, c.channels, c.taps}),
       y = makeBuffer("y", {DType::I32, 1}, {c.pixels + 3 - c.taps, c.outputs});
  made.inputs = {x, w};
  made.constants = {w};
  made.outputs = {y};
  Stage s;
  s.out = y;
  s.axes = {{makeVar("p"), c.pixels + 3 - c.taps}, {makeVar("oc"), c.outputs}};
  s.reduce = {{makeVar("t"), c.taps}, {makeVar("ic"), c.channels}};
  s.combiner = Combiner::Sum;
  Expr at = Expr(s.axes[0].var) + Expr(s.reduce[0].var);
  Expr element = select(logicalAnd(le(index(1), at), lt(at, index(c.pixels + 1))), load(x, {at - 1, s.reduce[1].var}),
                        intImm(c.x, c.padding));
  s.body = cast(DType::I32, element) * cast(DType::I32, load(w, {s.axes[1].var, s.reduce[1].var, s.reduce[0].var}));
  made.stages = {s};
  return made;
}

Tensor randomBytes(const Buffer& b, unsigned seed, bool isExtreme) {
  std::mt19937 rng(seed);
  Tensor t(b.element.dtype, extents(b));
  const int64_t low = lowestInt(t.dtype()), high = highestInt(t.dtype());
  for (int64_t i = 0; i < t.elements(); ++i)
    t.setElementInt(i, isExtreme ? (low < 0 ? low : high) : low + static_cast<int64_t>(rng()) % (high - low + 1));
  return t;
}

std::string planOf(bool isWidened, int64_t rows, bool packsWeights) {
  std::string plan = "split s0 i1 16 peel; split s0 i1.i 8 mask; split s0 i0 " + std::to_string(rows) +
                     " peel; split s0 r1 4 peel; reorder s0 i1.o i0.o r0 r1.o r1.i i0.i i1.i.o i1.i.i; "
                     "unroll s0 r1.i i0.i i1.i.o; vectorise s0 i1.i.i; ";
  plan += isWidened ? "dot2 s0 r1.i 1" : "dot4 s0 r1.i 1";
  return packsWeights ? plan + "; pack s0 1" : plan;
}

void expectExact(const Case& c) {
  const Computation computation = convolution(c);
  std::map<const Buffer*, Tensor> inputs;
  std::vector<Tensor> naive;
  unsigned seed = 1;
  for (const BufferRef& b : computation.inputs) {
    naive.push_back(randomBytes(*b, seed++, c.isExtreme));
    inputs[b.get()] = naive.back();
  }
  naive.emplace_back(DType::I32, extents(*computation.outputs[0]));
  ASSERT_TRUE(interpret(naiveLoops(computation), naive).isOk());
  for (bool isWidened : {true, false})
    for (bool packsWeights : {true, false})
      for (int64_t rows : {1, 3}) {
        auto plan = schedule::parsePlan(planOf(isWidened, rows, packsWeights));
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        auto result = schedule::apply(computation, *plan);
        if (!isWidened && (c.x != DType::U8 || c.w != DType::I8)) {
          auto* error = std::get_if<schedule::ApplyError>(&result);
          ASSERT_NE(error, nullptr);
          EXPECT_EQ(error->reason, schedule::Illegal::NotDot);
          continue;
        }
        auto* lowered = std::get_if<Lowered>(&result);
        ASSERT_NE(lowered, nullptr) << plan->str();
        const std::string text = print(lowered->function);
        ASSERT_NE(text.find(isWidened ? "madd16" : "dot4"), std::string::npos) << text;
        Status ok = verify(lowered->function);
        ASSERT_TRUE(ok.isOk()) << ok.message() << text;
        auto parsed = parseFunction(text);
        ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
        EXPECT_EQ(print(*parsed), text);
        std::map<const Buffer*, Tensor> values = inputs;
        for (const schedule::PackedOperand& p : lowered->packs) {
          std::vector<Tensor> args{values.at(p.source.get()), Tensor(p.packed->element.dtype, extents(*p.packed))};
          ASSERT_TRUE(interpret(naiveLoops(p.computation), args).isOk());
          values[p.packed.get()] = args[1];
        }
        auto arguments = [&] {
          std::vector<Tensor> args;
          for (const BufferRef& b : lowered->function.params)
            args.push_back(values.count(b.get()) ? values.at(b.get()) : Tensor(b->element.dtype, extents(*b)));
          return args;
        };
        std::vector<Tensor> args = arguments();
        ok = interpret(lowered->function, args);
        ASSERT_TRUE(ok.isOk()) << ok.message() << text;
        ASSERT_TRUE(args.back().identical(naive.back())) << plan->str() << text;
        for (const TargetSpec& target : runnableTargets()) {
          args = arguments();
          ASSERT_TRUE(runKernel(target, lowered->function, args));
          ASSERT_TRUE(args.back().identical(naive.back())) << target.cpu << ": " << plan->str() << text;
        }
      }
}

TEST(Dot, EverySignedness) {
  for (DType x : {DType::U8, DType::I8})
    for (DType w : {DType::U8, DType::I8}) {
      expectExact({x, w});
      expectExact({x, w, 4, 400, 17, 3, 0, true});
    }
}

TEST(Dot, SixteenBitsInOrder) {
  for (DType w : {DType::I8, DType::I16}) {
    expectExact({DType::I16, w, 6, 18, 25, 3, 131});
    expectExact({DType::I16, w, 4, 400, 17, 1, 0, true});
  }
}

TEST(Dot, OddExtentsAndPadding) {
  for (int64_t channels : {4, 5, 18})
    for (int64_t outputs : {1, 25}) {
      expectExact({DType::U8, DType::I8, 6, channels, outputs, 3, 0});
      expectExact({DType::U8, DType::I8, 7, channels, outputs, 3, 131});
      expectExact({DType::I8, DType::I8, 5, channels, outputs, 1, -7});
    }
}

TEST(Dot, OnlyWholeGroupsInnermost) {
  const Computation c = convolution({});
  for (const char* plan : {"dot2 s0 r1 1", "split s0 r1 4 peel; dot2 s0 r1.o 1", "split s0 i1 4 peel; dot2 s0 i1.i 1",
                           "split s0 r1 4 peel; reorder s0 i0 i1 r1.o r1.i r0; dot2 s0 r1.i 1",
                           "split s0 r1 4 peel; dot2 s0 r1.i 2", "split s0 r1 8 peel; dot4 s0 r1.i 1"}) {
    auto parsed = schedule::parsePlan(plan);
    ASSERT_TRUE(parsed.isOk());
    auto result = schedule::apply(c, *parsed);
    auto* error = std::get_if<schedule::ApplyError>(&result);
    ASSERT_NE(error, nullptr) << plan;
    EXPECT_EQ(error->reason, schedule::Illegal::NotDot) << plan;
  }
}

// The transforms, and the products of pairs between them, compiled.
TEST(Dot, WinogradOfIntegers) {
  for (int64_t m : {2, 4})
    for (bool isExtreme : {false, true}) {
      const Computation computation = convolution({DType::U8, DType::I8, 13, 48, 24, 3, 131, isExtreme});
      std::map<const Buffer*, Tensor> values;
      std::vector<Tensor> naive;
      unsigned seed = 1;
      for (const BufferRef& b : computation.inputs)
        naive.push_back(values[b.get()] = randomBytes(*b, seed++, isExtreme));
      naive.emplace_back(DType::I32, extents(*computation.outputs[0]));
      ASSERT_TRUE(interpret(naiveLoops(computation), naive).isOk());
      const schedule::Plan plan{schedule::winogradSteps({m, 4, 2, 2, 4, true})};
      auto result = schedule::apply(computation, plan);
      auto* lowered = std::get_if<Lowered>(&result);
      ASSERT_NE(lowered, nullptr) << plan.str();
      for (const TargetSpec& target : runnableTargets()) {
        for (const schedule::PackedOperand& p : lowered->packs) {
          Function f{p.computation.name, {p.source, p.packed}, 1, simplify(vectorise(simplify(p.computation.raw))), 1};
          isConstInt(as<For>(f.body)->extent, &f.parallelExtent);
          std::vector<Tensor> args{values.at(p.source.get()), Tensor(p.packed->element.dtype, extents(*p.packed))};
          ASSERT_TRUE(runKernel(target, f, args));
          values[p.packed.get()] = args[1];
        }
        std::vector<Tensor> args;
        for (const BufferRef& b : lowered->function.params)
          args.push_back(values.count(b.get()) ? values.at(b.get()) : Tensor(b->element.dtype, extents(*b)));
        ASSERT_TRUE(runKernel(target, lowered->function, args));
        ASSERT_TRUE(args.back().identical(naive.back())) << target.cpu << ": " << plan.str();
      }
    }
}

TEST(Kernels, FloatsBecomeNarrowIntegersAsTheInterpreterSays) {
  for (const TargetSpec& target : runnableTargets())
    for (DType to : {DType::I8, DType::U8, DType::I16, DType::U16}) {
      const int64_t lanes = target.lanes(4), count = 16 * lanes;
      auto in = makeBuffer("in", {DType::F32, 1}, {count}), out = makeBuffer("out", {to, 1}, {count});
      Function f;
      f.name = "narrow";
      f.params = {in, out};
      f.outputCount = 1;
      auto v = makeVar("v"), l = makeVar("l");
      Expr at = Expr(v) * lanes + Expr(l);
      f.body = simplify(vectorise(
          forLoop(v, index(0), index(16), LoopKind::Serial,
                  forLoop(l, index(0), index(lanes), LoopKind::Vector, store(out, {at}, cast(to, load(in, {at})))))));
      std::vector<Tensor> expected{interesting(DType::F32, count, 3), Tensor(to, {count})}, actual = expected;
      actual[1] = Tensor(to, {count});
      ASSERT_TRUE(interpret(f, expected).isOk());
      ASSERT_TRUE(runKernel(target, f, actual));
      EXPECT_TRUE(actual[1].identical(expected[1])) << target.cpu << " " << dtypeName(to);
    }
}

}  // namespace
}  // namespace locution::targets::cpu

// Convolutions through Winograd's transforms mean what their naive loops mean, for any extent, padding and tile.
#include "schedule/winograd.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/scalar.h"

namespace locution::schedule {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

struct Case {
  std::vector<int64_t> spatial;  ///< input extents, one or two
  int64_t batch, channels, outputs;
  std::vector<int64_t> begin, end;  ///< padding
  bool hasEpilogue;
  DType x = DType::F32, w = DType::F32;
  int64_t outside = 0;     ///< what padding holds
  bool isExtreme = false;  ///< the largest values there are
  int64_t unusedBits = 0;  ///< of the sum, as the epilogue reads it
};

Computation convolution(const Case& c) {
  const size_t d = c.spatial.size();
  std::vector<int64_t> in{c.batch}, out{c.batch}, weights{c.outputs, c.channels};
  for (size_t k = 0; k < d; ++k) {
    in.push_back(c.spatial[k]);
    out.push_back(c.spatial[k] + c.begin[k] + c.end[k] - 2);
    weights.push_back(3);
  }
  in.push_back(c.channels);
  out.push_back(c.outputs);
  Computation made;
  made.name = "conv";
  const DType sum = isFloat(c.x) ? DType::F32 : DType::I32;
  auto x = makeBuffer("x", {c.x, 1}, in), w = makeBuffer("w", {c.w, 1}, weights);
  auto y = makeBuffer("y", {sum, 1}, out), bias = makeBuffer("bias", {sum, 1}, {c.outputs});
  made.inputs = {x, w};
  made.constants = {w};
  made.outputs = {y};
  Stage s;
  s.out = y;
  for (size_t k = 0; k < out.size(); ++k) s.axes.push_back({makeVar("i" + std::to_string(k)), out[k]});
  for (size_t k = 0; k < d; ++k) s.reduce.push_back({makeVar("k" + std::to_string(k)), 3});
  s.reduce.push_back({makeVar("ic"), c.channels});
  s.combiner = Combiner::Sum;
  std::vector<Expr> at{s.axes[0].var}, taps{s.axes.back().var, s.reduce.back().var};
  Expr inside;
  for (size_t k = 0; k < d; ++k) {
    Expr p = Expr(s.axes[k + 1].var) + Expr(s.reduce[k].var);
    at.push_back(p - c.begin[k]);
    taps.push_back(s.reduce[k].var);
    if (c.begin[k] == 0 && c.end[k] == 0) continue;
    Expr in = logicalAnd(le(index(c.begin[k]), p), lt(p, index(c.spatial[k] + c.begin[k])));
    inside = inside ? logicalAnd(inside, in) : in;
  }
  at.push_back(s.reduce.back().var);
  Expr element = load(x, at);
  if (inside) element = select(inside, element, constant(c.x, static_cast<double>(c.outside)));
  s.body = cast(sum, simplify(element)) * cast(sum, load(w, taps));
  if (c.hasEpilogue) {
    made.inputs.push_back(bias);
    s.acc = makeVar("acc", {sum, 1});
    Expr acc = s.acc;
    const Expr by = intImm(DType::I32, c.unusedBits);
    if (c.unusedBits > 0) acc = binary(BinaryOp::Shr, binary(BinaryOp::Shl, acc, by), by);
    s.epilogue = maxOf(acc + load(bias, {s.axes.back().var}), constant(sum, 0));
  }
  made.stages = {s};
  return made;
}

Tensor randomTensor(const Buffer& b, unsigned seed, bool isExtreme) {
  std::mt19937 rng(seed);
  Tensor t(b.element.dtype, extents(b));
  if (!isFloat(t.dtype())) {
    const int64_t low = lowestInt(t.dtype()), high = highestInt(t.dtype());
    for (int64_t i = 0; i < t.elements(); ++i)
      t.setElementInt(i, isExtreme ? (low < 0 ? low : high) : low + static_cast<int64_t>(rng()) % (high - low + 1));
    return t;
  }
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, static_cast<double>(static_cast<int>(rng() % 17) - 8) / 4);
  return t;
}

void expectSame(const Computation& c, const WinogradTile& tile, bool isExtreme = false) {
  std::map<const Buffer*, Tensor> values;
  std::vector<Tensor> naive;
  unsigned seed = 1;
  for (const BufferRef& b : c.inputs) naive.push_back(values[b.get()] = randomTensor(*b, seed++, isExtreme));
  naive.emplace_back(c.outputs[0]->element.dtype, extents(*c.outputs[0]));
  ASSERT_TRUE(interpret(naiveLoops(c), naive).isOk());
  Plan plan{winogradSteps(tile)};
  auto parsed = parsePlan(plan.str());
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  EXPECT_EQ(*parsed, plan);
  auto lowered = apply(c, plan);
  auto* l = std::get_if<Lowered>(&lowered);
  ASSERT_NE(l, nullptr) << plan.str() << "\n" << print(c);
  for (const PackedOperand& p : l->packs) {
    std::vector<Tensor> args{values.at(p.source.get()), Tensor(p.packed->element.dtype, extents(*p.packed))};
    Function f{p.computation.name, {p.source, p.packed}, 1, simplify(vectorise(simplify(p.computation.raw))), 1};
    const auto* outer = as<For>(f.body);
    ASSERT_NE(outer, nullptr);
    if (outer->loop == LoopKind::Parallel) isConstInt(outer->extent, &f.parallelExtent);
    Status ok = verify(f);
    ASSERT_TRUE(ok.isOk()) << ok.message();
    ok = interpret(f, args, {.float64 = true});
    ASSERT_TRUE(ok.isOk()) << ok.message();
    values[p.packed.get()] = args[1];
  }
  Status ok = verify(l->function);
  ASSERT_TRUE(ok.isOk()) << ok.message();
  std::vector<Tensor> args;
  for (const BufferRef& b : l->function.params)
    args.push_back(values.count(b.get()) ? values.at(b.get()) : Tensor(b->element.dtype, extents(*b)));
  ok = interpret(l->function, args, {.float64 = true});
  ASSERT_TRUE(ok.isOk()) << ok.message() << print(l->function);
  if (!isFloat(naive.back().dtype())) {
    ASSERT_TRUE(args.back().identical(naive.back())) << plan.str();
    return;
  }
  double scale = 1;
  for (int64_t i = 0; i < naive.back().elements(); ++i)
    scale = std::max(scale, std::abs(naive.back().elementAsDouble(i)));
  for (int64_t i = 0; i < naive.back().elements(); ++i)
    ASSERT_NEAR(args.back().elementAsDouble(i), naive.back().elementAsDouble(i), 2e-6 * scale)
        << plan.str() << " at " << i;
}

TEST(Winograd, AnyExtentPaddingAndTile) {
  const std::vector<Case> cases{{{7, 9}, 1, 8, 16, {1, 1}, {1, 1}, true},   {{8, 8}, 2, 4, 8, {0, 0}, {0, 0}, false},
                                {{5, 12}, 1, 12, 24, {0, 1}, {1, 0}, true}, {{11}, 3, 8, 8, {1}, {1}, true},
                                {{3, 3}, 1, 4, 4, {0, 0}, {0, 0}, true},    {{6}, 1, 5, 12, {2}, {2}, false}};
  for (const Case& c : cases)
    for (int64_t m : {2, 4})
      for (int64_t rows : {1, 3})
        for (int64_t vectors : {1, 3})
          for (bool isTilesOuter : {false, true}) {
            WinogradTile tile{m, rows * 2, rows, vectors, 4, isTilesOuter};
            expectSame(convolution(c), tile);
          }
}

TEST(Winograd, IntegersAreExact) {
  const std::vector<Case> cases{
      {{7, 9}, 1, 8, 16, {1, 1}, {1, 1}, true, DType::U8, DType::I8},
      {{5, 12}, 1, 6, 24, {0, 1}, {1, 0}, true, DType::U8, DType::I8, 131},
      {{6, 6}, 1, 4, 8, {1, 1}, {1, 1}, false, DType::I8, DType::I8, -7},
      {{11}, 2, 10, 8, {1}, {1}, true, DType::U8, DType::U8, 3},
      {{5, 6}, 1, 32, 8, {1, 1}, {1, 1}, false, DType::U8, DType::I8, 255, true},
      {{4, 4}, 1, 16, 8, {1, 1}, {1, 1}, false, DType::U8, DType::U8, 255, true},
      {{4, 5}, 1, 114, 4, {1, 1}, {1, 1}, false, DType::U8, DType::I8, 255, true},
      {{4, 5}, 1, 116, 4, {1, 1}, {1, 1}, false, DType::U8, DType::I8, 255, true},
      {{9}, 1, 400, 4, {1}, {1}, false, DType::I8, DType::I8, -128, true},
  };
  for (const Case& c : cases) {
    const Computation computation = convolution(c);
    auto form = winogradForm(computation.stages[0]);
    ASSERT_TRUE(form.has_value());
    EXPECT_TRUE(holdsSums(*form, 2));
    EXPECT_EQ(holdsSums(*form, 4), c.channels != 116);
    for (int64_t m : {2, 4})
      for (int64_t rows : {1, 3}) {
        const WinogradTile tile{m, rows * 2, rows, 2, 4, rows == 1};
        if (holdsSums(*form, m)) {
          expectSame(computation, tile, c.isExtreme);
        } else {
          EXPECT_TRUE(std::holds_alternative<ApplyError>(apply(computation, Plan{winogradSteps(tile)})));
        }
      }
  }
  // The epilogue reads so few bits of a sum that more are never needed.
  for (int64_t unused : {5, 6, 9})
    for (bool isExtreme : {false, true}) {
      Case few{{4, 5}, 1, 128, 4, {1, 1}, {1, 1}, true, DType::U8, DType::I8, 255, isExtreme, unused};
      const Computation computation = convolution(few);
      auto form = winogradForm(computation.stages[0]);
      ASSERT_TRUE(form.has_value());
      EXPECT_EQ(form->sumBits, 32 - unused);
      EXPECT_EQ(holdsSums(*form, 4), unused >= 6);
      if (unused >= 6) expectSame(computation, {4, 4, 2, 1, 4, true}, isExtreme);
    }
  // An odd channel has no partner.
  Case odd = cases[0];
  odd.channels = 7;
  EXPECT_FALSE(winogradForm(convolution(odd).stages[0]).has_value());
}

TEST(Winograd, ApplicabilityIsDecidedByTheLoads) {
  Computation c = convolution({{8, 8}, 1, 8, 8, {1, 1}, {1, 1}, false});
  ASSERT_TRUE(winogradForm(c.stages[0]).has_value());
  // Padding with something else than zero, or a guard that isn't the padding's.
  Computation other = c;
  other.stages[0].body = replaceLoads(c.stages[0].body, c.inputs[1].get(), [&](const Load& l) {
    return load(c.inputs[1], {l.indices[0], l.indices[1], l.indices[2], l.indices[2]});
  });
  EXPECT_TRUE(winogradForm(other.stages[0]).has_value());  // any weights do
  const auto* product = as<Binary>(c.stages[0].body);
  const auto* guarded = as<Select>(product->a);
  other.stages[0].body = select(guarded->condition, guarded->yes, floatImm(DType::F32, 1)) * product->b;
  EXPECT_FALSE(winogradForm(other.stages[0]).has_value());
  other.stages[0].body = select(le(index(2), Expr(c.stages[0].axes[1].var) + Expr(c.stages[0].reduce[0].var)),
                                guarded->yes, floatImm(DType::F32, 0)) *
                         product->b;
  EXPECT_FALSE(winogradForm(other.stages[0]).has_value());
  EXPECT_TRUE(std::holds_alternative<ApplyError>(apply(other, Plan{winogradSteps({4, 2, 1, 1, 4, false})})));
  // Lanes must divide the output channels.
  EXPECT_TRUE(std::holds_alternative<ApplyError>(apply(c, Plan{winogradSteps({4, 2, 1, 1, 16, false})})));
}

}  // namespace
}  // namespace locution::schedule

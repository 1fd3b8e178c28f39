// What apply refuses, with its reason.
#include "schedule/apply.h"

#include <gtest/gtest.h>

namespace locution::schedule {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

Computation vectorTimesMatrix(int64_t n, int64_t k) {
  Computation c;
  auto a = makeBuffer("a", {DType::F32, 1}, {1, k});
  auto b = makeBuffer("b", {DType::F32, 1}, {n, k});
  auto out = makeBuffer("out", {DType::F32, 1}, {1, n});
  Stage s;
  s.out = out;
  s.axes = {{makeVar("i"), 1}, {makeVar("j"), n}};
  s.reduce = {{makeVar("r"), k}};
  s.combiner = Combiner::Sum;
  s.body = load(a, {s.axes[0].var, s.reduce[0].var}) * load(b, {s.axes[1].var, s.reduce[0].var});
  c.name = "product";
  c.inputs = {a, b};
  c.outputs = {out};
  c.stages = {s};
  return c;
}

std::optional<Illegal> refusal(const Computation& c, const std::string& plan) {
  auto parsed = parsePlan(plan);
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  auto lowered = apply(c, *parsed);
  const auto* error = std::get_if<ApplyError>(&lowered);
  return error ? std::make_optional(error->reason) : std::nullopt;
}

// A vector of 16 at column 16 of 24 would read past the end: nothing in a register tile can be left out by a branch.
TEST(Apply, IncompleteTilesWithinARegisterTileAreMasked) {
  const std::string tile = "; reorder s0 i0 i1.o r0 i1.i.o i1.i.i; unroll s0 i1.i.o; vectorise s0 i1.i.i";
  EXPECT_EQ(refusal(vectorTimesMatrix(24, 8), "split s0 i1 32 peel; split s0 i1.i 16 peel" + tile),
            Illegal::PeelInTile);
  EXPECT_EQ(refusal(vectorTimesMatrix(56, 8), "split s0 i1 32 peel; split s0 i1.i 16 peel" + tile),
            Illegal::PeelInTile);
  EXPECT_EQ(refusal(vectorTimesMatrix(48, 8), "split s0 i1 32 peel; split s0 i1.i 16 peel" + tile), std::nullopt);
  EXPECT_EQ(refusal(vectorTimesMatrix(24, 8), "split s0 i1 32 peel; split s0 i1.i 16 mask" + tile), std::nullopt);
}

}  // namespace
}  // namespace locution::schedule

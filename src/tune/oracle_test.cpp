// What the oracle lets pass, and what it doesn't.
#include "tune/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "tune/operands.h"

namespace locution::tune {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

Computation sum(int64_t rows, int64_t terms, DType result, bool hasEpilogue) {
  BufferRef a = makeBuffer("a", {DType::F32, 1}, {rows, terms}), b = makeBuffer("b", {DType::F32, 1}, {terms});
  Stage s;
  s.out = makeBuffer("out", {result, 1}, {rows});
  s.axes = {{makeVar("i"), rows}};
  s.reduce = {{makeVar("k"), terms}};
  s.combiner = Combiner::Sum;
  s.body = load(a, {s.axes[0].var, s.reduce[0].var}) * load(b, {s.reduce[0].var});
  if (hasEpilogue || result != DType::F32) {
    s.acc = makeVar("acc", {DType::F32, 1});
    s.epilogue = hasEpilogue ? Expr(s.acc) * floatImm(DType::F32, 100) : Expr(s.acc);
    if (result != DType::F32) s.epilogue = cast(result, s.epilogue);
  }
  return {"sum", {a, b}, {}, {s.out}, {s}, nullptr};
}

struct Case {
  Computation kernel;
  std::vector<Tensor> inputs;
  Oracle oracle;
  Tensor right;
  Case(Computation c, double maxPoints) : kernel(std::move(c)) {
    inputs = *makeOperands(kernel, 5, Values::AnySign);
    auto made = Oracle::make(kernel, inputs, maxPoints, 5);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    oracle = *made;
    std::vector<Tensor> params = inputs;
    params.emplace_back(kernel.outputs[0]->element.dtype, extents(*kernel.outputs[0]));
    EXPECT_TRUE(interpret(naiveLoops(kernel), params).isOk());
    right = params.back();
  }
  std::string with(int64_t i, double change, bool isWinograd = false) const {
    Tensor t(right.dtype(), right.dims());
    std::memcpy(t.raw(), right.raw(), t.bytes());
    t.setElement(i, t.elementAsDouble(i) + change);
    return oracle.check({t}, isWinograd);
  }
};

// 8 sqrt(K) eps sum|a b|, of terms whose absolute values are about 0.64 in the mean.
double boundOf(double terms) { return 8 * std::sqrt(terms) * 0x1p-23 * 0.64 * terms; }

TEST(OracleTest, SumsMayDifferByTheirRounding) {
  Case c(sum(40, 400, DType::F32, false), 1e9);
  EXPECT_EQ(c.oracle.places(), 40u);
  EXPECT_EQ(c.with(3, 0), "");
  EXPECT_EQ(c.with(3, 0.5 * boundOf(400)), "");
  EXPECT_NE(c.with(3, 2 * boundOf(400)), "");
  EXPECT_NE(c.with(39, -2 * boundOf(400)), "");
  EXPECT_EQ(c.with(3, 10 * boundOf(400), true), "");
  EXPECT_NE(c.with(3, 40 * boundOf(400), true), "");
  EXPECT_NE(c.with(3, NAN), "");
}

TEST(OracleTest, EpiloguesCarryTheRoundingOn) {
  Case c(sum(40, 400, DType::F32, true), 1e9);
  EXPECT_EQ(c.with(7, 50 * boundOf(400)), "");
  EXPECT_NE(c.with(7, 300 * boundOf(400)), "");
}

TEST(OracleTest, LargeKernelsAreSampledAtBothEnds) {
  Case c(sum(5000, 400, DType::F32, false), 20 * 400);
  EXPECT_EQ(c.oracle.places(), 20u);
  EXPECT_NE(c.with(0, 1), "");
  EXPECT_NE(c.with(4999, 1), "");
}

TEST(OracleTest, IntegersMayRoundTheOtherWayOnly) {
  Case c(sum(40, 400, DType::I32, false), 1e9);
  EXPECT_EQ(c.with(7, 1), "");
  EXPECT_NE(c.with(7, 2), "");
}

TEST(OracleTest, OfAPartWhatIsThereMustBeRight) {
  Case c(sum(5000, 400, DType::F32, false), 20 * 400);
  Tensor part(c.right.dtype(), c.right.dims());
  std::memcpy(part.raw(), c.right.raw(), part.bytes());
  std::memset(part.raw() + part.bytes() / 2, Oracle::kPoison, part.bytes() / 2);
  EXPECT_EQ(c.oracle.check({part}, false, true), "");
  EXPECT_EQ(c.oracle.compare({c.right}, {part}, false, true), "");
  EXPECT_NE(c.oracle.check({part}, false), "");
  EXPECT_NE(c.oracle.compare({c.right}, {part}, false), "");
  part.setElement(0, part.elementAsDouble(0) + 1);
  EXPECT_NE(c.oracle.check({part}, false, true), "");
  EXPECT_NE(c.oracle.compare({c.right}, {part}, false, true), "");
}

TEST(OracleTest, TwoResultsAreComparedEverywhere) {
  Case c(sum(5000, 400, DType::F32, false), 20 * 400);
  Tensor other(c.right.dtype(), c.right.dims());
  std::memcpy(other.raw(), c.right.raw(), other.bytes());
  EXPECT_EQ(c.oracle.compare({c.right}, {other}, false), "");
  for (int64_t i : {int64_t{1023}, int64_t{1024}, int64_t{2500}, int64_t{4999}}) {
    const double was = other.elementAsDouble(i);
    other.setElement(i, was + 1);
    EXPECT_NE(c.oracle.compare({c.right}, {other}, false), "") << i;
    other.setElement(i, NAN);
    EXPECT_NE(c.oracle.compare({c.right}, {other}, false), "") << i;
    other.setElement(i, was);
  }
}

}  // namespace
}  // namespace locution::tune

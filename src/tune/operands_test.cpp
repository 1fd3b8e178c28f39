// Made-up operands: indices are valid whatever the arithmetic on them, the rest is as random as it should be.
#include "tune/operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "loop/build.h"

namespace locution::tune {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

Computation indexed(DType type, int64_t rows, const std::function<Expr(Expr)>& at) {
  BufferRef table = makeBuffer("table", {DType::F32, 1}, {rows}), by = makeBuffer("by", {type, 1}, {500});
  Stage s;
  s.out = makeBuffer("out", {DType::F32, 1}, {500});
  s.axes = {{makeVar("i"), 500}};
  s.body = load(table, {at(cast(DType::I64, load(by, {s.axes[0].var})))});
  return {"indexed", {table, by}, {}, {s.out}, {s}, nullptr};
}

std::pair<int64_t, int64_t> rangeOf(const Computation& c) {
  auto made = makeOperands(c, 7, Values::AnySign);
  EXPECT_TRUE(made.isOk()) << made.status().message();
  if (!made.isOk()) return {0, -1};
  std::vector<int64_t> values = (*made)[1].toInts();
  return {*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end())};
}

TEST(OperandsTest, IndicesStayWithinWhatTheyIndex) {
  EXPECT_EQ(rangeOf(indexed(DType::I64, 30, [](Expr i) { return i; })), (std::pair<int64_t, int64_t>{0, 29}));
  EXPECT_EQ(rangeOf(indexed(DType::I32, 30, [](Expr i) { return select(lt(i, index(0)), i + 30, i); })),
            (std::pair<int64_t, int64_t>{0, 29}));
  EXPECT_EQ(rangeOf(indexed(DType::I64, 30, [](Expr i) { return maxOf(minOf(i, index(29)), index(0)); })),
            (std::pair<int64_t, int64_t>{0, 29}));
  auto bound = [](Expr i) {
    VarRef t = makeVar("t");
    return let(t, i, select(lt(t, index(0)), Expr(t) + 30, t));
  };
  EXPECT_EQ(rangeOf(indexed(DType::I64, 30, bound)), (std::pair<int64_t, int64_t>{0, 29}));
  auto [low, high] = rangeOf(indexed(DType::I64, 30, [](Expr i) { return i * 2 + 1; }));
  EXPECT_GE(low, 0);
  EXPECT_LE(high * 2 + 1, 29);
  EXPECT_GT(high, 3);
}

TEST(OperandsTest, WhatCantBeAnIndexIsRefused) {
  auto made = makeOperands(indexed(DType::I64, 30, [](Expr i) { return i - 1; }), 7, Values::AnySign);
  ASSERT_FALSE(made.isOk());
  EXPECT_NE(made.status().message().find("'by'"), std::string::npos) << made.status().message();
}

TEST(OperandsTest, FloatsAreAboutNormalAndPositiveOnRequest) {
  Computation c = indexed(DType::I64, 20000, [](Expr i) { return i; });
  auto any = makeOperands(c, 7, Values::AnySign), positive = makeOperands(c, 7, Values::Positive);
  ASSERT_TRUE(any.isOk() && positive.isOk());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    const double x = (*any)[0].elementAsDouble(i);
    sum += x;
    squares += x * x;
    EXPECT_GT((*positive)[0].elementAsDouble(i), 0.09);
  }
  EXPECT_NEAR(sum / 20000, 0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / 20000), 1, 0.05);
}

}  // namespace
}  // namespace locution::tune

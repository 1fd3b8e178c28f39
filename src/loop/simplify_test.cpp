// simplify against brute force over whole ranges, and the exact results that layout algebra must reach.
#include <gtest/gtest.h>

#include <algorithm>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/random_test.h"

namespace locution::loop {
namespace {

using testing::IndexExpressions;
using testing::Random;

struct Algebra : ::testing::Test {
  VarRef s = makeVar("s"), h = makeVar("h"), d = makeVar("d"), x = makeVar("x"), n = makeVar("n"), v = makeVar("v");
  Ranges ranges{
      {s.get(), {0, 127}}, {h.get(), {0, 11}}, {d.get(), {0, 63}}, {x.get(), {0, 100000}}, {v.get(), {0, 15}}};
  std::string simple(const Expr& e) { return print(simplify(e, ranges)); }
  Expr S = s, H = h, D = d, X = x, N = n, V = v;
};

TEST_F(Algebra, ReshapeThenTransposeGivesTheAxis) {
  Expr flat = S * 768 + H * 64 + D;
  EXPECT_EQ(simple(floorMod(floorDiv(flat, index(64)), index(12))), "h");
  EXPECT_EQ(simple(floorMod(flat, index(64))), "d");
  EXPECT_EQ(simple(floorDiv(flat, index(768))), "s");
  EXPECT_EQ(simple(floorMod(floorDiv(flat, index(64)), index(768))), "s %% 64 * 12 + h");
}

TEST_F(Algebra, FlattenAfterUnflattenIsTheIdentity) {
  EXPECT_EQ(simple(floorDiv(X, index(12)) * 12 + floorMod(X, index(12))), "x");
  Expr back = floorDiv(X, index(768)) * 768 + floorMod(floorDiv(X, index(64)), index(12)) * 64 + floorMod(X, index(64));
  EXPECT_EQ(simple(back), "x");
  EXPECT_EQ(simple(floorDiv(N, index(6)) * 12 + floorMod(N, index(6)) * 2), "n * 2");
}

TEST_F(Algebra, DivisionAndRemainder) {
  EXPECT_EQ(simple(floorDiv(N * 12 + H, index(12))), "n");
  EXPECT_EQ(simple(floorMod(N * 12 + H, index(12))), "h");
  EXPECT_EQ(simple(floorDiv(floorDiv(N, index(4)), index(6))), "n // 24");
  EXPECT_EQ(simple(floorDiv(floorMod(N, index(24)), index(4))), "n // 4 %% 6");
  EXPECT_EQ(simple(floorMod(floorMod(N, index(24)), index(4))), "n %% 4");
  EXPECT_EQ(simple(floorDiv(N * 16 + V, index(64))), "n // 4");
  EXPECT_EQ(simple(floorMod(N * 16 + V, index(64))), "n %% 4 * 16 + v");
  EXPECT_EQ(simple(floorDiv(X, index(100001))), "0");
  EXPECT_EQ(simple(floorMod(X, index(100001))), "x");
  EXPECT_EQ(simple(floorDiv(V - 16, index(16))), "-1");
  EXPECT_EQ(simple(H / index(12)), "0");
  EXPECT_EQ(simple(binary(BinaryOp::Mod, H + 12, index(12))), "h");
}

TEST_F(Algebra, ComparisonsThatBoundsDecide) {
  EXPECT_EQ(simple(le(index(0), H)), "true");
  EXPECT_EQ(simple(lt(H + 1, index(13))), "true");
  EXPECT_EQ(simple(lt(H, index(0))), "false");
  EXPECT_EQ(simple(logicalAnd(le(index(0), H - 1), lt(H - 1, index(12)))), "1 <= h");
  EXPECT_EQ(simple(lt(N * 16 + V, index(64))), "n < 4");
  EXPECT_EQ(simple(lt(N * 16, index(100))), "n < 7");
  EXPECT_EQ(simple(eq(N * 4, index(6))), "false");
  EXPECT_EQ(simple(ne(H, index(12))), "true");
  EXPECT_EQ(simple(select(lt(H, index(12)), X, N)), "x");
  EXPECT_EQ(simple(minOf(H, index(11))), "h");
  EXPECT_EQ(simple(maxOf(X + 5, X)), "x + 5");
  EXPECT_EQ(simple(lt(X + H, X + 12)), "true");
}

TEST_F(Algebra, SumsAreCanonical) {
  EXPECT_EQ(simple((N + X) - N), "x");
  EXPECT_EQ(simple(N * 3 - N * 2 - 1 + 1), "n");
  EXPECT_EQ(simple((N + 1) * (X + 2) - N * X), "n * 2 + x + 2");
  EXPECT_EQ(simple(index(5) - N), "5 - n");
}

TEST_F(Algebra, LoadedValuesMayWrap) {
  BufferRef b = makeBuffer("b", {DType::I64, 1}, {10});
  Expr l = load(b, {H - H});
  EXPECT_EQ(simple(floorDiv(l * 2, index(2))), "b[0] * 2 // 2");
  EXPECT_EQ(simple(lt(l, l + 1)), "b[0] < b[0] + 1");
  EXPECT_EQ(simple(floorDiv(l, index(3)) * 3 + floorMod(l, index(3))), "b[0]");
  EXPECT_EQ(simple(le(minOf(maxOf(l, index(0)), index(9)), index(9))), "true");
  BufferRef bytes = makeBuffer("u", {DType::U8, 1}, {10});
  EXPECT_EQ(simple(floorDiv(cast(DType::I64, load(bytes, {H})), index(256))), "0");
}

TEST_F(Algebra, UnchangedExpressionsKeepTheirPointer) {
  for (const Expr& e :
       {X * 4 + N, floorDiv(X, index(7)), lt(X, N), Expr(x), cast(DType::F32, X) * constant(DType::F32, 2)})
    EXPECT_EQ(simplify(e, ranges), e) << print(e);
}

TEST_F(Algebra, SplitAffineAndBounds) {
  Expr base;
  int64_t coefficient = 0;
  ASSERT_TRUE(splitAffine((X * 3 + N) * 4 + floorDiv(N, index(2)), x.get(), &base, &coefficient));
  EXPECT_EQ(coefficient, 12);
  EXPECT_EQ(print(base), "n * 4 + n // 2");
  EXPECT_FALSE(splitAffine(floorDiv(X, index(2)), x.get(), &base, &coefficient));
  ASSERT_TRUE(splitAffine(floorDiv(X * 16 + V, index(16)), x.get(), &base, &coefficient, ranges));
  EXPECT_EQ(coefficient, 1);
  Range r;
  ASSERT_TRUE(bounds(H * 2 - D, ranges, &r));
  EXPECT_EQ(r.min, -63);
  EXPECT_EQ(r.max, 22);
  EXPECT_FALSE(bounds(N, ranges, &r));
}

TEST(Simplify, StatementsUseTheRangesOfLoops) {
  BufferRef out = makeBuffer("out", {DType::F32, 1}, {64});
  VarRef i = makeVar("i"), j = makeVar("j"), one = makeVar("one");
  Expr at = Expr(i) * 16 + Expr(j) + Expr(one);
  Stmt body = ifThen(lt(at, index(64)), store(out, {floorMod(at, index(64))}, constant(DType::F32, 1)));
  Stmt s = forLoop(
      one, index(0), index(1), LoopKind::Serial,
      forLoop(i, index(0), index(4), LoopKind::Serial, forLoop(j, index(0), index(16), LoopKind::Serial, body)));
  EXPECT_EQ(print(simplify(s)), "for i in 0..4 {\n  for j in 0..16 {\n    out[i * 16 + j] = 1.0\n  }\n}\n");
  Stmt never = forLoop(i, index(0), index(4), LoopKind::Serial, ifThen(lt(i, index(0)), body));
  EXPECT_EQ(print(simplify(never)), "");
}

TEST(Simplify, OneVariableWithTwoRangesInTurn) {
  BufferRef out = makeBuffer("out", {DType::Bool, 1}, {64});
  VarRef i = makeVar("i");
  Expr small = lt(i, index(8));
  auto loop = [&](int64_t n) { return forLoop(i, index(0), index(n), LoopKind::Serial, store(out, {i}, small)); };
  EXPECT_EQ(print(simplify(block({loop(8), loop(9), loop(8)}))),
            "for i in 0..8 {\n  out[i] = true\n}\nfor i in 0..9 {\n  out[i] = i < 8\n}\nfor i in 0..8 {\n  out[i] = "
            "true\n}\n");
}

TEST(Simplify, FloatsKeepTheirMeaning) {
  VarRef x = makeVar("x", {DType::F32, 1});
  auto f = [](double v) { return constant(DType::F32, v); };
  EXPECT_EQ(print(simplify(Expr(x) + f(0.0))), "x + 0.0");  // -0 + 0 is 0
  EXPECT_EQ(print(simplify(Expr(x) * f(1.0))), "x");
  EXPECT_EQ(print(simplify(Expr(x) * f(0.0))), "x * 0.0");  // NaN
  EXPECT_EQ(print(simplify(eq(x, x))), "x == x");
  EXPECT_EQ(print(simplify(f(0.1) + f(0.2))), "0.3");
}

TEST(Simplify, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    IndexExpressions make(random, 3);
    Expr e = random.chance(75) ? make.make(4) : make.condition(3);
    Expr simple = simplify(e, make.ranges);
    Function f = testing::tabulate({e, simple}, make.vars, make.ranges);
    ASSERT_TRUE(verify(f).isOk()) << verify(f).message();
    std::vector<Tensor> tensors = testing::tensorsFor(f, seed);
    Status status = interpret(f, tensors);
    ASSERT_TRUE(status.isOk()) << status.message();
    ASSERT_TRUE(tensors[0].identical(tensors[1]))
        << "seed " << seed << ": " << print(e) << "  became  " << print(simple);
    Range r;
    if (e->type.dtype == DType::I64 && bounds(e, make.ranges, &r)) {
      for (int64_t v : tensors[0].toInts())
        ASSERT_TRUE(r.min <= v && v <= r.max) << "seed " << seed << ": bounds of " << print(e);
    }
    // Terms of equal stride keep their order of appearance, so a second pass may swap them but finds nothing more.
    auto size = [](std::string text) {
      return text.size() -
             static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c == '(' || c == ')'; }));
    };
    EXPECT_EQ(size(print(simplify(simple, make.ranges))), size(print(simple)))
        << "seed " << seed << ": not stable: " << print(simple);
  }
}

}  // namespace
}  // namespace locution::loop

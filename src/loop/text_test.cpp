// Printing, parsing and hashing: the text is readable, says everything, and names don't count in hashes.
#include <gtest/gtest.h>

#include <cmath>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/random_test.h"

namespace locution::loop {
namespace {

TEST(Text, LooksLikeLoops) {
  BufferRef a = makeBuffer("A", {DType::F32, 1}, {64, 32}), b = makeBuffer("B", {DType::F32, 1}, {32, 128});
  BufferRef c = makeBuffer("C", {DType::F32, 1}, {64, 128}),
            acc = makeBuffer("acc", {DType::F32, 16}, {1, 2}, Scope::Register);
  VarRef i = makeVar("i"), j = makeVar("j"), k = makeVar("k");
  std::vector<Expr> at{index(0), index(1)};
  Expr columns = ramp(Expr(j) * 16, index(1), 16);
  Stmt step = store(acc, at, load(acc, at) + load(a, {i, k}) * load(b, {k, columns}));
  Stmt write = store(c, {i, columns}, load(acc, at), lt(columns, broadcast(index(100), 16)));
  Function f{"matmul", {a, b, c}, 1, nullptr, 64};
  f.body = forLoop(i, index(0), index(64), LoopKind::Parallel,
                   forLoop(j, index(2), index(6), LoopKind::Serial,
                           allocate(acc, block({store(acc, at, constant(DType::F32, 0)),
                                                forLoop(k, index(0), index(32), LoopKind::Unrolled, step), write}))));
  EXPECT_EQ(print(f), R"(function matmul(A: float32[64, 32], B: float32[32, 128]) -> (C: float32[64, 128]) {
  parallel for i in 0..64 {
    for j in 2..+6 {
      register acc: float32x16[1, 2] {
        acc[0, 1] = broadcast(0.0, 16)
        unrolled for k in 0..32 {
          acc[0, 1] = acc[0, 1] + broadcast(A[i, k], 16) * B[k, ramp(j * 16, 1, 16)]
        }
        C[i, ramp(j * 16, 1, 16); ramp(j * 16, 1, 16) < broadcast(100, 16)] = acc[0, 1]
      }
    }
  }
}
)");
  auto parsed = parseFunction(print(f));
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  EXPECT_EQ(print(*parsed), print(f));
  EXPECT_EQ(hash(*parsed), hash(f));
  EXPECT_EQ(parsed->parallelExtent, 64);
}

TEST(Text, PrecedenceAndLiterals) {
  VarRef x = makeVar("x"), f = makeVar("f", {DType::F32, 1});
  Expr X = x;
  EXPECT_EQ(print((X + 1) * 2), "(x + 1) * 2");
  EXPECT_EQ(print(X - (X - Expr(makeVar("y")))), "x - (x - y)");
  EXPECT_EQ(print(logicalAnd(le(index(0), X), lt(X, index(5)))), "0 <= x & x < 5");
  EXPECT_EQ(print(floorDiv(floorMod(X, index(7)), index(2))), "x %% 7 // 2");
  EXPECT_EQ(print(maxOf(X, index(-3))), "max(x, -3)");
  EXPECT_EQ(print(constant(DType::F32, 0.1)), "0.1");
  EXPECT_EQ(print(constant(DType::F64, 0.1)), "0.1_float64");
  EXPECT_EQ(print(constant(DType::F16, 0.1)), "0.099975586_float16");
  EXPECT_EQ(print(constant(DType::F32, -INFINITY)), "-inf");
  EXPECT_EQ(print(constant(DType::F32, NAN)), "nan");
  EXPECT_EQ(print(intImm(DType::U64, -1)), "18446744073709551615_uint64");
  EXPECT_EQ(print(intImm(DType::I8, -128)), "-128_int8");
  EXPECT_EQ(print(cast(DType::F16, Expr(f)) * constant(DType::F16, 2)), "float16(f) * 2.0_float16");
  EXPECT_EQ(print(bitcast(DType::I32, Expr(f))), "bitcast<int32>(f)");
}

TEST(Text, RandomFunctionsSurvivePrintingAndParsing) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Function f = testing::RandomFunctions(seed).make();
    ASSERT_TRUE(verify(f).isOk()) << seed << ": " << verify(f).message() << "\n" << print(f);
    std::string text = print(f);
    auto parsed = parseFunction(text);
    ASSERT_TRUE(parsed.isOk()) << seed << ": " << parsed.status().message() << "\n" << text;
    ASSERT_EQ(print(*parsed), text) << seed;
    ASSERT_EQ(hash(*parsed), hash(f)) << seed << "\n" << text;
  }
}

TEST(Text, DamagedTextIsAnErrorNeverACrash) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    testing::Random random(seed);
    std::string text = print(testing::RandomFunctions(seed).make());
    for (int64_t n = random.in(1, 3); n > 0; --n) {
      auto at = static_cast<size_t>(random.in(0, static_cast<int64_t>(text.size()) - 1));
      switch (random.in(0, 3)) {
        case 0:
          text.erase(at, static_cast<size_t>(random.in(1, 12)));
          break;
        case 1:
          text.insert(at, random.pick<std::string>(
                              {"(", "]", "4", "_", "..", "float32", "-", "\"", "\xff", "99999999999999999999"}));
          break;
        case 2:
          text[at] = static_cast<char>(random.in(0, 127));
          break;
        default:
          text.resize(at);
          break;
      }
      if (text.empty()) break;
    }
    auto parsed = parseFunction(text);
    if (parsed.isOk())
      EXPECT_TRUE(verify(*parsed).isOk());
    else
      EXPECT_FALSE(parsed.status().message().empty());
  }
  std::string deep = "function f() -> (o: float32[1]) { o[0] = " + std::string(100000, '(');
  EXPECT_FALSE(parseFunction(deep).isOk());
}

TEST(Hash, NamesDontCountButStructureDoes) {
  auto build = [](const std::string& name, int64_t extent, LoopKind kind, bool swap) {
    BufferRef a = makeBuffer(name, {DType::F32, 1}, {8, 8}), b = makeBuffer(name + "out", {DType::F32, 1}, {8, 8});
    VarRef i = makeVar(name), j = makeVar(name + "2");
    Stmt s = store(b, {i, j}, load(a, swap ? std::vector<Expr>{j, i} : std::vector<Expr>{i, j}));
    return Function{name,
                    {a, b},
                    1,
                    forLoop(i, index(0), index(extent), kind, forLoop(j, index(0), index(8), LoopKind::Serial, s))};
  };
  Function f = build("x", 8, LoopKind::Serial, false);
  EXPECT_EQ(hash(f), hash(build("another", 8, LoopKind::Serial, false)));
  EXPECT_NE(hash(f), hash(build("x", 7, LoopKind::Serial, false)));
  EXPECT_NE(hash(f), hash(build("x", 8, LoopKind::Unrolled, false)));
  EXPECT_NE(hash(f), hash(build("x", 8, LoopKind::Serial, true)));
}

}  // namespace
}  // namespace locution::loop

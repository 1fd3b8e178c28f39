// What a kernel computes as text: readable, complete, and read back as it was.
#include "loop/computation_text.h"

#include <gtest/gtest.h>

#include <cstring>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/random_test.h"

namespace locution::loop {
namespace {

TEST(ComputationText, EveryFormIsReadAsItIsWritten) {
  for (const char* text : {
           R"(computation "a kernel"(x: float16[4, 8], constant w: int8[8]) -> (last, found) {
  total[i < 4]: float64[4] = select(acc < 0.0, 0.0_float64, float64(acc)) where acc = sum[k < 8](float32(x[i, k]) * float32(w[k]))
  running[i < 4, j < 8]: float16[4, 8] = reverse exclusive scan max(x[i, j])
  found[]: bool[] = acc & true where acc = or[k < 4](total[k] == 1.5_float64)
  stack squares[i < 8]: int8[8] = (let t = w[i] in t * t)
  last[i < 8]: float32[8] = float32(max(squares[i], w[i])) + exp(float32(running[0, i]))
}
)",
           R"(computation scatter(constant inf_mask: float32[2]) -> (out: float32[2]) {
  for i in 0..2 {
    out[i] = inf_mask[i] + -inf + nan - 1e-45
  }
}
)",
       }) {
    auto parsed = parseComputation(text);
    ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
    EXPECT_EQ(print(*parsed), text);
  }
}

TEST(ComputationText, WhatIsReadHasTypesAndFlags) {
  auto c = parseComputation(
      "computation f(a: int8[3], constant b: int8[3]) -> (o, n) {\n"
      "  n[]: int32[] = acc where acc = min[k < 3](int32(a[k]))\n"
      "  o[i < 3]: float16[3] = float16(acc) where acc = exclusive scan product(int32(b[i]))\n}\n");
  ASSERT_TRUE(c.isOk()) << c.status().message();
  EXPECT_EQ(c->constants, std::vector<BufferRef>{c->inputs[1]});
  EXPECT_EQ(c->outputs, (std::vector<BufferRef>{c->stages[1].out, c->stages[0].out}));
  EXPECT_EQ(c->stages[0].combiner, Combiner::Min);
  EXPECT_EQ(c->stages[0].reduce.size(), 1u);
  EXPECT_EQ(c->stages[1].acc->type, (Type{DType::I32, 1}));
  EXPECT_TRUE(c->stages[1].scan && c->stages[1].scanExclusive && !c->stages[1].scanReverse);
}

TEST(ComputationText, EqualExpressionsBecomeOneNode) {
  auto c = parseComputation(
      "computation f(a: float32[3]) -> (o) {\n"
      "  o[i < 3]: float32[3] = (let t = exp(a[i]) in t * t) + (let t = exp(a[i]) in t * t)\n}\n");
  ASSERT_TRUE(c.isOk()) << c.status().message();
  const auto* sum = as<Binary>(c->stages[0].body);
  EXPECT_EQ(sum->a, sum->b);
}

TEST(ComputationText, MistakesAreToldWithTheirLine) {
  const std::pair<const char*, const char*> kCases[] = {
      {"computation f(", "line 1: expected a name, not the end"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 2]: float32[2] = b[i]\n}", "line 2: no buffer b"},
      {"computation f(a: float32[2]) -> (o) {\n  p[i < 2]: float32[2] = a[i]\n}",
       "line 3: no stage defines the output o"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 2]: float32[2] = max[k < 2](a[k]) + a[i]\n}",
       "line 2: expected a name, not \"+\""},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 3]: float32[2] = a[i]\n}",
       "computation f: axis i of stage o differs from the dim"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 2]: int8[2] = a[i]\n}",
       "computation f: stage o is of another type than its value"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 2]: float32[2] = or[k < 2](a[k])\n}",
       "computation f: stage o combines the bits of floats"},
      {"computation f(a: float32[2]) -> (o) {\n  o[]: float32[] = scan sum(a[0])\n}",
       "computation f: stage o has no axis to scan, or reduces as well"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 2]: float32[2] = acc + k where acc = sum[k < 2](a[k])\n}",
       "line 2: no variable k"},
      {"computation f(a: float32[2]) -> (a) {\n}", "line 1: two parameters are named a"},
      {"computation f(a: float32[2]) -> (o: float32[2]) {\n  a[0] = 1.0\n}", "computation f: store to input a"},
      {"computation f(a: float32[2]) -> (o) {\n  o[i < 9223372036854775807]: float32[9223372036854775807] = "
       "acc where acc = sum[k < 4](a[0])\n}",
       "computation f: stage o has impossible extents"},
  };
  for (auto& [text, message] : kCases) {
    auto parsed = parseComputation(text);
    EXPECT_EQ(parsed.isOk() ? "" : parsed.status().message(), message) << text;
  }
}

TEST(ComputationText, RandomComputationsSurvivePrintingAndParsing) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Computation c = testing::RandomFunctions(seed).makeComputation();
    ASSERT_TRUE(verify(c).isOk()) << seed << ": " << verify(c).message() << "\n" << print(c);
    for (const std::string& text : {print(c), printNameFree(c)}) {
      auto parsed = parseComputation(text);
      ASSERT_TRUE(parsed.isOk()) << seed << ": " << parsed.status().message() << "\n" << text;
      ASSERT_EQ(print(*parsed), text) << seed;
      ASSERT_EQ(hash(*parsed), hash(c)) << seed << "\n" << text;
      ASSERT_EQ(printNameFree(*parsed), printNameFree(c)) << seed;
    }
  }
}

TEST(ComputationText, WhatIsReadComputesTheSame) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Computation c = testing::RandomFunctions(seed).makeComputation();
    auto parsed = parseComputation(print(c));
    ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
    Function f = naiveLoops(c), g = naiveLoops(*parsed);
    std::vector<Tensor> a = testing::tensorsFor(f, seed), b = testing::tensorsFor(g, seed);
    InterpretOptions options;
    options.maxSteps = 200000;
    if (!interpret(f, a, options).isOk()) continue;
    ASSERT_TRUE(interpret(g, b, options).isOk()) << print(c);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()), 0) << seed << "\n" << print(c);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(ComputationText, DamagedTextIsAnErrorNeverACrash) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    testing::Random random(seed);
    std::string text = print(testing::RandomFunctions(seed % 500).makeComputation());
    for (int64_t n = random.in(1, 3); n > 0 && !text.empty(); --n) {
      auto at = static_cast<size_t>(random.in(0, static_cast<int64_t>(text.size()) - 1));
      switch (random.in(0, 4)) {
        case 0:
          text.erase(at, static_cast<size_t>(random.in(1, 12)));
          break;
        case 1:
          text.insert(at, random.pick<std::string>({"(", "]", "4", "where acc = ", "sum[k < 2](", "scan ", "constant ",
                                                    "stack ", "-", "\"", "\xff", "99999999999999999999"}));
          break;
        case 2:
          text[at] = static_cast<char>(random.in(0, 127));
          break;
        case 3: {
          // A piece moved elsewhere: well-formed words in places where they don't belong.
          std::string piece = text.substr(at, static_cast<size_t>(random.in(1, 40)));
          text.insert(static_cast<size_t>(random.in(0, static_cast<int64_t>(text.size()))), piece);
          break;
        }
        default:
          text.resize(at);
          break;
      }
    }
    auto parsed = parseComputation(text);
    if (!parsed.isOk()) {
      EXPECT_FALSE(parsed.status().message().empty());
      continue;
    }
    // What is taken is well formed: everything that is done to a kernel can be done to it.
    EXPECT_TRUE(verify(*parsed).isOk());
    EXPECT_TRUE(verify(naiveLoops(*parsed)).isOk()) << text;
    EXPECT_EQ(print(*parseComputation(print(*parsed))), print(*parsed)) << text;
  }
}

TEST(ComputationText, DepthIsBounded) {
  const std::string head = "computation f(a: float32[1]) -> (o) {\n  o[i < 1]: float32[1] = ";
  auto many = [](const std::string& part, int n) {
    std::string out;
    while (n-- > 0) out += part;
    return out;
  };
  EXPECT_FALSE(parseComputation(head + many("(", 100000)).isOk());
  EXPECT_FALSE(parseComputation(head + "a[0]" + many(" + a[0]", 100000) + "\n}").isOk());
  EXPECT_FALSE(parseComputation(head + "a[0]" + many(" where acc = a[0]", 100000) + "\n}").isOk());
  EXPECT_TRUE(parseComputation(head + "a[0]" + many(" + a[0]", 1000) + "\n}").isOk());
}

}  // namespace
}  // namespace locution::loop

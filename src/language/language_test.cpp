// Sentences read back to what they were made from, and nothing illegal can be said.
#include <gtest/gtest.h>

#include <random>

#include "language/describe.h"
#include "language/grammar.h"
#include "language/sentence.h"
#include "loop/passes.h"

namespace locution::language {
namespace {

using namespace loop;  // NOLINT: tests about loop IR
using space::Choices;
using space::Space;

std::vector<Axis> axesOf(const std::vector<int64_t>& extents, const char* stem) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) axes.push_back({makeVar(stem + std::to_string(i)), extents[i]});
  return axes;
}

Computation convolution(int64_t size, int64_t channels, int64_t outputs, int64_t window) {
  Computation c;
  auto x = makeBuffer("x", {DType::F32, 1}, {1, size, size, channels});
  auto w = makeBuffer("w", {DType::F32, 1}, {outputs, channels, window, window});
  auto out = makeBuffer("out", {DType::F32, 1}, {1, size, size, outputs});
  Stage s;
  s.out = out;
  s.axes = axesOf({1, size, size, outputs}, "i");
  s.reduce = axesOf({window, window, channels}, "r");
  s.combiner = Combiner::Sum;
  const int64_t pad = window / 2;
  Expr y = s.axes[1].var + s.reduce[0].var - pad, z = s.axes[2].var + s.reduce[1].var - pad;
  Expr inside =
      logicalAnd(logicalAnd(le(index(0), y), lt(y, index(size))), logicalAnd(le(index(0), z), lt(z, index(size))));
  Expr value = load(x, {s.axes[0].var, y, z, s.reduce[2].var});
  if (pad > 0) value = select(inside, value, constant(DType::F32, 0));
  s.body = value * load(w, {s.axes[3].var, s.reduce[2].var, s.reduce[0].var, s.reduce[1].var});
  s.acc = makeVar("acc", {DType::F32, 1});
  s.epilogue = maxOf(s.acc, constant(DType::F32, 0));
  c.name = "conv";
  c.inputs = {x, w};
  c.constants = {w};
  c.outputs = {out};
  c.stages = {s};
  return c;
}

// A depthwise one behind it: row by row.
Computation rolled(int64_t size, int64_t channels, int64_t wide) {
  Computation c = convolution(size, channels, wide, 1);
  auto w = makeBuffer("w1", {DType::F32, 1}, {wide, 3, 3});
  auto out = makeBuffer("filtered", {DType::F32, 1}, {1, size - 2, size - 2, wide});
  Stage s;
  s.out = out;
  s.axes = axesOf({1, size - 2, size - 2, wide}, "i");
  s.reduce = axesOf({3, 3}, "r");
  s.combiner = Combiner::Sum;
  s.body = load(c.outputs[0],
                {s.axes[0].var, s.axes[1].var + s.reduce[0].var, s.axes[2].var + s.reduce[1].var, s.axes[3].var}) *
           load(w, {s.axes[3].var, s.reduce[0].var, s.reduce[1].var});
  c.inputs.push_back(w);
  c.constants.push_back(w);
  c.outputs = {out};
  c.stages.push_back(s);
  return c;
}

Computation softmax(int64_t rows, int64_t columns) {
  Computation c;
  auto x = makeBuffer("x", {DType::F32, 1}, {rows, columns});
  auto peak = makeBuffer("peak", {DType::F32, 1}, {rows});
  auto out = makeBuffer("out", {DType::F32, 1}, {rows, columns});
  Stage m;
  m.out = peak;
  m.axes = axesOf({rows}, "i");
  m.reduce = axesOf({columns}, "r");
  m.combiner = Combiner::Max;
  m.body = load(x, {m.axes[0].var, m.reduce[0].var});
  Stage e;
  e.out = out;
  e.axes = axesOf({rows, columns}, "i");
  e.body = call("exp", {load(x, {e.axes[0].var, e.axes[1].var}) - load(peak, {e.axes[0].var})});
  c.name = "softmax";
  c.inputs = {x};
  c.outputs = {out};
  c.stages = {m, e};
  return c;
}

std::vector<Computation> kernels() {
  return {convolution(56, 64, 64, 3), convolution(7, 13, 1000, 1), convolution(15, 6, 10, 5), softmax(12, 197),
          rolled(16, 8, 24)};
}

std::vector<TargetSpec> targets() {
  TargetSpec narrow, middle, wide;
  narrow.vectorBytes = 16;
  narrow.hasFma = false;
  middle.threads = 2;
  wide.vectorBytes = 64;
  wide.vectorRegisters = 32;
  wide.hasMask = wide.hasVnni = true;
  return {narrow, middle, wide};
}

TEST(Vocabulary, IsAppendedToOnly) {
  EXPECT_GE(vocabularySize(), 1377U);
  EXPECT_EQ(vocabularyHash(1377), 0xee0fbc939d78482eULL);
  for (size_t i = 0; i < vocabularySize(); ++i)
    EXPECT_EQ(tokenOf(wordOf(static_cast<Token>(i))), static_cast<Token>(i)) << wordOf(static_cast<Token>(i));
}

TEST(Vocabulary, NumbersAreExact) {
  std::mt19937_64 rng(1);
  std::vector<int64_t> values{1, 16, 17, 31, 33, 197, 1000, 4095, 4096, 4097, 802816, 1 << 30};
  for (int i = 0; i < 2000; ++i) values.push_back(static_cast<int64_t>(rng() % (uint64_t{1} << (i % 34))) + 1);
  for (int64_t v : values) {
    const Words words = numberWords("s", v);
    EXPECT_EQ(numberOf("s", words), v);
    EXPECT_LE(words.size(), 12U) << v;
    for (const std::string& w : words) EXPECT_TRUE(tokenOf(w)) << w;
  }
}

TEST(Sentence, RoundTripsAndIsLegal) {
  std::mt19937_64 rng(7);
  for (const Computation& c : kernels())
    for (const TargetSpec& t : targets()) {
      const Space space(c, t);
      for (int i = 0; i < 40; ++i) {
        Grammar grammar(space);
        std::vector<Token> tokens = prefixTokens(space), said;
        while (!grammar.isDone()) {
          const std::vector<Token> may = grammar.legal();
          ASSERT_FALSE(may.empty());
          ASSERT_EQ(may, legal(space, said));
          // What isn't legal is refused, and nothing changes.
          const auto any = static_cast<Token>(rng() % vocabularySize());
          if (std::find(may.begin(), may.end(), any) == may.end()) {
            EXPECT_FALSE(grammar.accept(any)) << wordOf(any);
          }
          const Token next = may[rng() % may.size()];
          ASSERT_TRUE(grammar.accept(next));
          said.push_back(next);
        }
        tokens.insert(tokens.end(), said.begin(), said.end());
        const Choices& choices = grammar.walk().choices();
        EXPECT_EQ(sentenceTokens(space, choices), tokens);
        auto fromTokens = choicesOf(space, tokens);
        ASSERT_TRUE(fromTokens.isOk()) << fromTokens.status().message();
        EXPECT_EQ(*fromTokens, choices);
        auto fromText = parseSentence(space, sentenceText(space, choices));
        ASSERT_TRUE(fromText.isOk()) << fromText.status().message();
        EXPECT_EQ(*fromText, choices);
        EXPECT_TRUE(space::planOf(space, choices).has_value());
      }
    }
}

TEST(Sentence, SaysWhatWasLegal) {
  const Computation c = convolution(56, 64, 64, 3);
  TargetSpec t;
  const Space space(c, t);
  EXPECT_EQ(parsePlanText(space, "algo=3").status().message(),
            "word 1 of the plan, \"algo=3\": not legal here; legal: algo=0 algo=2 algo=4");
  EXPECT_EQ(parsePlanText(space, "algo=2 mr=4").status().message(),
            "word 2 of the plan, \"mr=4\": not legal here; legal: lanes=4 lanes=8");
  EXPECT_EQ(parsePlanText(space, "algo=2 lanes=8 nr=2 mr=2 mc=14").status().message(),
            "the plan ends after 5 words, where \"next\" is open; legal: next=row next=col");
  EXPECT_EQ(parsePlanText(space, "algo=2 lanes=8 nr=2 mr=2 mc=14 next=row par=1").status().message(),
            "word 7 of the plan, \"par=1\": the plan is complete before it");
  Choices choices = *parsePlanText(space, "algo=2 lanes=8 nr=2 mr=2 mc=14 next=row");
  EXPECT_EQ(planText(choices), "algo=2 lanes=8 nr=2 mr=2 mc=14 next=row");
  const Computation other = convolution(28, 64, 64, 3);
  const Space elsewhere(other, t);
  EXPECT_NE(parseSentence(elsewhere, sentenceText(space, choices)).status().message().find("another kernel"),
            std::string::npos);
}

}  // namespace
}  // namespace locution::language

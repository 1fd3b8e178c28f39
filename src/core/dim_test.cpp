#include "core/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "core/saturate.h"
#include "core/type_text.h"

namespace locution {
namespace {

std::string simplified(const std::string& text) {
  auto dim = parseDim(text);
  return dim.isOk() ? dim->str() : dim.status().message();
}

TEST(Dim, Canonical) {
  const std::pair<const char*, const char*> cases[] = {
      {"2 + 3*4", "14"},
      {"h - h", "0"},
      {"w + h", "h + w"},
      {"(h + 1)*(h - 1)", "h*h - 1"},
      {"2*h*3 + w - 1", "6*h + w - 1"},
      {"-h", "-h"},
      {"3 - h", "-h + 3"},
      {"\"odd name\"*2", "2*\"odd name\""},
      {"\"max\"", "\"max\""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(simplified(text), expected) << text;
}

TEST(Dim, Divisions) {
  const std::pair<const char*, const char*> cases[] = {
      {"(2*h) / 2", "h"},
      {"(2*h + 1) / 2", "h"},
      {"(a*b) / b", "a"},
      {"3*h / 2", "h + h / 2"},
      {"(2*h + 3) / 4", "(h + 1) / 2"},
      {"ceildiv(h, 4)", "(h + 3) / 4"},
      {"ceildiv(8*h, 4)", "2*h"},
      // Two strided convolutions with padding, and the same extent written at once.
      {"((h - 1) / 2 + 1 - 1) / 2 + 1", "(h + 3) / 4"},
      {"ceildiv(ceildiv(h, 2), 2)", "(h + 3) / 4"},
      {"(h*w + w) / (h + 1)", "w"},
      {"(4*h*w + 2*w) / (2*w)", "2*h + 1"},
      {"(a*c) / (b*c)", "a / b"},
      {"(h + w) / (2*w)", "(h + w) / (2*w)"},
      {"h / -2", "-h + h / 2"},
      {"-(h / 3)", "-(h / 3)"},
      {"2 - h / 3", "-(h / 3) + 2"},
      {"ceildiv(h, w)", "ceildiv(h, w)"},
      {"ceildiv(h + w, w)", "ceildiv(h, w) + 1"},
      {"7 / -2", "-4"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(simplified(text), expected) << text;
}

TEST(Dim, Extrema) {
  const std::pair<const char*, const char*> cases[] = {
      {"max(h, 0)", "h"},
      {"max(h - 1, 0)", "max(0, h - 1)"},
      {"min(h, h + 2)", "h"},
      {"max(w, max(h, w + 1))", "max(h, w + 1)"},
      {"max(max(c, a), b)", "max(max(a, b), c)"},
      {"min(3, 4)", "3"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(simplified(text), expected) << text;
}

TEST(Dim, Substitution) {
  Dim d = *parseDim("max(2*h / w, 3) + \"b 1\"");
  EXPECT_EQ(d.substitute({{"h", 9}, {"w", 2}}).str(), "\"b 1\" + 9");
  EXPECT_EQ(d.substitute({{"h", 9}, {"w", 2}, {"b 1", 1}}), Dim(10));
  EXPECT_EQ(d.substitute({{"h", 9}, {"w", 0}, {"b 1", 1}}),
            Dim(4));  // by zero: from the user's shapes, must not end us
  EXPECT_EQ(d.substitute({}), d);
}

TEST(Dim, BadText) {
  EXPECT_EQ(simplified("1 / 0"), "line 1: division by zero, found the end");
  EXPECT_FALSE(parseDim("h +").isOk());
  EXPECT_FALSE(parseDim("h h").isOk());
  EXPECT_FALSE(parseDim("99999999999999999999").isOk());
  EXPECT_FALSE(parseDim(std::string(100000, '(')).isOk());
  EXPECT_FALSE(parseDim(std::string(100000, '-') + "h").isOk());
}

TEST(Dim, HostileSizesSaturate) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Dim(most) + Dim(1), Dim(most));
  EXPECT_EQ(Dim(most) * Dim(-2), Dim(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(floorDiv(Dim(std::numeric_limits<int64_t>::min()), Dim(-1)), Dim(most));
  Dim h = Dim::symbol("h");
  Dim big = h * Dim(most) * Dim(-4) - Dim(most);
  EXPECT_EQ(big, *parseDim(big.str()));
  EXPECT_EQ(floorDiv(big, Dim(most - 1)), floorDiv(big, Dim(most - 1)));
  // Growth without end turns into an opaque symbol.
  Dim grown = h + Dim::symbol("w");
  for (int i = 0; i < 40; ++i) grown = grown * grown + Dim(1);
  EXPECT_LT(grown.str().size(), 1100u);
  Dim nested = h;
  for (int i = 0; i < 2000; ++i) nested = floorDiv(Dim(7) * nested, Dim::symbol("w") + Dim(1));
  EXPECT_LT(nested.str().size(), 1100u);
  EXPECT_EQ(*parseDim(nested.str()), nested);
}

// A random expression as text and its value by plain arithmetic, for symbols bound to positive numbers.
struct RandomExpr {
  std::string text;
  int64_t value;
};
RandomExpr randomExpr(std::mt19937& random, const SymbolBinding& binding, int depth) {
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0 || pick(5) == 0) {
    if (pick(2) == 0) {
      int64_t v = pick(9);
      return {std::to_string(v), v};
    }
    auto at = std::next(binding.begin(), pick(static_cast<int>(binding.size())));
    return {at->first, at->second};
  }
  RandomExpr a = randomExpr(random, binding, depth - 1), b = randomExpr(random, binding, depth - 1);
  switch (pick(7)) {
    case 0:
      return {"(" + a.text + ") + (" + b.text + ")", a.value + b.value};
    case 1:
      return {"(" + a.text + ") - (" + b.text + ")", a.value - b.value};
    case 2:
      return {"(" + a.text + ")*(" + b.text + ")", a.value * b.value};
    case 3:
      return {"max(" + a.text + ", " + b.text + ")", std::max(a.value, b.value)};
    case 4:
      return {"min(" + a.text + ", " + b.text + ")", std::min(a.value, b.value)};
    default:
      break;
  }
  // Divisors that are positive whatever the symbols: a number or a symbol.
  RandomExpr by = {binding.begin()->first, binding.begin()->second};
  if (pick(2) == 0) {
    by.value = 1 + pick(6);
    by.text = std::to_string(by.value);
  }
  if (pick(2) == 0) return {"(" + a.text + ") / " + by.text, floorDivide(a.value, by.value)};
  return {"ceildiv(" + a.text + ", " + by.text + ")", ceilDivide(a.value, by.value)};
}

TEST(Dim, PropertySimplificationKeepsTheValueAndTextReadsBack) {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    SymbolBinding binding;
    for (const char* name : {"a", "b", "h"}) binding[name] = 1 + static_cast<int64_t>(random() % 20);
    RandomExpr expr = randomExpr(random, binding, 4);
    auto dim = parseDim(expr.text);
    ASSERT_TRUE(dim.isOk()) << expr.text << ": " << dim.status().message();
    if (dim->str().find("dim_") != std::string::npos) continue;  // too large to keep
    ASSERT_EQ(dim->substitute(binding), Dim(expr.value)) << expr.text << " became " << dim->str();
    auto again = parseDim(dim->str());
    ASSERT_TRUE(again.isOk()) << dim->str();
    ASSERT_EQ(again->str(), dim->str()) << expr.text;
    if (dim->isNonNegative()) {
      ASSERT_GE(expr.value, 0) << expr.text;
    }
  }
}

}  // namespace
}  // namespace locution

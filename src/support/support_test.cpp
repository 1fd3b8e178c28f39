#include <gtest/gtest.h>

#include "support/check.h"
#include "support/hash.h"
#include "support/status.h"
#include "support/strings.h"
#include "support/text_cursor.h"

namespace locution {
namespace {

TEST(Strings, QuotedTextReadsBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& text : {std::string(), std::string("a\"b\\n\n"), all}) {
    std::string q = locution::quoted(text);
    EXPECT_EQ(unescaped(std::string_view(q).substr(1, q.size() - 2)), text);
    EXPECT_EQ(*TextCursor(q).quotedText(), text);
  }
}

TEST(Strings, SplitAndJoin) {
  EXPECT_EQ(splitText("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(splitText("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, ", "), "a, b");
}

TEST(Status, ContextIsAddedFromTheInsideOut) {
  EXPECT_EQ(Status::error("too large").withContext("tensor w").withContext("net.onnx").message(),
            "net.onnx: tensor w: too large");
  EXPECT_TRUE(Status::ok().withContext("net.onnx").isOk());
}

TEST(Status, MacrosPassErrorsOn) {
  auto half = [](int x) -> Result<int> {
    if (x % 2 != 0) return Status::error("odd");
    return x / 2;
  };
  auto quarter = [&](int x) -> Result<int> {
    LOCUTION_ASSIGN_OR_RETURN(int h, half(x));
    LOCUTION_ASSIGN_OR_RETURN(int q, half(h));
    return q;
  };
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "odd");
}

TEST(TextCursor, TokensWordsAndErrors) {
  TextCursor in("  graph // a comment\n x12 -7 9223372036854775808");
  EXPECT_FALSE(in.eat("gra"));  // a word isn't taken in part
  EXPECT_TRUE(in.eat("graph"));
  EXPECT_EQ(in.word([](char c) { return c == 'x'; }), "x");
  EXPECT_EQ(*in.integer(), 12);
  EXPECT_EQ(*in.integer(), -7);
  EXPECT_EQ(in.integer().status().message(), "line 2: integer out of range, found \"9223372036854775808\"");
  EXPECT_FALSE(TextCursor("\"open").quotedText().isOk());
  EXPECT_FALSE(TextCursor("\"open\\").quotedText().isOk());
  EXPECT_EQ(TextCursor("").expect("x").message(), "line 1: expected 'x', found the end");
}

TEST(Hash, IsStable) {
  EXPECT_EQ(hexDigits(hashText("")), "2d06800538d394c2");  // XXH3's published value
  EXPECT_NE(hashText("a"), hashText("a", 1));
}

TEST(CheckDeathTest, NamesPlaceConditionAndScope) {
  EXPECT_EXIT(
      {
        CheckScope scope("pass fold");
        LOCUTION_CHECK(1 + 1 == 3) << "sums";
      },
      testing::ExitedWithCode(70), "support_test.cpp:[0-9]+: 1 \\+ 1 == 3 \\[pass fold\\] sums");
}

TEST(CheckDeathTest, WritesAReproducerOnce) {
  EXPECT_EXIT(
      {
        setReproducerWriter([](const std::string&) {
          LOCUTION_CHECK(false) << "in the writer";
          return std::string();
        });
        LOCUTION_CHECK(false) << "first";
      },
      testing::ExitedWithCode(70), "first");
}

TEST(Check, StandsInAnUnbracedIf) {
  bool reached = false;
  if (reached)
    LOCUTION_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace locution

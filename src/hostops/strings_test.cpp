// String operators, regular expressions, TfIdfVectorizer, Cast from and to strings.
#include <gtest/gtest.h>

#include <clocale>
#include <limits>

#include "hostops/regex.h"
#include "hostops/test_calls.h"

namespace locution::hostops {
namespace {

TEST(StringNormalizer, StopwordsAndCase) {
  Tensor days = text({4}, {"monday", "tuesday", "wednesday", "thursday"});
  expectTensor(call("StringNormalizer", {days},
                    {{"stopwords", std::vector<std::string>{"monday"}},
                     {"is_case_sensitive", int64_t{1}},
                     {"case_change_action", std::string("UPPER")}})
                   .tensor(),
               text({3}, {"TUESDAY", "WEDNESDAY", "THURSDAY"}));
  expectTensor(call("StringNormalizer", {text({1, 2}, {"Monday", "MONDAY"})},
                    {{"stopwords", std::vector<std::string>{"monday"}}})
                   .tensor(),
               text({1, 1}, {""}));
  expectTensor(
      call("StringNormalizer", {text({1}, {"ÄÖÜ straße \xff"})}, {{"case_change_action", std::string("LOWER")}})
          .tensor(),
      text({1}, {"äöü straße \xff"}));
  EXPECT_EQ(call("StringNormalizer", {text({2, 1}, {"a", "b"})}).message(),
            "the input must be [C] or [1, C], but is 2x1");
}

TEST(StringConcat, Broadcasts) {
  expectTensor(call("StringConcat", {text({2}, {"abc", "def"}), text({1}, {".com"})}).tensor(),
               text({2}, {"abc.com", "def.com"}));
  expectTensor(call("StringConcat", {text({}, {"a"}), text({}, {"b"})}).tensor(), text({}, {"ab"}));
  EXPECT_EQ(call("StringConcat", {text({2}, {"a", "b"}), text({3}, {"", "", ""})}).message(),
            "shapes 2 and 3 can't be broadcast to each other");
}

TEST(StringSplit, DelimitersAndSpace) {
  auto r = call("StringSplit", {text({2}, {"abc.com", "def.net"})}, {{"delimiter", std::string(".")}}, 2);
  expectTensor(r.tensor(0), text({2, 2}, {"abc", "com", "def", "net"}));
  expectTensor(r.tensor(1), i64({2}, {2, 2}));
  r = call("StringSplit", {text({2}, {"hello world  ", "  hello   a b"})}, {{"maxsplit", int64_t{1}}}, 2);
  expectTensor(r.tensor(0), text({2, 2}, {"hello", "world", "hello", "a b"}));
  r = call("StringSplit", {text({2}, {"o-n-n--x-", ""})}, {{"delimiter", std::string("-")}}, 2);
  expectTensor(r.tensor(0), text({2, 6}, {"o", "n", "n", "", "x", "", "", "", "", "", "", ""}));
  expectTensor(r.tensor(1), i64({2}, {6, 1}));
  r = call("StringSplit", {text({2}, {"  ", ""})}, {}, 2);
  expectTensor(r.tensor(0), text({2, 0}, {}));
  r = call("StringSplit", {text({0}, {})}, {}, 2);
  expectTensor(r.tensor(0), text({0, 0}, {}));
}

bool matches(const std::string& pattern, const std::string& value) {
  auto regex = Regex::parse(pattern);
  EXPECT_TRUE(regex.isOk()) << regex.status().message();
  return regex.isOk() && regex->matches(value);
}

TEST(Regex, Matches) {
  EXPECT_TRUE(matches("www\\.[\\w.-]+\\.\\bcom\\b", "www.google.com"));
  EXPECT_FALSE(matches("www\\.[\\w.-]+\\.\\bcom\\b", "www.facebook.com.uk"));
  EXPECT_TRUE(matches("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com"));
  EXPECT_FALSE(matches("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@hotmail.com"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_TRUE(matches("a|b|cd", "cd"));
  EXPECT_TRUE(matches("(a|b)*c+?", "ababccc"));
  EXPECT_TRUE(matches("a{2,3}", "aaa"));
  EXPECT_FALSE(matches("a{2,3}", "aaaa"));
  EXPECT_TRUE(matches("a{2,}b{2}", "aaaabb"));
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));
  EXPECT_TRUE(matches("x{0}y", "y"));
  EXPECT_TRUE(matches("[^a-c]+", "xyzü"));
  EXPECT_FALSE(matches("[^a-c]+", "xbz"));
  EXPECT_TRUE(matches("[]a-]+", "]a-"));
  EXPECT_TRUE(matches("[[:alpha:]\\d]+", "a1B2"));
  EXPECT_TRUE(matches("[[:^digit:]]", "x"));
  EXPECT_TRUE(matches("(?i)HeLLo [^x]", "hEllO y"));
  EXPECT_FALSE(matches("(?i)[^x]", "X"));
  EXPECT_TRUE(matches("a(?i:b)c", "aBc"));
  EXPECT_FALSE(matches("a(?i:b)c", "aBC"));
  EXPECT_FALSE(matches("a.c", "a\nc"));
  EXPECT_TRUE(matches("(?s)a.c", "a\nc"));
  EXPECT_TRUE(matches("(?m)a$\\n^b", "a\nb"));
  EXPECT_TRUE(matches("\\Aab\\z", "ab"));
  EXPECT_TRUE(matches("\\Qa.b*\\E+", "a.b**"));
  EXPECT_TRUE(matches("x\\Q\\Ey\\Q|(\\E", "xy|("));
  EXPECT_TRUE(matches("\\Qa|b", "a|b"));
  EXPECT_TRUE(matches("\\x41\\x{e9}\\101\\t", "A\u00e9A\t"));
  EXPECT_TRUE(matches("(?P<year>\\d{4})-\\d\\d", "2024-01"));
  EXPECT_TRUE(matches("..", "üx"));
  EXPECT_TRUE(matches("(a*)*", "aaaa"));
  EXPECT_TRUE(matches("(|a)+", "aaa"));
}

TEST(Regex, LinearTime) {
  EXPECT_FALSE(matches("(a+)+b", std::string(20000, 'a')));
  EXPECT_TRUE(matches("(x+x+)+y", std::string(5000, 'x') + "y"));
  EXPECT_TRUE(matches(".*", std::string(1000000, 'x')));
}

TEST(Regex, Errors) {
  for (const char* bad : {"(",
                          ")",
                          "a)",
                          "[",
                          "[a",
                          "[b-a]",
                          "*",
                          "a**",
                          "(?=x)",
                          "(?<=x)",
                          "(?<n",
                          "\\",
                          "\\p{L}",
                          "\\1",
                          "\\y",
                          "a{1001}",
                          "((((a{100}){100}){100}){100})",
                          "[[:nope:]]",
                          "\\xg",
                          "(?z)",
                          "a{3,1}",
                          "x(?:"}) {
    auto regex = Regex::parse(bad);
    EXPECT_FALSE(regex.isOk()) << bad;
  }
  EXPECT_FALSE(Regex::parse(std::string(10000, '(')).isOk());
  EXPECT_EQ(Regex::parse("(a").status().message(), "the pattern \"(a\" can't be used: a ( that nothing closes");
  EXPECT_EQ(Regex::parse("\\pL").status().message(),
            "the pattern \"\\\\pL\" can't be used: Unicode classes (\\p) are not supported");
}

TEST(RegexFullMatch, Tensor) {
  expectTensor(call("RegexFullMatch", {text({2, 1}, {"abc", "xyz"})}, {{"pattern", std::string("a.*")}}).tensor(),
               boolean({2, 1}, {1, 0}));
}

Attrs bigrams(int64_t least, int64_t most, int64_t skip, const char* mode = "TF") {
  return {{"min_gram_length", least},
          {"max_gram_length", most},
          {"max_skip_count", skip},
          {"mode", std::string(mode)},
          {"ngram_counts", std::vector<int64_t>{0, 4}},
          {"ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}},
          {"pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
}

TEST(TfIdf, Counts) {
  Tensor x = Tensor::of<int32_t>(DType::I32, {2, 6}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  expectTensor(call("TfIdfVectorizer", {x}, bigrams(2, 2, 0)).tensor(),
               f32({2, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}));
  expectTensor(call("TfIdfVectorizer", {x}, bigrams(2, 2, 5)).tensor(),
               f32({2, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  expectTensor(call("TfIdfVectorizer", {x}, bigrams(1, 2, 5)).tensor(),
               f32({2, 7}, {0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1}));
  expectTensor(call("TfIdfVectorizer", {i64({6}, {1, 1, 3, 3, 3, 7})}, bigrams(1, 2, 5, "IDF")).tensor(),
               f32({7}, {0, 1, 0, 0, 0, 0, 0}));
  Attrs weighted = bigrams(1, 2, 5, "TFIDF");
  weighted["weights"] = std::vector<double>{1, 0.5, 1, 1, 1, 1, 1};
  expectTensor(call("TfIdfVectorizer", {i64({6}, {1, 1, 3, 3, 3, 7})}, weighted).tensor(),
               f32({7}, {0, 1.5F, 0, 0, 0, 0, 0}));
}

TEST(TfIdf, Errors) {
  Attrs bad = bigrams(1, 2, 0);
  bad["ngram_counts"] = std::vector<int64_t>{0, 5};
  EXPECT_EQ(call("TfIdfVectorizer", {i64({1}, {1})}, bad).message(), "ngram_counts does not fit a pool of 10 items");
  EXPECT_EQ(call("TfIdfVectorizer", {f32({1}, {1})}, bigrams(1, 1, 0)).message(),
            "the input is float32, but the pool holds integers");
}

TEST(Cast, ToText) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Attrs to = {{"to", std::string("string")}};
  expectTensor(call("Cast", {f32({6}, {1, 314.15926F, -kInf, kInf, 1e20F, 0.1F})}, to).tensor(),
               text({6}, {"1", "314.15927", "-INF", "INF", "1e+20", "0.1"}));
  expectTensor(call("Cast", {Tensor::of<double>(DType::F64, {1}, {0.1})}, to).tensor(), text({1}, {"0.1"}));
  expectTensor(call("Cast", {i64({2}, {-5, 7})}, to).tensor(), text({2}, {"-5", "7"}));
  expectTensor(call("Cast", {Tensor::of<uint64_t>(DType::U64, {1}, {~uint64_t{0}})}, to).tensor(),
               text({1}, {"18446744073709551615"}));
}

TEST(Cast, FromText) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  expectTensor(
      call("Cast", {text({6}, {"3.14", "1e-5", "1E8", "+INF", "-inf", "nan"})}, {{"to", std::string("float32")}})
          .tensor(),
      f32({6}, {3.14F, 1e-5F, 1e8F, kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}));
  expectTensor(call("Cast", {text({4}, {"100.5", " 7 ", "-9223372036854775808", "+3"})}, {{"to", int64_t{7}}}).tensor(),
               i64({4}, {100, 7, std::numeric_limits<int64_t>::min(), 3}));
  EXPECT_EQ(call("Cast", {text({1}, {"Hello"})}, {{"to", std::string("float32")}}).message(),
            "element 0 is no number: \"Hello\"");
  EXPECT_EQ(call("Cast", {text({1}, {""})}, {{"to", std::string("int32")}}).message(), "element 0 is no integer: \"\"");
  EXPECT_EQ(call("Cast", {text({1}, {"inf"})}, {{"to", std::string("int32")}}).message(),
            "element 0 is no integer: \"inf\"");
}

TEST(Cast, Numbers) {
  Attrs toI8 = {{"to", std::string("int8")}};
  expectTensor(call("Cast", {i64({2}, {200, -1})}, toI8).tensor(), Tensor::of<int8_t>(DType::I8, {2}, {-56, -1}));
  expectTensor(call("CastLike", {f32({2}, {1.9F, -1.9F}), i64({0}, {})}).tensor(), i64({2}, {1, -1}));
  expectTensor(
      call("Cast", {Tensor::of<uint64_t>(DType::U64, {1}, {~uint64_t{0}})}, {{"to", std::string("float32")}}).tensor(),
      f32({1}, {18446744073709551616.0F}));
}

}  // namespace
}  // namespace locution::hostops

// Printing, parsing, verifying and hashing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graph/graph.h"
#include "graph/literal.h"
#include "graph/patch.h"
#include "graph/random_graph.h"

namespace locution::graph {
namespace {

constexpr const char* kSample = R"(graph "sample" {
  metadata "author" = "someone"
  input %x: float32[batchx(max_len)x3]
  const %w: float32[2x2] = [1.0, -0.0, nan, inf]
  const %flag: bool[scalar] = true
  %y: float32[2x2] quant(scale "w" axis 1), _ = "com.x::Foo"(%x, _, %w) {axis = 1, e = ints[], f = 1.0, l = [1.5, 2.0], t = tensor int4[3] [1, -8, 7]} "foo" @3
  %"odd name": float32[2] = If(%flag)
    region {
      %q: float32[2] = Add(%y, %w)
      output %q
    }
    region {
      output %y
    }
  () = Nothing()
  output %"odd name"
}
)";

std::string messageOf(const std::string& text) {
  auto graph = parseGraph(text);
  return graph.isOk() ? "" : graph.status().message();
}
std::string inGraph(const std::string& lines) { return "graph \"g\" {\n" + lines + "\n}"; }

TEST(GraphText, PrintIsTheInverseOfParse) {
  auto graph = parseGraph(kSample);
  ASSERT_TRUE(graph.isOk()) << graph.status().message();
  EXPECT_EQ(print(*graph), kSample);
}

TEST(GraphText, LargeConstantsArePrintedAsHashes) {
  Graph graph;
  Patch patch(graph);
  patch.setRegionOutputs(graph.mainRegion(), {patch.addConstant("w", Tensor(DType::F32, {17}))});
  EXPECT_NE(print(graph).find("const %w: float32[17] = #"), std::string::npos);
  EXPECT_NE(messageOf(print(graph)).find("line 2: a constant printed as its hash can't be read back"),
            std::string::npos);
  EXPECT_TRUE(parseGraph(print(graph, 17)).isOk());
}

TEST(GraphText, UnusedConstantsAreLeftOut) {
  auto graph =
      parseGraph(inGraph("const %a: int64[scalar] = 1\nconst %s: float32[scalar] = 0.5\n"
                         "%y: int8[4] quant(scale \"s\") = Foo()\noutput %y"));
  ASSERT_TRUE(graph.isOk());
  std::string text = print(*graph);
  EXPECT_EQ(text.find("const %a"), std::string::npos);
  EXPECT_NE(text.find("const %s"), std::string::npos);  // the type of %y names it
}

TEST(GraphText, Messages) {
  EXPECT_EQ(messageOf("graph \"g\" {"), "line 1: expected '%', found the end");
  EXPECT_EQ(messageOf(inGraph("output %y")), "line 3: the value %y isn't defined before its use, found \"}\"");
  EXPECT_EQ(messageOf(inGraph("input %x: float32[1]\ninput %x: float32[1]")),
            "line 3: the value %x is defined twice, found \": float32[1]\"");
  EXPECT_EQ(messageOf(inGraph("const %x: int8[1] = [128]")), "line 2: '128' is no int8, found \"]\"");
  EXPECT_EQ(messageOf(inGraph("const %x: int8[2] = [1]")), "line 3: expected 2 elements, got 1, found \"}\"");
  EXPECT_EQ(messageOf(inGraph("const %x: int8[999999999999] = [1]")),
            "line 2: too few elements for 999999999999, found \"[1]\"");
  EXPECT_NE(messageOf(inGraph("%y: int8[-1] = Foo()")).find("a negative extent"), std::string::npos);
  for (const char* attr :
       {"a = 1, a = 2", "a = [1, 2.0]", "a = []", "a = 1e999", "a = 99999999999999999999", "a = nan:12", "a"})
    EXPECT_NE(messageOf(inGraph("%y: int8[1] = Foo() {" + std::string(attr) + "}")), "") << attr;
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "() = If() region {";
  EXPECT_NE(messageOf(inGraph(deep)), "");
}

TEST(GraphText, AValueOfARegionIsInvisibleOutside) {
  std::string message =
      messageOf(inGraph("() = If()\nregion {\n%q: int8[1] = Foo()\n}\n%r: int8[1] = Bar(%q) \"bar\""));
  EXPECT_NE(message.find("'bar' (Bar): inputs q int8[1]: reads %q, which isn't defined before it"), std::string::npos)
      << message;
}

TEST(GraphText, Floats) {
  EXPECT_EQ(floatText(1), "1.0");
  EXPECT_EQ(floatText(1e20), "1e+20");
  EXPECT_EQ(floatText(-0.0), "-0.0");
  EXPECT_EQ(floatText(0.1), "0.1");
  EXPECT_EQ(elementsText(Tensor::of<uint16_t>(DType::F16, {4}, {0x3c00, 0x2e66, 0x7e00, 0xfe01}), 16),
            "[1.0, 0.099975586, nan, nan:0xfe01]");
  EXPECT_EQ(elementsText(Tensor::of<uint8_t>(DType::F8E4M3FN, {2}, {0x7e, 0x80}), 16), "[448.0, -0.0]");
}

// Any text must give a graph or a message, never a crash.
TEST(GraphText, DamagedTextIsAnError) {
  std::mt19937 random(3);
  const std::string good = kSample;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (size_t k = 1 + random() % 3; k-- > 0;) {
      size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = "%(){}[]=:,_\"#@x19.-"[random() % 20];
      else
        text.erase(at, 1 + random() % 6);
    }
    auto graph = parseGraph(text);
    if (!graph.isOk()) continue;
    ASSERT_TRUE(parseGraph(print(*graph)).isOk()) << text;
  }
}

TEST(GraphText, PropertyRandomGraphsReadBack) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Graph graph = randomGraph(seed);
    Status status = verify(graph);
    ASSERT_TRUE(status.isOk()) << "seed " << seed << ": " << status.message();
    std::string text = print(graph);
    auto again = parseGraph(text);
    ASSERT_TRUE(again.isOk()) << "seed " << seed << ": " << again.status().message() << "\n" << text;
    ASSERT_EQ(print(*again), text) << "seed " << seed;
    ASSERT_EQ(hash(*again), hash(graph)) << "seed " << seed << "\n" << text;
  }
}

uint64_t hashOf(const std::string& lines) {
  auto graph = parseGraph(inGraph(lines));
  EXPECT_TRUE(graph.isOk()) << graph.status().message();
  return hash(*graph);
}

TEST(GraphHash, NamesAndPlacesDoNotCount) {
  uint64_t one = hashOf(
      "input %x: float32[2]\nconst %c: float32[2] = [1.0, 2.0]\n"
      "%y: int8[2] quant(scale \"c\") = Add(%x, %c) \"n\" @1\noutput %y");
  EXPECT_EQ(one, hashOf("const %unused: int8[1] = [1]\nconst %d: float32[2] = [1.0, 2.0]\ninput %i: float32[2]\n"
                        "const %e: float32[2] = [1.0, 2.0]\n%z: int8[2] quant(scale \"e\") = Add(%i, %d)\noutput %z"));
}

TEST(GraphHash, EverythingElseCounts) {
  const char* variants[] = {
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x)\noutput %y",
      "input %x: float32[3]\n%y: float32[2] = Add(%x, %x)\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Mul(%x, %x)\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x)\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, _)\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x)\noutput %x",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x) {a = 1}\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x) {a = 1.0}\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x) {a = [1]}\noutput %y",
      "input %x: float32[2]\nconst %c: float32[2] = [1.0, 2.0]\n%y: float32[2] = Add(%x, %c)\noutput %y",
      "input %x: float32[2]\nconst %c: float32[2] = [1.0, 3.0]\n%y: float32[2] = Add(%x, %c)\noutput %y",
      "input %x: float32[2]\n%y: float32[2] = Add(%x, %x) region { output %x }\noutput %y",
      "input %x: float32[2]\n%y: float32[2] layout(order 0 block 0/2) = Add(%x, %x)\noutput %y",
      "input %x: float32[2]\nconst %c: float32[scalar] = 1.0\n%y: float32[2] quant(scale \"c\") = Add(%x, %x)\noutput "
      "%y",
      "input %x: float32[2]\nconst %c: float32[scalar] = 2.0\n%y: float32[2] quant(scale \"c\") = Add(%x, %x)\noutput "
      "%y",
  };
  std::vector<uint64_t> hashes;
  for (const char* variant : variants) hashes.push_back(hashOf(variant));
  for (size_t i = 0; i < hashes.size(); ++i)
    EXPECT_EQ(std::count(hashes.begin(), hashes.end(), hashes[i]), 1) << variants[i];
}

TEST(Describe, SaysWhatAMessageNeeds) {
  auto graph = parseGraph(kSample);
  EXPECT_EQ(describe(*graph, NodeId{0}),
            "node 3 'foo' (com.x::Foo): inputs x float32[batchx(max_len)x3], (none), w float32[2x2]");
  EXPECT_EQ(describe(*graph, NodeId{1}), "node making 'odd name' (If): inputs flag bool[scalar]");
}

}  // namespace
}  // namespace locution::graph

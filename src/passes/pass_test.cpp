#include "passes/pass.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace locution::passes {
namespace {

graph::Graph sample() {
  return std::move(graph::parseGraph(R"(graph "g" {
    input %x: float32[2]
    %a: float32[2] = Relu(%x)
    %b: float32[2] = Sigmoid(%x)
    output %b
  })")
                       .value());
}

TEST(RunPass, TimesAndDumps) {
  graph::Graph graph = sample();
  PassContext context;
  std::ostringstream dump;
  std::vector<PassTiming> timings;
  RunOptions options;
  options.dump = &dump;
  options.dumpAfter = {"dce"};
  options.timings = &timings;
  ASSERT_TRUE(runPass(*findPass("dce"), graph, context, options).isOk());
  ASSERT_TRUE(runPass(*findPass("cse"), graph, context, options).isOk());
  ASSERT_TRUE(runPass(*findPass("dce"), graph, context, options).isOk());
  EXPECT_EQ(dump.str(), "// after dce\n" + graph::print(graph) + "// after dce (unchanged)\n");
  ASSERT_EQ(timings.size(), 3U);
  EXPECT_EQ(timings[0].name, "dce");
  EXPECT_GT(timings[0].edits, 0);
  EXPECT_EQ(timings[2].edits, 0);
}

TEST(RunPass, ADisabledPassDoesNothing) {
  graph::Graph graph = sample();
  PassContext context;
  RunOptions options;
  options.disabled = {"dce"};
  ASSERT_TRUE(runPass(*findPass("dce"), graph, context, options).isOk());
  EXPECT_TRUE(graph.findValue("a").isValid());
}

TEST(RunPass, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const PassDef& pass : allPasses()) EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
  EXPECT_EQ(findPass("no such pass"), nullptr);
}

}  // namespace
}  // namespace locution::passes

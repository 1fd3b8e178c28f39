#include "driver/reduce.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/tensor.h"
#include "driver/graph_text.h"

namespace locution::driver {
namespace {

graph::Graph parsed(const std::string& text) {
  auto g = graph::parseGraph(text);
  EXPECT_TRUE(g.isOk()) << g.status().message();
  return g.isOk() ? *g : graph::Graph();
}

// Two layers of attention-like work between others.
const char* const kNetwork = R"(graph "net" {
  input %x: float32[4x12x8]
  input %w: float32[8x8]
  const %axes: int64[1] = [1]
  const %shape: int64[2] = [48, 8]
  %a: float32[4x12x8] = Relu(%x)
  %b: float32[4x12x8] = MatMul(%a, %w)
  %c: float32[4x12x8] = Softmax(%b) {axis = 2}
  %d: float32[4x12x8] = Add(%c, %x)
  %e: float32[48x8] = Reshape(%d, %shape)
  %f: float32[48x8] = MatMul(%e, %w)
  %g: float32[48x1] = ReduceMax(%f, %axes)
  %h: float32[48x8] = Sigmoid(%f)
  output %g
  output %h
}
)";

bool feeds(const graph::Graph& g, const std::string& first, const std::string& second) {
  bool found = false;
  g.forEachNode([&](graph::NodeId n) {
    if (g.node(n).op != second) return;
    for (graph::ValueId v : g.node(n).inputs)
      if (v.isValid() && g.value(v).producer.isValid() && g.node(g.value(v).producer).op == first) found = true;
  });
  return found;
}

TEST(ReduceGraph, KeepsWhatFailsAndTheSmallestExtents) {
  graph::Graph small =
      reduceGraph(parsed(kNetwork), [](const graph::Graph& g) { return feeds(g, "MatMul", "Softmax"); });
  EXPECT_EQ(graph::print(small), R"(graph "net" {
  input %w: float32[1x1]
  input %a.in: float32[1x1x1]
  %b: float32[1x1x1] = MatMul(%a.in, %w)
  %c: float32[1x1x1] = Softmax(%b)
  output %c
}
)");
}

TEST(ReduceGraph, ShrinksOnlyWhileItFails) {
  // A kernel that is wrong from 5 rows on, say.
  graph::Graph small = reduceGraph(parsed(kNetwork), [](const graph::Graph& g) {
    bool found = false;
    g.forEachNode([&](graph::NodeId n) {
      const auto& node = g.node(n);
      if (node.op == "ReduceMax" && g.type(node.inputs[0]).shape[0].value() >= 5) found = true;
    });
    return found;
  });
  ASSERT_EQ(small.main().nodes.size(), 1U) << graph::print(small);
  EXPECT_EQ(small.type(small.main().inputs[0]).shape.str(), "5x1") << graph::print(small);
}

TEST(ReduceGraph, ReportsEachStepAndStops) {
  int seen = 0;
  reduceGraph(
      parsed(kNetwork), [](const graph::Graph&) { return true; },
      [&](const graph::Graph&, const ReduceStats& stats) {
        EXPECT_EQ(stats.tried, ++seen);
        return seen < 3;
      });
  EXPECT_EQ(seen, 3);
}

Result<Tensor> ones(const std::string&, DType dtype, const std::vector<int64_t>& dims) {
  Tensor t(dtype, dims);
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, 1);
  return t;
}

TEST(FailureOf, SaysHowAGraphFails) {
  EXPECT_EQ(failureOf(parsed(kNetwork), {}, {}, ones, 0, 60).kind, Failure::Kind::None);
  Failure refused = failureOf(parsed("graph \"g\" {\n  input %x: float32[2]\n  %y: float32[2] = Nonsense(%x)\n"
                                     "  output %y\n}\n"),
                              {}, {}, ones, 0, 60);
  EXPECT_EQ(refused.kind, Failure::Kind::Refused) << refused.text;
  auto crash = [](const std::string& name, DType, const std::vector<int64_t>&) -> Result<Tensor> {
    LOCUTION_CHECK(name.empty()) << "on purpose";
    return Status::error("");
  };
  Failure crashed = failureOf(parsed(kNetwork), {}, {}, crash, 0, 60);
  EXPECT_EQ(crashed.kind, Failure::Kind::Crash);
  EXPECT_NE(crashed.text.find("on purpose"), std::string::npos) << crashed.text;
}

}  // namespace
}  // namespace locution::driver

#include "graph/patch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "graph/random_graph.h"

namespace locution::graph {
namespace {

Graph parsed(const std::string& lines) {
  auto graph = parseGraph("graph \"g\" {\n" + lines + "\n}");
  EXPECT_TRUE(graph.isOk()) << graph.status().message();
  return graph.isOk() ? *graph : Graph();
}
void expectSound(const Graph& graph) {
  Status status = verify(graph);
  EXPECT_TRUE(status.isOk()) << status.message() << "\n" << print(graph);
}
// The node that makes the value.
NodeId making(const Graph& graph, std::string_view name) { return graph.value(graph.findValue(name)).producer; }
ValueType f32() { return ValueType{DType::F32, Shape::of({2})}; }

constexpr const char* kChain =
    "input %x: float32[2]\n%a: float32[2] = Relu(%x)\n%b: float32[2] = Exp(%a)\n%c: float32[2] = Neg(%b)\noutput %c";

TEST(Patch, InsertsKeepOrderAndUsers) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  NodeId b = making(graph, "b");
  const Node& reference = graph.node(b);
  for (int i = 0; i < 100; ++i) {  // more than the gap between neighbours has room for
    NodeId before = patch.insertBefore(b, {"Tanh", {graph.findValue("a")}, {}, {f32()}});
    NodeId after = patch.insertAfter(b, {"Sin", {graph.findValue("b")}, {}, {f32()}});
    EXPECT_TRUE(graph.isBefore(before, b) && graph.isBefore(b, after));
  }
  EXPECT_EQ(&reference, &graph.node(b));  // references survive additions
  EXPECT_EQ(graph.users(graph.findValue("a")).size(), 101u);
  EXPECT_EQ(graph.users(graph.findValue("a")).back(), b);
  EXPECT_EQ(graph.users(graph.findValue("b")).back(), making(graph, "c"));
  EXPECT_EQ(patch.edits(), 200);
  expectSound(graph);
}

TEST(Patch, NamesAreMadeUnique) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  NodeId n = patch.append(graph.mainRegion(), {"Split", {}, {}, {f32(), f32(), f32()}, {"", "a", "Split"}});
  EXPECT_EQ(graph.value(patch.output(n, 0)).name, "Split.2");  // the name asked for comes first
  EXPECT_EQ(graph.value(patch.output(n, 1)).name, "a.2");
  EXPECT_EQ(graph.value(patch.output(n, 2)).name, "Split");
  patch.dropOutput(n, 2);
  EXPECT_EQ(patch.freshName("Split"), "Split");
  patch.rename(patch.output(n, 0), "b");
  EXPECT_EQ(graph.findValue("b.2"), patch.output(n, 0));
  EXPECT_FALSE(graph.findValue("Split.2").isValid());
  expectSound(graph);
}

TEST(Patch, RenameIsFollowedByQuantisedTypes) {
  Graph graph = parsed("const %s: float32[scalar] = 1.0\n%y: int8[2] quant(scale \"s\" zero \"s\") = Foo()\noutput %y");
  Patch patch(graph);
  patch.rename(graph.findValue("s"), "scale");
  EXPECT_EQ(graph.type(graph.findValue("y")).str(), "int8[2] quant(scale \"scale\" zero \"scale\")");
  EXPECT_EQ(patch.releaseDeadConstants(), 0);
  patch.setType(graph.findValue("y"), f32());
  EXPECT_EQ(patch.releaseDeadConstants(), 1);
  EXPECT_FALSE(graph.findValue("scale").isValid());
  expectSound(graph);
}

TEST(Patch, ReplaceUsesKeepsTheNamesOfOutputs) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  ValueId b = graph.findValue("b"), c = graph.findValue("c");
  patch.replaceUses(c, b);
  EXPECT_EQ(graph.value(b).name, "c");
  EXPECT_EQ(graph.main().outputs, std::vector<ValueId>{b});
  EXPECT_TRUE(graph.isMainOutput(b));
  EXPECT_EQ(patch.removeDead(), 1);
  expectSound(graph);
}

TEST(Patch, ReplaceUsesByAnInputOrConstantGoesThroughIdentity) {
  for (const char* to : {"x", "k"}) {
    Graph graph = parsed(std::string("const %k: float32[2] = [1.0, 2.0]\n") + kChain);
    Patch patch(graph);
    patch.replaceUses(graph.findValue("c"), graph.findValue(to));
    NodeId identity = making(graph, "c");
    EXPECT_EQ(graph.node(identity).op, "Identity");
    EXPECT_EQ(graph.node(identity).input(0), graph.findValue(to));
    EXPECT_EQ(patch.removeDead(), 3);
    expectSound(graph);
    // Once more changes nothing: a pass that removes identities comes to an end.
    Patch again(graph);
    again.replaceUses(graph.findValue("c"), graph.findValue(to));
    EXPECT_EQ(again.edits(), 0);
  }
}

TEST(Patch, ReplaceUsesBetweenTwoOutputs) {
  Graph graph =
      parsed("input %x: float32[2]\n%a: float32[2] = Exp(%x)\n%b: float32[2] = Exp(%x)\noutput %a\noutput %b");
  Patch patch(graph);
  patch.replaceUses(graph.findValue("b"), graph.findValue("a"));
  EXPECT_EQ(graph.node(making(graph, "b")).op, "Identity");
  EXPECT_EQ(graph.value(graph.main().outputs[0]).name, "a");
  EXPECT_EQ(graph.value(graph.main().outputs[1]).name, "b");
  expectSound(graph);
}

TEST(Patch, ReplaceUsesReachesRegionsAndSparesOneNode) {
  Graph graph = parsed(
      "input %x: float32[2]\n%a: float32[2] = Relu(%x)\n%y: float32[2] = If(%a)\nregion {\n"
      "%q: float32[2] = Add(%a, %a)\noutput %a\noutput %q\n}\noutput %y");
  Patch patch(graph);
  ValueId a = graph.findValue("a");
  EXPECT_EQ(graph.users(a), (std::vector<NodeId>{making(graph, "y"), making(graph, "q"), making(graph, "q")}));
  NodeId cast = patch.insertAfter(making(graph, "a"), {"Cast", {a}, {}, {f32()}, {"d"}});
  patch.replaceUses(a, patch.output(cast), cast);
  EXPECT_EQ(graph.users(a), std::vector<NodeId>{cast});
  EXPECT_EQ(graph.users(patch.output(cast)).size(), 3u);
  EXPECT_EQ(graph.outputUses(patch.output(cast)), 1);
  expectSound(graph);
}

TEST(Patch, MovesIntoRegionsAndBack) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  NodeId a = making(graph, "a"), b = making(graph, "b");
  NodeId kernel = patch.insertBefore(making(graph, "c"), {"Kernel", {graph.findValue("x")}, {}, {f32()}, {"k"}});
  RegionId body = patch.addRegion(kernel);
  ValueId inner = patch.addInput(body, "in", f32());
  patch.moveToEnd(a, body);
  patch.moveToEnd(b, body);
  patch.setInput(a, 0, inner);
  patch.setRegionOutputs(body, {graph.findValue("b")});
  patch.setInput(making(graph, "c"), 0, patch.output(kernel));
  ValueId constant = patch.addConstant("two", Tensor::scalarF32(2), body);
  patch.setInput(b, 1, constant);
  expectSound(graph);
  EXPECT_TRUE(graph.encloses(graph.mainRegion(), body));
  EXPECT_TRUE(graph.isBefore(kernel, a) && graph.isBefore(b, making(graph, "c")));
  // And out again: the constant follows its reader.
  patch.setRegionOutputs(body, {});
  patch.setInput(a, 0, graph.findValue("x"));
  patch.moveToEnd(a, graph.mainRegion());
  patch.moveToEnd(b, graph.mainRegion());
  EXPECT_EQ(graph.value(constant).region, graph.mainRegion());
  expectSound(graph);
}

TEST(Patch, ReorderSortsUsers) {
  Graph graph = parsed("input %x: float32[2]\n%a: float32[2] = A(%x)\n%b: float32[2] = B(%x)\n%c: float32[2] = C(%x)");
  Patch patch(graph);
  std::vector<NodeId> nodes = graph.main().nodes;
  std::reverse(nodes.begin(), nodes.end());
  patch.reorder(graph.mainRegion(), nodes);
  EXPECT_EQ(graph.users(graph.findValue("x")), nodes);
  expectSound(graph);
}

TEST(Patch, MakeConstantAndRelease) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  ValueId b = graph.findValue("b");
  patch.makeConstant(b, Tensor::of<float>(DType::F32, {2}, {1, 2}));
  EXPECT_EQ(patch.removeDead(), 2);
  EXPECT_NE(graph.constant(b), nullptr);
  expectSound(graph);
  patch.replaceUses(b, graph.findValue("x"));
  patch.releaseConstant(b);
  EXPECT_EQ(graph.constant(b), nullptr);
  EXPECT_FALSE(graph.isDefined(b));
  expectSound(graph);
}

TEST(Patch, RemoveTakesRegionsAlong) {
  Graph graph = parsed(
      "input %x: float32[2]\n%a: float32[2] = A(%x)\n%y: float32[2] = If(%x)\nregion {\n"
      "input %i: float32[2]\n%q: float32[2] = Add(%a, %x)\noutput %q\n}");
  Patch patch(graph);
  RegionId body = graph.node(making(graph, "y")).regions[0];
  patch.remove(making(graph, "y"));
  EXPECT_TRUE(graph.region(body).dead);
  EXPECT_TRUE(graph.users(graph.findValue("a")).empty());
  for (const char* gone : {"y", "q", "i"}) EXPECT_FALSE(graph.findValue(gone).isValid());
  expectSound(graph);
}

TEST(PatchDeathTest, MisuseIsCaught) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  EXPECT_EXIT(patch.remove(making(graph, "b")), testing::ExitedWithCode(70),
              "output is in use: node making 'b' \\(Exp\\)");
  EXPECT_EXIT(patch.dropOutput(making(graph, "b"), 0), testing::ExitedWithCode(70), "in use: %b");
}

TEST(Verify, FindsUseBeforeDefinition) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  patch.moveToEnd(making(graph, "a"), graph.mainRegion());
  EXPECT_NE(verify(graph).message().find("reads %a, which isn't defined before it"), std::string::npos);
}

TEST(Verify, FindsBadTypesAndOutputs) {
  Graph graph = parsed(kChain);
  Patch patch(graph);
  patch.setType(graph.findValue("a"), ValueType{DType::F32, Shape::of({2}), Layout{{1, 0}}});
  EXPECT_NE(verify(graph).message().find("the layout's order has another rank"), std::string::npos);
  patch.setType(graph.findValue("a"), f32());
  NodeId last = patch.append(graph.mainRegion(), {"If", {}, {}, {f32()}});
  RegionId body = patch.addRegion(last);
  ValueId q = patch.output(patch.append(body, {"Q", {}, {}, {f32()}}));
  patch.setRegionOutputs(graph.mainRegion(), {q});
  EXPECT_EQ(verify(graph).message(), "the region output %Q isn't defined in the region or around it");
}

// Random edits on random graphs keep every invariant.
TEST(Patch, PropertyRandomEdits) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = randomGraph(seed);
    Patch patch(graph);
    std::mt19937_64 random(seed);
    for (int step = 0; step < 20; ++step) {
      std::vector<NodeId> nodes;
      graph.forEachNode([&](NodeId id) { nodes.push_back(id); });
      if (nodes.empty()) break;
      NodeId n = nodes[random() % nodes.size()];
      switch (random() % 7) {
        case 0:
          patch.insertBefore(n, {"New", graph.node(n).inputs, {}, {f32()}});
          break;
        case 1:
          patch.insertAfter(n, {"New", graph.node(n).inputs, {}, {f32(), f32()}});
          break;
        case 2:
          for (ValueId v : std::vector<ValueId>(graph.node(n).outputs))
            if (v.isValid())
              for (ValueId input : graph.node(n).inputs)
                if (input.isValid()) patch.replaceUses(v, input);
          break;
        case 3:
          patch.setInputs(n, {});
          break;
        case 4:
          for (ValueId v : std::vector<ValueId>(graph.node(n).outputs))
            if (v.isValid()) patch.makeConstant(v, Tensor::scalarF32(1));
          break;
        case 5:
          patch.removeDead();
          break;
        default:
          patch.releaseDeadConstants();
      }
      Status status = verify(graph);
      ASSERT_TRUE(status.isOk()) << "seed " << seed << ", step " << step << ": " << status.message();
    }
    std::string text = print(graph);
    auto again = parseGraph(text);
    ASSERT_TRUE(again.isOk()) << again.status().message() << "\n" << text;
    ASSERT_EQ(hash(*again), hash(graph)) << "seed " << seed << "\n" << text;
  }
}

// Growth, not speed: four times the nodes may take a few times as long, not sixteen times.
TEST(Patch, WorkGrowsLinearly) {
  auto seconds = [](int count) {
    auto start = std::chrono::steady_clock::now();
    Graph graph;
    Patch patch(graph);
    ValueId one = patch.addConstant("one", Tensor::scalarF32(1)), last = patch.addInput(graph.mainRegion(), "x", f32());
    for (int i = 0; i < count; ++i) {
      last = patch.output(patch.append(graph.mainRegion(), {"Add", {last, one}, {}, {f32()}}));
      last = patch.output(patch.append(graph.mainRegion(), {"Identity", {last}, {}, {f32()}}));
      patch.append(graph.mainRegion(), {"Mul", {last, one}, {}, {f32()}});
    }
    patch.setRegionOutputs(graph.mainRegion(), {last});
    graph.forEachNode([&](NodeId id) {
      const Node& node = graph.node(id);
      if (node.op == "Identity") patch.replaceUses(node.outputs[0], node.inputs[0]);
    });
    EXPECT_EQ(patch.removeDead(), 2 * count);
    EXPECT_TRUE(verify(graph).isOk());
    EXPECT_TRUE(parseGraph(print(graph)).isOk());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double small = 1e9, large = 1e9;
  for (int i = 0; i < 3; ++i) {  // the best of three: other processes run too
    small = std::min(small, seconds(3000));
    large = std::min(large, seconds(12000));
  }
  EXPECT_LT(large, 10 * small);
}

}  // namespace
}  // namespace locution::graph

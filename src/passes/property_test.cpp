// Every pass of the table, and all of them in a row, keep what a network computes.
#include <gtest/gtest.h>

#include <cmath>

#include "passes/pass.h"
#include "passes/random_network.h"
#include "passes/reference_run.h"

namespace locution::passes {
namespace {

constexpr int kNetworks = 60;

std::vector<Tensor> inputsOf(const graph::Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (graph::ValueId v : graph.main().inputs)
    inputs.push_back(RandomNetwork::randomTensor(graph.type(v).shape.extents(), random));
  return inputs;
}

void expectClose(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].dims(), want[k].dims()) << "output " << k;
    for (int64_t i = 0; i < got[k].elements(); ++i) {
      const double a = got[k].elementAsDouble(i), b = want[k].elementAsDouble(i);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_NEAR(a, b, 1e-3 * std::max(1.0, std::fabs(b))) << "output " << k << ", element " << i;
    }
  }
}

std::vector<std::string> namesOf(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const auto* list : {&graph.main().inputs, &graph.main().outputs})
    for (graph::ValueId v : *list) names.push_back(graph.value(v).name);
  return names;
}

/// All that is loops stands in kernels of bounded size; between them are views.
void expectFused(const graph::Graph& graph) {
  for (graph::NodeId id : graph.main().nodes) {
    const graph::Node& node = graph.node(id);
    if (node.op != "Kernel") {
      EXPECT_EQ(ops::findOp(node.op)->pattern, ops::Pattern::Alias) << node.op;
      continue;
    }
    EXPECT_LE(graph.region(node.regions[0]).nodes.size(), 32U);
    EXPECT_EQ(graph.region(node.regions[0]).outputs.size(), node.outputs.size());
  }
}

/// Runs the passes on random networks and compares outputs, names and the hash of a second run.
void keepsResult(const std::vector<const PassDef*>& passes, uint64_t firstSeed) {
  for (uint64_t seed = firstSeed; seed < firstSeed + kNetworks; ++seed) {
    graph::Graph graph = RandomNetwork(seed).run(6 + static_cast<int>(seed % 20));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + graph::print(graph, 64));
    const std::vector<Tensor> inputs = inputsOf(graph, seed);
    Result<std::vector<Tensor>> want = ReferenceRun(graph).run(inputs);
    ASSERT_TRUE(want.isOk()) << want.status().message();
    const std::vector<std::string> names = namesOf(graph);
    graph::Graph again = graph;
    PassContext context;
    for (const PassDef* pass : passes) {
      Status s = runPass(*pass, graph, context, {});
      ASSERT_TRUE(s.isOk()) << pass->name << ": " << s.message();
      ASSERT_TRUE(runPass(*pass, again, context, {}).isOk());
    }
    SCOPED_TRACE("after\n" + graph::print(graph, 64));
    EXPECT_EQ(graph::print(graph), graph::print(again));
    EXPECT_EQ(namesOf(graph), names);
    if (passes.back()->name == "fuse") expectFused(graph);
    Result<std::vector<Tensor>> got = ReferenceRun(graph).run(inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    expectClose(*got, *want);
    if (testing::Test::HasFailure()) return;
  }
}

class EachPass : public testing::TestWithParam<std::string> {};
TEST_P(EachPass, KeepsTheResult) { keepsResult({findPass(GetParam())}, 1000); }

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  for (const PassDef& pass : allPasses()) names.emplace_back(pass.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Table, EachPass, testing::ValuesIn(passNames()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(AllPasses, KeepTheResult) {
  std::vector<const PassDef*> passes;
  for (const char* name :
       {"infer-shapes", "fold-constants", "simplify", "cse", "dce", "fold-batch-norm", "simplify", "layout",
        "fold-constants", "simplify", "sink-transposes", "simplify", "cse", "dce", "infer-shapes", "fuse"})
    passes.push_back(findPass(name));
  keepsResult(passes, 5000);
}

}  // namespace
}  // namespace locution::passes

// Networks of ConvTransposes without overlap and what follows them give the same before and after split-conv-transpose.
#include <gtest/gtest.h>

#include <random>

#include "graph/patch.h"
#include "passes/pass.h"
#include "passes/reference_run.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

Tensor randomTensor(std::mt19937_64& random, const std::vector<int64_t>& dims) {
  Tensor t(DType::F32, dims);
  std::normal_distribution<float> normal(0, 1);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

struct Network {
  graph::Graph graph;
  graph::Patch patch{graph};
  std::mt19937_64 random;
  size_t spatial;
  ValueId value;
  int64_t channels = 3;
  int transposed = 0;

  Network(uint64_t seed, const std::vector<int64_t>& extents) : random(seed), spatial(extents.size()) {
    std::vector<int64_t> dims{2};
    dims.insert(dims.end(), extents.begin(), extents.end());
    dims.push_back(channels);
    ValueType type;
    type.shape = Shape::of(dims);
    value = patch.addInput(graph.mainRegion(), "x", type);
  }
  void add(const std::string& op, std::vector<ValueId> more, graph::Attrs attrs) {
    more.insert(more.begin(), value);
    graph::Patch::NewNode node{op, more, std::move(attrs), {ValueType()}};
    node.types[0].shape = Shape::unranked();
    value = patch.output(patch.append(graph.mainRegion(), node));
  }
  void convolution(const std::string& op, int64_t out, std::vector<int64_t> kernel, bool hasBias) {
    std::vector<int64_t> dims{op == "Conv" ? out : channels, op == "Conv" ? channels : out};
    dims.insert(dims.end(), kernel.begin(), kernel.end());
    std::vector<ValueId> inputs{patch.addConstant("w", randomTensor(random, dims))};
    if (hasBias) inputs.push_back(patch.addConstant("b", randomTensor(random, {out})));
    add(op, inputs, {{"channels_last", int64_t{1}}, {"strides", op == "Conv" ? Ints(kernel.size(), 1) : kernel}});
    transposed += op == "Conv" ? 0 : 1;
    channels = out;
  }
  void step() {
    Ints kernel;
    for (size_t i = 0; i < spatial; ++i) kernel.push_back(1 + static_cast<int64_t>(random() % 3));
    if (kernel == Ints(spatial, 1)) kernel[0] = 2;
    switch (random() % 5) {
      case 0:
        return add("Relu", {}, {});
      case 1:
        return add("Mul", {patch.addConstant("k", Tensor::scalarF32(0.5F))}, {});
      case 2:
        return convolution("Conv", 1 + static_cast<int64_t>(random() % 4), Ints(spatial, 1), random() % 2 == 0);
      default:
        return convolution("ConvTranspose", 1 + static_cast<int64_t>(random() % 3), kernel, random() % 2 == 0);
    }
  }
};

int count(const graph::Graph& graph, const std::string& op) {
  int n = 0;
  graph.forEachNode([&](NodeId id) { n += graph.node(id).op == op ? 1 : 0; });
  return n;
}

TEST(SplitConvTranspose, KeepsTheResult) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Network n(seed, seed % 3 == 0 ? Ints{5} : Ints{3, 2});
    for (int i = 0; i < 5; ++i) n.step();
    n.patch.setRegionOutputs(n.graph.mainRegion(), {n.value});
    PassContext context;
    ASSERT_TRUE(runPass(*findPass("infer-shapes"), n.graph, context, {}).isOk());
    SCOPED_TRACE(graph::print(n.graph, 0));
    std::vector<Tensor> inputs{randomTensor(n.random, n.graph.type(n.graph.main().inputs[0]).shape.extents())};
    Result<std::vector<Tensor>> want = ReferenceRun(n.graph).run(inputs);
    ASSERT_TRUE(want.isOk()) << want.status().message();
    ASSERT_TRUE(runPass(*findPass("split-conv-transpose"), n.graph, context, {}).isOk());
    EXPECT_EQ(count(n.graph, "ConvTranspose"), 0);
    EXPECT_EQ(count(n.graph, "Transpose"), n.transposed > 0 ? 1 : 0) << graph::print(n.graph, 0);
    Result<std::vector<Tensor>> got = ReferenceRun(n.graph).run(inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    ASSERT_EQ((*got)[0].dims(), (*want)[0].dims());
    for (int64_t i = 0; i < (*got)[0].elements(); ++i)
      ASSERT_NEAR((*got)[0].elementAsDouble(i), (*want)[0].elementAsDouble(i),
                  1e-4 * (1 + std::abs((*want)[0].elementAsDouble(i))))
          << i;
  }
}

TEST(SplitConvTranspose, LeavesOverlapGroupsAndPads) {
  struct Case {
    Ints kernel;
    graph::Attrs attrs;
  };
  for (const Case& c :
       {Case{{3, 3}, {{"strides", Ints{2, 2}}}}, Case{{2, 2}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}}},
        Case{{2, 2}, {{"strides", Ints{2, 2}}, {"group", int64_t{3}}}},
        Case{{2, 2}, {{"strides", Ints{2, 2}}, {"output_padding", Ints{1, 0}}}}}) {
    Network n(1, {3, 2});
    graph::Attrs attrs = c.attrs;
    attrs["channels_last"] = int64_t{1};
    n.add("ConvTranspose", {n.patch.addConstant("w", randomTensor(n.random, {3, 1, c.kernel[0], c.kernel[1]}))}, attrs);
    n.patch.setRegionOutputs(n.graph.mainRegion(), {n.value});
    PassContext context;
    ASSERT_TRUE(runPass(*findPass("infer-shapes"), n.graph, context, {}).isOk());
    ASSERT_TRUE(runPass(*findPass("split-conv-transpose"), n.graph, context, {}).isOk());
    EXPECT_EQ(count(n.graph, "ConvTranspose"), 1) << graph::print(n.graph, 0);
  }
}

}  // namespace
}  // namespace locution::passes

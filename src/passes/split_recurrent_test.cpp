// Random recurrent layers give the same before and after split-recurrent, on targets with different register tiles.
#include <cmath>
#include <random>

#include "ops/node_case.h"
#include "passes/pass.h"
#include "passes/reference_run.h"

namespace locution::passes {
namespace {

using ops::NodeCase;
using ops::NodeInput;

struct Random {
  std::mt19937_64 engine;
  int64_t pick(std::initializer_list<int64_t> list) { return list.begin()[engine() % list.size()]; }
  Tensor tensor(const std::vector<int64_t>& dims) {
    Tensor t(DType::F32, dims);
    std::normal_distribution<float> normal(0, 0.5F);
    for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(engine);
    return t;
  }
};

graph::Attr text(const std::string& s) { return graph::Attr(s); }

NodeCase randomLayer(Random& r) {
  const auto cells = {std::string("LSTM"), std::string("GRU"), std::string("RNN")};
  const std::string cell = cells.begin()[r.engine() % 3];
  const int64_t gates = cell == "LSTM" ? 4 : cell == "GRU" ? 3 : 1;
  const int64_t direction = r.pick({0, 1, 2}), d = direction == 2 ? 2 : 1;
  const int64_t steps = r.pick({1, 2, 5}), batch = r.pick({1, 1, 2, 3, 7}), hidden = r.pick({1, 4, 6, 16, 19, 40}),
                inputs = r.pick({1, 5, 8});
  const bool batchFirst = r.engine() % 3 == 0;
  auto byLayout = [&](int64_t first, int64_t b, int64_t last) {
    return batchFirst ? std::vector<int64_t>{b, first, last} : std::vector<int64_t>{first, b, last};
  };
  std::vector<NodeInput> in(8);
  std::set<size_t> constants{1, 2, 3, 7};
  in[0] = r.tensor(byLayout(steps, batch, inputs));
  in[1] = r.tensor({d, gates * hidden, inputs});
  in[2] = r.tensor({d, gates * hidden, hidden});
  if (r.engine() % 2 == 0) in[3] = r.tensor({d, 2 * gates * hidden});
  if (r.engine() % 3 == 0) {
    Tensor lengths(DType::I32, {batch});
    for (int64_t b = 0; b < batch; ++b) lengths.setElementInt(b, static_cast<int64_t>(r.engine() % (steps + 1)));
    in[4] = lengths;
  }
  if (r.engine() % 2 == 0) in[5] = r.tensor(byLayout(d, batch, hidden));
  if (cell == "LSTM" && r.engine() % 2 == 0) in[6] = r.tensor(byLayout(d, batch, hidden));
  if (cell == "LSTM" && r.engine() % 2 == 0) in[7] = r.tensor({d, 3 * hidden});
  if (cell != "LSTM") in.resize(6);
  graph::Attrs attrs{{"hidden_size", hidden}, {"layout", int64_t{batchFirst}}};
  attrs["direction"] = text(direction == 0 ? "forward" : direction == 1 ? "reverse" : "bidirectional");
  if (r.engine() % 3 == 0) attrs["clip"] = 0.7;
  if (cell == "GRU") attrs["linear_before_reset"] = static_cast<int64_t>(r.engine() % 2);
  if (cell == "LSTM") attrs["input_forget"] = static_cast<int64_t>(r.engine() % 4 == 0);
  std::vector<bool> wanted{r.engine() % 4 != 0, true};
  if (cell == "LSTM") wanted.push_back(r.engine() % 2 == 0);
  return NodeCase(cell, in, attrs, wanted, constants);
}

void expectSame(NodeCase& layer, const TargetSpec& target, const std::string& becomes) {
  std::vector<Tensor> inputs;
  PassContext context;
  context.target = &target;
  ASSERT_TRUE(runPass(*findPass("infer-shapes"), layer.graph, context, {}).isOk());
  for (graph::ValueId v : layer.graph.main().inputs)
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      if (layer.graph.value(v).name == "in" + std::to_string(i)) inputs.push_back(*layer.inputs[i].tensor);
  Result<std::vector<Tensor>> want = ReferenceRun(layer.graph).run(inputs);
  ASSERT_TRUE(want.isOk()) << want.status().message();
  ASSERT_TRUE(runPass(*findPass("split-recurrent"), layer.graph, context, {}).isOk());
  ASSERT_TRUE(runPass(*findPass("infer-shapes"), layer.graph, context, {}).isOk());
  EXPECT_EQ(layer.graph.node(layer.node).op, becomes);
  Result<std::vector<Tensor>> got = ReferenceRun(layer.graph).run(inputs);
  ASSERT_TRUE(got.isOk()) << got.status().message();
  ASSERT_EQ(got->size(), want->size());
  for (size_t k = 0; k < got->size(); ++k) {
    ASSERT_EQ((*got)[k].dims(), (*want)[k].dims());
    for (int64_t i = 0; i < (*got)[k].elements(); ++i)
      ASSERT_NEAR((*got)[k].elementAsDouble(i), (*want)[k].elementAsDouble(i), 1e-4) << "output " << k << ", " << i;
  }
}

TEST(SplitRecurrent, KeepsTheResult) {
  Random random{std::mt19937_64(7)};
  for (int i = 0; i < 150; ++i) {
    TargetSpec target;
    target.vectorBytes = static_cast<int>(random.pick({16, 32, 64}));
    target.vectorRegisters = target.vectorBytes == 64 ? 32 : 16;
    target.threads = static_cast<int>(random.pick({1, 2, 4, 9}));
    NodeCase layer = randomLayer(random);
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + graph::print(layer.graph, 0));
    expectSame(layer, target, "Recurrence");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SplitRecurrent, LeavesWhatItCannotDo) {
  Random random{std::mt19937_64(1)};
  Tensor x = random.tensor({2, 1, 3}), w = random.tensor({1, 4, 3}), r = random.tensor({1, 4, 4});
  NodeCase variable("RNN", {x, w, r}, {}, {true}, {1});
  expectSame(variable, TargetSpec(), "RNN");
  Tensor w2 = random.tensor({2, 4, 3}), r2 = random.tensor({2, 4, 4});
  graph::Attrs differ{{"direction", text("bidirectional")},
                      {"activations", graph::Attr(std::vector<std::string>{"Tanh", "Relu"})}};
  NodeCase twoKinds("RNN", {x, w2, r2}, differ, {true}, {1, 2});
  expectSame(twoKinds, TargetSpec(), "RNN");
}

}  // namespace
}  // namespace locution::passes

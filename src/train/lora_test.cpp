// Low-rank adaptation: gradients of its matrices are those of the whole matrices, projected; training changes nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "generator/tlm/adapter.h"
#include "generator/tlm/model.h"
#include "train/gradient_cases.h"
#include "train/step.h"
#include "train/tlm_batches.h"

namespace locution::train {
namespace {

namespace tlm = generator::tlm;

tlm::ModelConfig tiny() {
  tlm::ModelConfig c;
  c.layers = 2;
  c.width = 32;
  c.heads = 2;
  c.context = 64;
  c.words = 50;
  return c;
}

/// Four sentences of a dozen words, half of them decisions among five; two of a workload.
Examples madeUpExamples() {
  Examples out;
  for (int g = 0; g < 2; ++g) {
    ExampleGroup group{std::string(1, static_cast<char>('a' + g)), "target", "machine", {}};
    for (int e = 0; e < 2; ++e) {
      Example x;
      for (int t = 0; t < 12; ++t) x.tokens.push_back((7 * t + 13 * g + 3 * e) % 50);
      for (int t = 6; t < 12; ++t) {
        x.places.push_back(t);
        for (int k = 0; k < 5; ++k) x.legal.push_back((x.tokens[static_cast<size_t>(t)] + 9 * k) % 50);
        x.legalEnd.push_back(static_cast<int32_t>(x.legal.size()));
      }
      x.slowdown = 1 + 0.1 * e;
      x.value = 0.5 + g - e;
      group.examples.push_back(std::move(x));
    }
    out.groups.push_back(std::move(group));
  }
  return out;
}

Tensor floats(const Tensor& t) {
  Tensor out(DType::F32, t.dims());
  for (int64_t i = 0; i < t.elements(); ++i) out.setElement(i, t.elementAsDouble(i));
  return out;
}

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.elements(); ++i) most = std::max(most, std::abs(t.elementAsDouble(i)));
  return most;
}

std::vector<std::string> names(const std::vector<tlm::ParameterInfo>& parameters) {
  std::vector<std::string> out;
  for (const tlm::ParameterInfo& p : parameters) out.push_back(p.name);
  return out;
}

TEST(Lora, GradientsAreTheMatricesProjected) {
  const tlm::ModelConfig config = tiny();
  const tlm::Lora lora{3, 6};
  const Examples examples = madeUpExamples();
  TlmBatches batches(examples, 4, 2, 1, {});
  const tlm::TrainingShape shape = [&] {
    tlm::TrainingShape s = batches.shape(1);
    s.length = config.context;
    s.lines = 1;
    return s;
  }();
  const Tensors data = batches.at(0, shape, config.words);
  tlm::Weights base{config, tlm::randomParameters(config, 1)};
  // Far from the start, where B is zero and A has no gradient.
  tlm::Parameters low = tlm::initialLora(config, lora, base.parameters, 2);
  uint64_t seed = 10;
  for (auto& [name, tensor] : low)
    if (name.ends_with(".lora_b")) tensor = floats(numbers(tensor.dims(), -0.05, 0.05, ++seed));

  StepOptions options;
  options.keepGradients = true;
  driver::CompileOptions compile;
  auto adapting = TrainingStep::create(tlm::trainingGraph(config, shape, lora), "loss",
                                       names(tlm::loraParametersOf(config, lora)), options, compile);
  ASSERT_TRUE(adapting.isOk()) << adapting.status().message();
  ASSERT_TRUE((*adapting)->start(low).isOk());
  Tensors with = data;
  with.insert(base.parameters.begin(), base.parameters.end());
  Status ran = (*adapting)->run(with, 1e-3);
  ASSERT_TRUE(ran.isOk()) << ran.message();

  tlm::Adapter adapter{lora, low, {}, base.key(), config.words, ""};
  auto merged = tlm::adapted(base, adapter);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  auto dense = TrainingStep::create(tlm::trainingGraph(config, shape), "loss", names(tlm::parametersOf(config)),
                                    options, compile);
  ASSERT_TRUE(dense.isOk()) << dense.status().message();
  ASSERT_TRUE((*dense)->start(merged->parameters).isOk());
  ran = (*dense)->run(data, 1e-3);
  ASSERT_TRUE(ran.isOk()) << ran.message();

  EXPECT_NEAR((*adapting)->loss(), (*dense)->loss(), 1e-5 * std::abs((*dense)->loss()));
  auto gradient = [](const TrainingStep& step, const std::string& name) { return step.output("gradient." + name); };
  for (const char* name : {"value.weight", "value.bias"}) {
    const Tensor want = gradient(**dense, name), is = gradient(**adapting, name);
    EXPECT_GT(largest(want), 0);
    for (int64_t i = 0; i < want.elements(); ++i)
      EXPECT_NEAR(is.elementAsDouble(i), want.elementAsDouble(i), 1e-4 * largest(want)) << name;
  }
  const double scale = lora.scale();
  for (const tlm::ParameterInfo& p : tlm::adaptedMatrices(config)) {
    const Tensor whole = gradient(**dense, p.name);
    const Tensor &a = low.at(tlm::loraA(p.name)), &b = low.at(tlm::loraB(p.name));
    const Tensor ofA = gradient(**adapting, tlm::loraA(p.name)), ofB = gradient(**adapting, tlm::loraB(p.name));
    ASSERT_GT(largest(ofA), 0) << p.name;
    ASSERT_GT(largest(ofB), 0) << p.name;
    const int64_t in = p.dims[0], out = p.dims[1], rank = lora.rank;
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t i = 0; i < in; ++i) {  // dA = scale dW B^T
        double want = 0;
        for (int64_t j = 0; j < out; ++j)
          want += scale * whole.elementAsDouble(i * out + j) * b.elementAsDouble(k * out + j);
        EXPECT_NEAR(ofA.elementAsDouble(i * rank + k), want, 1e-4 * largest(ofA)) << p.name;
      }
      for (int64_t j = 0; j < out; ++j) {  // dB = scale A^T dW
        double want = 0;
        for (int64_t i = 0; i < in; ++i)
          want += scale * a.elementAsDouble(i * rank + k) * whole.elementAsDouble(i * out + j);
        EXPECT_NEAR(ofB.elementAsDouble(k * out + j), want, 1e-4 * largest(ofB)) << p.name;
      }
    }
  }
}

}  // namespace
}  // namespace locution::train

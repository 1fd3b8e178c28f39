// What decoding computes: what the training graph computes, and the same bits on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "driver/compiler.h"
#include "generator/rules.h"
#include "generator/tlm/decoder.h"
#include "language/choice_tokens.h"
#include "language/sentence.h"
#include "runtime/context.h"
#include "runtime/cpu_features.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

Result<std::vector<Tensor>> runGraph(graph::Graph graph, const driver::CompileOptions& options,
                                     const std::map<std::string, Tensor>& inputs) {
  LOCUTION_ASSIGN_OR_RETURN(driver::Compiled compiled, driver::compileGraph(std::move(graph), options));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program,
                            runtime::Program::load(compiled.executable));
  runtime::Context context(program, nullptr);
  for (size_t i = 0; i < compiled.executable->inputs.size(); ++i)
    LOCUTION_RETURN_IF_ERROR(context.setInput(i, inputs.at(compiled.executable->inputs[i].name)));
  LOCUTION_RETURN_IF_ERROR(context.run());
  std::vector<Tensor> out;
  for (size_t i = 0; i < compiled.executable->outputs.size(); ++i) out.push_back(context.output(i));
  return out;
}

/// One sentence, as a training step sees it.
std::map<std::string, Tensor> trainingInputs(const tlm::Weights& weights, const space::Space& space,
                                             const space::Choices& choices, const tlm::TrainingShape& shape) {
  std::map<std::string, Tensor> in;
  for (const auto& [name, tensor] : weights.parameters) in[name] = tensor;
  const std::vector<language::Token> tokens = language::sentenceTokens(space, choices);
  Tensor words(DType::I64, {1, shape.length}), rows(DType::I64, {shape.decisions}),
      labels(DType::I64, {shape.decisions});
  Tensor weight(DType::F32, {shape.decisions}), legal(DType::Bool, {shape.decisions, weights.config.words});
  for (size_t i = 0; i < tokens.size(); ++i) words.data<int64_t>()[i] = tokens[i];
  language::Grammar grammar(space);
  const auto prompt = static_cast<int64_t>(language::prefixTokens(space).size());
  for (size_t i = 0; i < choices.size(); ++i) {
    rows.data<int64_t>()[i] = prompt + static_cast<int64_t>(i) - 1;
    labels.data<int64_t>()[i] = tokens[static_cast<size_t>(prompt) + i];
    weight.data<float>()[i] = 1;
    for (language::Token t : grammar.legal())
      legal.data<uint8_t>()[static_cast<int64_t>(i) * weights.config.words + t] = 1;
    grammar.accept(tokens[static_cast<size_t>(prompt) + i]);
  }
  for (auto i = static_cast<int64_t>(choices.size()); i < shape.decisions; ++i)
    legal.data<uint8_t>()[i * weights.config.words] = 1;
  in["tokens"] = words;
  Tensor positions(DType::I64, {1, shape.length});
  for (int64_t i = 0; i < shape.length; ++i) positions.data<int64_t>()[i] = i;
  in["positions"] = positions;
  in["segments"] = Tensor(DType::I64, {1, shape.length});
  in["rows"] = rows;
  in["labels"] = labels;
  in["weights"] = weight;
  in["legal"] = legal;
  in["ends"] = Tensor::vectorI64({static_cast<int64_t>(tokens.size()) - 1});
  for (const char* name : {"value.targets", "value.weights"}) in[name] = Tensor(DType::F32, {1});
  for (const char* name : {"rank.targets", "rank.mask"}) in[name] = Tensor(DType::F32, {1, 1});
  return in;
}

TEST(Inference, IsWhatTrainingComputes) {
  const Model model(randomWeights(smallModel(), 5, 4));
  tlm::Reader reader(model.network, model.programs);
  const TargetSpec target;
  int checked = 0;
  for (const loop::Computation& kernel : smallKernels()) {
    const space::Space space(kernel, target);
    tlm::Decoding decoding;
    decoding.sentences = 5;
    decoding.wantsValues = true;
    decoding.also = generator::analyticWalk(space).choices();
    auto decoded = tlm::decode(reader, *model.network, space, decoding);
    ASSERT_TRUE(decoded.isOk()) << decoded.status().message();
    for (const tlm::Decoded& d : *decoded) {
      if (!d.isAlso || ++checked > 6) continue;
      const tlm::TrainingShape shape{1, 192, 1, 64, 1};
      auto got = runGraph(tlm::trainingGraph(model.weights.config, shape), {},
                          trainingInputs(model.weights, space, d.walk.choices(), shape));
      ASSERT_TRUE(got.isOk()) << got.status().message();
      EXPECT_NEAR((*got)[1].data<float>()[0], -d.logProbability, 1e-3 * (1 + std::fabs(d.logProbability)))
          << kernel.name;
      EXPECT_NEAR((*got)[5].data<float>()[0], d.value, 1e-3 * (1 + std::fabs(d.value))) << kernel.name;
    }
  }
  EXPECT_GT(checked, 6);
}

Tensor numbers(const std::vector<int64_t>& dims, uint64_t seed) {
  Tensor t(DType::F32, dims);
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (int64_t i = 0; i < t.elements(); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    t.data<float>()[i] = static_cast<float>(static_cast<int64_t>(state >> 33) - (int64_t{1} << 30)) * 0x1p-30F;
  }
  return t;
}

// Instruction sets that this machine lacks are run under an emulator by tests/tlm/test_same_bits.py.
TEST(Inference, HasTheSameBitsOnEveryInstructionSet) {
  const tlm::ModelConfig config;
  const int64_t first = language::firstChoiceToken();
  for (const tlm::InferenceShape shape : {tlm::InferenceShape{8, 16, 0}, {4, 64, 16}, {1, 64, 16}}) {
    std::vector<std::vector<Tensor>> results;
    std::vector<std::string> names;
    for (const char* cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
      driver::CompileOptions options = driver::inferenceOptions();
      options.cpu = cpu;
      auto target = driver::resolveTarget(options);
      if (!target.isOk() || !runtime::missingFeatures(target->features).empty()) continue;
      auto compiled = driver::compileGraph(tlm::inferenceGraph(config, shape, first), options);
      ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
      std::map<std::string, Tensor> inputs;
      for (const runtime::Port& port : compiled->executable->inputs)
        inputs[port.name] = numbers(port.dims, inputs.size() + 1);
      auto got = runGraph(tlm::inferenceGraph(config, shape, first), options, inputs);
      ASSERT_TRUE(got.isOk()) << got.status().message();
      results.push_back(std::move(*got));
      names.emplace_back(cpu);
    }
    ASSERT_GE(results.size(), 2U);
    for (size_t r = 1; r < results.size(); ++r)
      for (size_t i = 0; i < results[r].size(); ++i)
        EXPECT_TRUE(results[0][i].identical(results[r][i]))
            << shape.name() << ", output " << i << ", " << names[0] << " and " << names[r];
  }
}

}  // namespace
}  // namespace locution::tests

// The programs that were compiled ahead: all there, and each instruction set draws the sentences that the others do.
// LOCUTION_TLM_SENTENCES=SET prints those of one set, whatever this machine is: for emulators.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "driver/tlm_embedded.h"
#include "generator/rules.h"
#include "generator/tlm/decoder.h"
#include "language/sentence.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

using driver::EmbeddedPrograms;

/// Sentences and values (all of their bits) of several kernels on several targets; of fewer for an emulator.
std::string sentencesOf(const std::string& set, bool asked = false) {
  const tlm::Weights weights = randomWeights(tlm::ModelConfig(), 1, 4);
  const auto embedded = EmbeddedPrograms::get();
  auto network = std::make_shared<const tlm::Network>(weights);
  auto programs = std::make_shared<const tlm::ProgramSource>(
      [&](const tlm::InferenceShape& shape) { return embedded->load(set, shape); });
  tlm::Reader reader(network, programs);
  std::string out;
  const std::vector<loop::Computation> kernels = smallKernels();
  for (const TargetSpec& target : severalTargets())
    for (size_t k = 0; k < kernels.size(); k += asked ? 9 : 3) {
      const space::Space space(kernels[k], target);
      tlm::Decoding decoding;
      decoding.sentences = 8;
      decoding.seed = k;
      decoding.wantsValues = true;
      decoding.also = generator::analyticWalk(space).choices();
      auto decoded = tlm::decode(reader, *network, space, decoding);
      if (!decoded.isOk()) return decoded.status().message();
      for (const tlm::Decoded& d : *decoded) {
        char value[40];
        std::snprintf(value, sizeof(value), "%a ", d.value);
        out += value + language::planText(d.walk.choices()) + "\n";
      }
    }
  return out;
}

TEST(Embedded, HoldsEveryShapeForEveryInstructionSet) {
  const auto embedded = EmbeddedPrograms::get();
  ASSERT_NE(embedded, nullptr);
  const size_t shapes = tlm::inferenceShapes(embedded->config()).size();
  EXPECT_EQ(embedded->names().size(), shapes * driver::tlmInstructionSets().size());
  EXPECT_TRUE(embedded->bestInstructionSet().has_value());
  EXPECT_NE(embedded->load("x86-64-v3", {3, 5, 7}).status().message().find("there is no program"), std::string::npos);
}

TEST(Embedded, EveryInstructionSetDrawsTheSameSentences) {
  const char* asked = std::getenv("LOCUTION_TLM_SENTENCES");
  if (asked) {
    std::fputs(sentencesOf(asked, true).c_str(), stdout);
    return;
  }
  const auto embedded = EmbeddedPrograms::get();
  ASSERT_NE(embedded, nullptr);
  std::string first;
  int sets = 0;
  for (const std::string& set : driver::tlmInstructionSets()) {
    // What this machine lacks is for an emulator: tests/tlm/test_embedded.py.
    if (!embedded->load(set, tlm::inferenceShapes(embedded->config())[0]).isOk()) continue;
    const std::string sentences = sentencesOf(set);
    EXPECT_GT(sentences.size(), 10000U);
    if (sets++ == 0) first = sentences;
    EXPECT_EQ(sentences, first) << set;
  }
  EXPECT_GE(sets, 1);
}

}  // namespace
}  // namespace locution::tests

// The scheduler `tlm` from the outside, and its weights as a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "driver/compiler.h"
#include "driver/scheduling.h"
#include "generator/rules.h"
#include "generator/tlm/tlm_scheduler.h"
#include "support/strings.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

class TlmFile : public testing::Test {
 protected:
  TlmFile()
      : path_(std::filesystem::temp_directory_path() / ("tlm_test." + std::to_string(getpid()) + ".safetensors")) {}
  ~TlmFile() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::filesystem::path path_;
};

std::string messageFor(tlm::SafeTensors content) { return tlm::weightsFrom(std::move(content)).status().message(); }

TEST_F(TlmFile, ReadsWhatItWrote) {
  tlm::Weights w = randomWeights(smallModel(), 1);
  w.notes["trained on"] = "nothing";
  w.margin = 0.125;
  ASSERT_TRUE(tlm::writeWeights(w, path_.string()).isOk());
  auto back = tlm::readWeights(path_.string());
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->config, w.config);
  EXPECT_EQ(back->margin, w.margin);
  EXPECT_EQ(back->notes, w.notes);
  EXPECT_EQ(back->hash(), w.hash());
  for (const auto& [name, tensor] : w.parameters) EXPECT_TRUE(tensor.identical(back->parameters.at(name))) << name;
}

TEST_F(TlmFile, WordsThatCameLaterGetZeros) {
  tlm::ModelConfig older = smallModel();
  older.words -= 10;
  auto back = tlm::weightsFrom(tlm::asSafeTensors(randomWeights(older, 1)));
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->config.words, smallModel().words);
  const Tensor& words = back->parameters.at("wte.weight");
  for (int64_t i = older.words * older.width; i < words.elements(); ++i) EXPECT_EQ(words.data<float>()[i], 0);
  EXPECT_NE(words.data<float>()[older.words * older.width - 1], 0);
}

TEST_F(TlmFile, RefusesWhatDoesNotFit) {
  const tlm::SafeTensors good = tlm::asSafeTensors(randomWeights(smallModel(), 1));
  auto with = [&](auto change) {
    tlm::SafeTensors c = good;
    change(c);
    return messageFor(std::move(c));
  };
  EXPECT_EQ(with([](tlm::SafeTensors&) {}), "");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.metadata.erase("format"); }),
            "no weights of a Tensor Language Model: its metadata lack format = locution-tlm-1");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.metadata["grammar"] = "7"; }),
            "the model was trained with grammar \"7\", this compiler's is \"1\"");
  EXPECT_NE(with([](tlm::SafeTensors& c) { c.metadata["vocabulary.hash"] = "0123"; }).find("are not the first of this"),
            std::string::npos);
  EXPECT_NE(with([](tlm::SafeTensors& c) { c.metadata["vocabulary"] = "9999"; }).find("trained with a newer one"),
            std::string::npos);
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.metadata["layers"] = "1000000000000"; }),
            "metadata: layers wants a number from 1 to 48");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.metadata["width"] = "63"; }),
            "metadata: the width must be a multiple of 32 and of the heads");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.tensors.erase("ln_f.bias"); }), "the parameter \"ln_f.bias\" is missing");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.tensors["more"] = Tensor(DType::F32, {1}); }),
            "unknown parameter \"more\"");
  EXPECT_EQ(with([](tlm::SafeTensors& c) { c.tensors["ln_f.bias"] = Tensor(DType::F32, {65}); }),
            "the parameter \"ln_f.bias\" is float32[65], expected float32[64]");
  EXPECT_EQ(with([](tlm::SafeTensors& c) {
              c.tensors["ln_f.bias"] = Tensor::of<float>(DType::F32, {64}, std::vector<float>(64, NAN));
            }),
            "the parameter \"ln_f.bias\" holds a number that is not finite");
}

TEST_F(TlmFile, HostileBytesAreRefused) {
  const std::string good = tlm::safeTensorsBytes(tlm::asSafeTensors(randomWeights(smallModel(), 1)));
  auto parse = [](const std::string& bytes) {
    return tlm::parseSafeTensors(std::as_bytes(std::span(bytes.data(), bytes.size()))).status().message();
  };
  auto headed = [](const std::string& header, size_t data) {
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + std::string(data, '\0');
  };
  EXPECT_EQ(parse(good), "");
  EXPECT_EQ(parse("abc"), "not a safetensors file: shorter than its length field");
  EXPECT_EQ(parse(std::string(64, '\xff')), "not a safetensors file: its header would end behind the file");
  EXPECT_EQ(parse(headed("[1", 0)), "not a safetensors file: its header is no JSON object");
  EXPECT_EQ(parse(headed(std::string(100000, '['), 0)), "not a safetensors file: its header is no JSON object");
  EXPECT_EQ(parse(good.substr(0, good.size() - 1)).find("data_offsets outside") == std::string::npos, false);
  EXPECT_EQ(parse(good + "x"), "there are bytes behind the last tensor");
  EXPECT_EQ(parse(headed(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
            "tensor \"a\": the shape 4611686018427387904x4 doesn't fit its 0 bytes");
  EXPECT_EQ(parse(headed(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
            "tensor \"a\": a dim that is no natural number");
  EXPECT_EQ(parse(headed(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4)),
            "tensor \"a\": unknown dtype \"F99\"");
  EXPECT_EQ(
      parse(headed(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          4)),
      "tensor \"b\": its bytes overlap others or leave a gap");
  EXPECT_EQ(
      parse(headed(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          4)),
      "the header names \"a\" twice");
  // A header that any byte of was changed in is read or refused; nothing else happens.
  for (size_t at = 0; at < 600; ++at)
    for (char c : {'\0', '9', '"', '{', '\xff'}) {
      std::string bad = good;
      bad[at] = c;
      (void)parse(bad);
    }
}

TEST_F(TlmFile, CompilesAModel) {
  ASSERT_TRUE(tlm::writeWeights(randomWeights(smallModel(), 6, 20), path_.string()).isOk());
  driver::CompileOptions options;
  options.scheduler = "tlm:greedy";
  options.tlmWeights = path_.string();
  // What random weights choose can take seconds to compile: a network of one kernel.
  auto network = [] {
    tlm::GraphBuilder b("product");
    const auto x = b.input("x", DType::F32, {24, 40});
    b.output(b.matMul(x, b.input("y", DType::F32, {40, 17})), "z");
    return b.take();
  };
  auto one = driver::compileGraph(network(), options), two = driver::compileGraph(network(), options);
  ASSERT_TRUE(one.isOk()) << one.status().message();
  ASSERT_TRUE(two.isOk()) << two.status().message();
  EXPECT_EQ(one->executable->code, two->executable->code);
  options.scheduler = "analytic";
  options.tlmWeights.clear();
  auto ruled = driver::compileGraph(network(), options);
  ASSERT_TRUE(ruled.isOk()) << ruled.status().message();
  EXPECT_NE(one->executable->kernels[0].sentence, ruled->executable->kernels[0].sentence);
}

TEST_F(TlmFile, SaysWhatIsWrong) {
  driver::CompileOptions options;
  options.scheduler = "tlm";
  // Nothing is linked into this test.
  EXPECT_EQ(driver::compileGraph(convolutions(), options).status().message(),
            "--scheduler tlm: this build has no weights of the language model; give some with --tlm-weights FILE");
  options.tlmWeights = path_.string();
  EXPECT_EQ(driver::compileGraph(convolutions(), options).status().message(),
            "--tlm-weights: " + path_.string() + ": No such file or directory");
  std::ofstream(path_) << "no weights";
  EXPECT_EQ(driver::compileGraph(convolutions(), options).status().message(),
            "--tlm-weights: " + path_.string() + ": not a safetensors file: its header would end behind the file");
  options.scheduler = "analytic";
  EXPECT_EQ(driver::compileGraph(convolutions(), options).status().message(),
            "--tlm-weights: the scheduler analytic reads no weights");
  for (const char* bad : {"tlm:", "tlm:0", "tlm:x", "tlm:-3", "tlm:5000"})
    EXPECT_NE(driver::parseScheduler(bad).status().message().find("want tlm, tlm:greedy, or tlm:N"), std::string::npos);
  EXPECT_EQ(driver::parseScheduler("tlm")->sentences, 32);
  EXPECT_EQ(driver::parseScheduler("tlm:7")->sentences, 7);
  EXPECT_EQ(driver::parseScheduler("tlm:greedy")->sentences, 0);
}

// With a margin that nothing overcomes the analytic plan stays; greedy never asks.
TEST_F(TlmFile, AnalyticPlanIsTheCandidateToBeat) {
  tlm::Weights w = randomWeights(smallModel(), 7, 20);
  w.margin = 1e9;
  const TargetSpec target;
  auto careful = tlm::makeTlm(w, *programsFor(w.config), {8, false});
  auto greedy = tlm::makeTlm(w, *programsFor(w.config), {1, true});
  size_t different = 0;
  for (const loop::Computation& kernel : smallKernels()) {
    const space::Space space(kernel, target);
    const space::Choices analytic = generator::analyticWalk(space).choices();
    EXPECT_EQ(careful->choices(space), analytic) << kernel.name;
    const auto written = greedy->choices(space);
    different += written == analytic ? 0 : 1;
    // A line for the value, then one a word; each starts with the likeliest of its words, since greedy says that.
    std::vector<std::string> lines = splitText(greedy->explain(space), '\n');
    ASSERT_EQ(lines.size(), written->size() + 2) << greedy->explain(space);
    EXPECT_EQ(lines[0].substr(0, 6), "value ");
    for (size_t i = 0; i < written->size(); ++i) {
      const space::Choice& choice = (*written)[i];
      const size_t bar = lines[i + 1].find(" |  ");
      ASSERT_NE(bar, std::string::npos) << lines[i + 1];
      EXPECT_EQ(lines[i + 1].substr(6, bar - 6), space::choiceText(choice.decision, choice.value));
      const std::string next = lines[i + 1].substr(bar + 4);
      EXPECT_GE(lines[i + 1].substr(0, 5), next.substr(next.find(' ') + 1, 5));
    }
  }
  EXPECT_GT(different, 5U);
}

}  // namespace
}  // namespace locution::tests

// Adapters: what is merged, what the file refuses, and that known plans are played.
#include "generator/tlm/adapter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "driver/compiler.h"
#include "driver/language_model.h"
#include "generator/random.h"
#include "generator/tlm/decoder.h"
#include "generator/tlm/proposer.h"
#include "generator/tlm/tlm_scheduler.h"
#include "language/sentence.h"
#include "space/workload.h"
#include "support/hash.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

class AdapterFile : public testing::Test {
 protected:
  AdapterFile() { std::filesystem::create_directories(folder_); }
  ~AdapterFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("adapter_test." + std::to_string(getpid()));
};

/// Matrices of random numbers of which none is zero.
tlm::Adapter randomAdapter(const tlm::Weights& base, uint64_t seed, int64_t rank = 3) {
  tlm::Adapter a;
  a.lora = {rank, 6};
  a.base = base.key();
  a.words = base.config.words;
  a.machine = "model = a test's\n";
  a.parameters = tlm::initialLora(base.config, a.lora, base.parameters, seed);
  for (auto& [name, tensor] : a.parameters)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data<float>()[i] += static_cast<float>((i * 37 + 11) % 101 - 50) * 1e-3F;
  return a;
}

TEST(Adapter, IsAddedToTheMatrices) {
  const tlm::Weights base = randomWeights(smallModel(), 1);
  const tlm::Adapter a = randomAdapter(base, 2);
  auto merged = tlm::adapted(base, a);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  size_t changed = 0;
  for (const auto& [name, tensor] : base.parameters) {
    const Tensor& now = merged->parameters.at(name);
    if (auto own = a.parameters.find(name); own != a.parameters.end()) {
      EXPECT_TRUE(now.identical(own->second)) << name;  // the value head
      continue;
    }
    auto low = a.parameters.find(tlm::loraA(name));
    if (low == a.parameters.end() || tensor.rank() != 2 || !name.starts_with("h.")) {
      EXPECT_TRUE(now.identical(tensor)) << name;
      continue;
    }
    ++changed;
    const Tensor &left = low->second, &right = a.parameters.at(tlm::loraB(name));
    for (int64_t i = 0; i < tensor.dims()[0]; ++i)
      for (int64_t j = 0; j < tensor.dims()[1]; ++j) {
        double want = tensor.elementAsDouble(i * tensor.dims()[1] + j);
        for (int64_t k = 0; k < 3; ++k)
          want += 2 * left.elementAsDouble(i * 3 + k) * right.elementAsDouble(k * tensor.dims()[1] + j);
        ASSERT_NEAR(now.elementAsDouble(i * tensor.dims()[1] + j), want, 1e-6) << name;
      }
  }
  EXPECT_EQ(changed, 8u);  // four matrices of two layers
}

// What training computes with matrices beside the model's is what decoding computes with those that were merged: the gradient of one is
// checked in train/lora_test.cpp, the programs in inference_test.cpp.
TEST(Adapter, AtFirstChangesNothing) {
  const tlm::Weights base = randomWeights(smallModel(), 1);
  tlm::Adapter a;
  a.base = base.key();
  a.words = base.config.words;
  for (int64_t rank : {0, 4}) {
    a.lora = {rank, 8};
    a.parameters = tlm::initialLora(base.config, a.lora, base.parameters, 3);
    EXPECT_EQ(a.parameters.empty(), rank == 0);
    auto merged = tlm::adapted(base, a);
    ASSERT_TRUE(merged.isOk()) << merged.status().message();
    EXPECT_EQ(merged->hash(), base.hash());
  }
}

TEST(Adapter, KeyOfWeightsIsThatOfTheFile) {
  tlm::ModelConfig older = smallModel();
  older.words -= 10;
  const tlm::Weights then = randomWeights(older, 1);
  auto now = tlm::weightsFrom(tlm::asSafeTensors(then));  // with rows for the words that came since
  ASSERT_TRUE(now.isOk());
  EXPECT_EQ(now->key(), then.key());
  EXPECT_NE(now->hash(), then.hash());
  EXPECT_NE(randomWeights(older, 2).key(), then.key());
}

TEST_F(AdapterFile, ReadsWhatItWrote) {
  const tlm::Weights base = randomWeights(smallModel(), 1);
  tlm::Adapter a = randomAdapter(base, 2);
  a.plans = {{{1, 2}, "lanes=8 / nr=2"}, {{1, UINT64_MAX}, ""}};
  a.notes = {{"steps", "7"}};
  ASSERT_TRUE(tlm::writeAdapter(a, file("a")).isOk());
  auto read = tlm::readAdapter(file("a"));
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_TRUE(read->vocabulary.isOk());
  EXPECT_EQ(read->adapter.key(), a.key());
  EXPECT_EQ(read->adapter.plans, a.plans);
  EXPECT_EQ(read->adapter.notes, a.notes);
  EXPECT_EQ(read->adapter.machine, a.machine);
  EXPECT_EQ(read->adapter.lora, a.lora);
  for (const auto& [name, tensor] : a.parameters) EXPECT_TRUE(tensor.identical(read->adapter.parameters.at(name)));
  // One that knows plans alone.
  tlm::Adapter plain{{}, {}, a.plans, a.base, a.words, ""};
  ASSERT_TRUE(tlm::writeAdapter(plain, file("b")).isOk());
  auto again = tlm::readAdapter(file("b"));
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_EQ(again->adapter.plans, a.plans);
}

TEST_F(AdapterFile, DamageIsSeen) {
  const tlm::Weights base = randomWeights(smallModel(), 1);
  tlm::Adapter a = randomAdapter(base, 2);
  a.plans = {{{1, 2}, "lanes=8"}};
  ASSERT_TRUE(tlm::writeAdapter(a, file("a")).isOk());
  std::ifstream in(file("a"), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  auto message = [&](const std::string& bytes) {
    std::ofstream(file("bad"), std::ios::binary | std::ios::trunc) << bytes;
    return tlm::readAdapter(file("bad")).status().message();
  };
  EXPECT_EQ(message(good), "");
  EXPECT_EQ(message(""), file("bad") + ": the file is empty");
  EXPECT_NE(message("no adapter"), "");
  for (size_t cut : {size_t{4}, good.size() / 2, good.size() - 1}) EXPECT_NE(message(good.substr(0, cut)), "");
  // A flipped bit anywhere among the numbers, and in all of the header.
  const size_t header = good.find("lora_a");
  for (size_t at = 8; at < good.size(); at += at < 2 * header + 3000 ? 13 : 1009) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_NE(message(bad), "") << at << ": " << good[at];
  }
  std::string flipped = good;
  flipped[good.size() - 5] = static_cast<char>(flipped[good.size() - 5] ^ 1);
  EXPECT_EQ(message(flipped), file("bad") + ": the adapter is damaged: its hash is not that of its contents");
  ASSERT_TRUE(tlm::writeWeights(base, file("w")).isOk());
  EXPECT_EQ(tlm::readAdapter(file("w")).status().message(),
            file("w") + ": no adapter of a Tensor Language Model: its metadata lack format = locution-tlm-adapter-1");
}

TEST_F(AdapterFile, ParametersAreChecked) {
  const tlm::Weights base = randomWeights(smallModel(), 1);
  auto with = [&](auto change) {
    tlm::Adapter a = randomAdapter(base, 2);
    change(a);
    return tlm::adapted(base, a).status().message();
  };
  const std::string name = "h.0.attn.c_attn.lora_b";
  EXPECT_EQ(with([](tlm::Adapter&) {}), "");
  EXPECT_EQ(with([&](tlm::Adapter& a) { a.parameters.erase(name); }), "the parameter \"" + name + "\" is missing");
  EXPECT_EQ(with([&](tlm::Adapter& a) { a.parameters["wte.weight"] = Tensor(DType::F32, {1}); }),
            "unknown parameter \"wte.weight\"");
  EXPECT_EQ(with([&](tlm::Adapter& a) {
              a.parameters[name] = Tensor(DType::F32, {4, 192});
            }),
            "the parameter \"" + name + "\" is float32[4x192], expected float32[3x192]");
  EXPECT_EQ(with([&](tlm::Adapter& a) { a.parameters.at(name).data<float>()[3] = NAN; }),
            "the parameter \"" + name + "\" holds a number that is not finite");
  // Each finite, but not what they come to.
  EXPECT_EQ(with([&](tlm::Adapter& a) {
              for (auto& [n, t] : a.parameters)
                if (n.starts_with("h.0.attn.c_attn"))
                  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = 1e30F;
            }),
            "with the adapter: the parameter \"h.0.attn.c_attn.weight\" holds a number that is not finite");
  const tlm::Weights other = randomWeights(smallModel(), 9);
  EXPECT_EQ(tlm::adapted(other, randomAdapter(base, 2)).status().message(),
            "the adapter belongs to other weights (\"" + base.key() + "\", these are \"" + other.key() + "\")");
}

TEST_F(AdapterFile, OfOtherWeightsOrWordsIsAnErrorByNameAndAWarningBesideTheProfile) {
  const tlm::Weights base = randomWeights(smallModel(), 1), other = randomWeights(smallModel(), 2);
  ASSERT_TRUE(tlm::writeWeights(base, file("w")).isOk());
  driver::CompileOptions options;
  options.tlmWeights = file("w");
  options.machineFile = file("m");
  std::ofstream(file("m")) << driver::resolveTarget({})->str();
  auto none = driver::languageModel(options);
  ASSERT_TRUE(none.isOk()) << none.status().message();
  EXPECT_FALSE(none->adapter.has_value());

  ASSERT_EQ(driver::adapterBeside(file("m")), file("m.adapter"));
  ASSERT_TRUE(tlm::writeAdapter(randomAdapter(base, 3), file("m.adapter")).isOk());
  auto found = driver::languageModel(options);
  ASSERT_TRUE(found.isOk()) << found.status().message();
  ASSERT_TRUE(found->adapter.has_value());
  EXPECT_EQ(found->base.hash(), none->base.hash());
  EXPECT_NE(found->weights.hash(), none->weights.hash());
  options.adapter = "off";
  EXPECT_EQ(driver::languageModel(options)->weights.hash(), none->weights.hash());

  options.adapter.clear();
  ASSERT_TRUE(tlm::writeAdapter(randomAdapter(other, 3), file("m.adapter")).isOk());
  auto stale = driver::languageModel(options);
  ASSERT_TRUE(stale.isOk()) << stale.status().message();
  EXPECT_FALSE(stale->adapter.has_value());
  ASSERT_EQ(stale->warnings.size(), 1u);
  EXPECT_EQ(stale->warnings[0].find("--adapter: " + file("m.adapter") + ": the adapter belongs to other weights"), 0u);
  options.adapter = file("m.adapter");
  EXPECT_EQ(driver::languageModel(options).status().message(),
            "--adapter: " + file("m.adapter") + ": the adapter belongs to other weights (\"" + other.key() +
                "\", these are \"" + base.key() + "\")");

  // A compiler with fewer words than the adapter was trained with.
  const tlm::Adapter newer = randomAdapter(base, 3);
  ASSERT_TRUE(tlm::writeAdapter(newer, file("n")).isOk());
  tlm::SafeTensors content = *tlm::readSafeTensors(file("n"));
  content.metadata["vocabulary"] = "99999";
  content.metadata.erase("hash");
  content.metadata["hash"] = hexDigits(hashText(tlm::safeTensorsBytes(content)));
  ASSERT_TRUE(tlm::writeSafeTensors(content, file("m.adapter")).isOk());
  const std::string named = driver::languageModel(options).status().message();
  EXPECT_NE(named.find("the adapter knows 99999 words"), std::string::npos) << named;
  options.adapter.clear();
  EXPECT_TRUE(driver::languageModel(options).isOk());

  // Damage is an error either way: it is nobody's adapter.
  std::ofstream(file("m.adapter")) << "damaged";
  EXPECT_EQ(driver::languageModel(options).status().message(),
            "--adapter: " + file("m.adapter") + ": not a safetensors file: shorter than its length field");
  options.scheduler = "analytic";
  options.tlmWeights.clear();
  EXPECT_TRUE(driver::compileGraph(convolutions(), options).isOk());  // nobody reads it
  options.adapter = file("m.adapter");
  EXPECT_EQ(driver::compileGraph(convolutions(), options).status().message(),
            "--adapter: the scheduler analytic reads no adapter");
}

TEST(Adapter, KnownPlansArePlayed) {
  const tlm::Weights w = randomWeights(smallModel(), 7, 20);
  const TargetSpec target;
  tlm::SchedulerOptions options{8, false};
  auto plain = tlm::makeTlm(w, *programsFor(w.config), options);
  std::vector<loop::Computation> kernels = smallKernels();
  kernels.resize(6);
  std::vector<space::Choices> wanted;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const space::Space space(kernels[i], target);
    wanted.push_back(i % 2 == 0 ? *plain->choices(space) : generator::randomWalk(space, 5).choices());
    const std::pair key(space::workloadHash(kernels[i]), hashText(target.str()));
    if (i % 2) options.known[key] = language::planText(wanted.back());
  }
  // What is no plan of the kernel is left aside; what is of another target, too.
  options.known[{space::workloadHash(kernels[0]), hashText(target.str())}] = "lanes=3";
  TargetSpec two = target;
  two.threads = 2;
  options.known[{space::workloadHash(kernels[2]), hashText(two.str())}] = language::planText(wanted[1]);
  auto known = tlm::makeTlm(w, *programsFor(w.config), options);
  size_t different = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const space::Space space(kernels[i], target);
    EXPECT_EQ(known->choices(space), wanted[i]) << i;
    different += wanted[i] == plain->choices(space) ? 0 : 1;
  }
  EXPECT_GT(different, 0u);
}

TEST(Proposer, BeginsWithTheLikeliestAndGoesOnByValue) {
  const tlm::Weights w = randomWeights(smallModel(), 7, 20);
  const Model model(w);
  tlm::Proposer proposer(w, *programsFor(w.config));
  const loop::Computation kernel = smallKernels()[0];
  const TargetSpec target;
  const space::Space space(kernel, target);
  auto proposed = proposer.propose(space, 24, 3);
  ASSERT_TRUE(proposed.isOk()) << proposed.status().message();
  ASSERT_GT(proposed->size(), 4u);
  EXPECT_EQ((*proposed)[0], *tlm::makeTlm(w, *programsFor(w.config), {1, true})->choices(space));
  tlm::Reader reader(model.network, model.programs);
  double last = -INFINITY;
  for (size_t i = 1; i < proposed->size(); ++i) {
    tlm::Decoding along;
    along.sentences = 0;
    along.wantsValues = true;
    along.also = (*proposed)[i];
    auto read = tlm::decode(reader, *model.network, space, along);
    ASSERT_TRUE(read.isOk());
    EXPECT_GE(read->front().value, last - 1e-6);
    last = read->front().value;
  }
  EXPECT_EQ(*proposer.propose(space, 24, 3), *proposed);
  EXPECT_NE(*proposer.propose(space, 24, 4), *proposed);
}

}  // namespace
}  // namespace locution::tests

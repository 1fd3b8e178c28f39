// From records to weights: what a sentence's examples are, which batches there are, and a small training that stops and goes on.
#include "train/tlm_training.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "generator/random.h"
#include "generator/tlm/adapter.h"
#include "generator/tlm/weights.h"
#include "language/grammar.h"
#include "language/sentence.h"
#include "ops/builder.h"
#include "records/store.h"
#include "space/workload.h"
#include "support/hash.h"

namespace locution::train {
namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("locution-tlm-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

loop::Computation product(int64_t m, int64_t n, int64_t k) {
  graph::Graph g;
  graph::Patch patch(g);
  ops::Builder b(patch);
  auto input = [&](std::vector<int64_t> dims) {
    return b.of(patch.addInput(g.mainRegion(), "x", {DType::F32, Shape::of(dims)}));
  };
  const ops::Term y = matMul(input({m, k}), input({k, n}));
  auto made = ops::computeNode(g, g.value(y.id()).producer);
  EXPECT_TRUE(made.isOk());
  return space::canonical(*made).kernel;
}

/// Wide vectors are fast, whatever else is decided.
double secondsOf(const space::Choices& choices) {
  double lanes = 1;
  for (const space::Choice& c : choices)
    if (c.decision == space::Decision::Lanes) lanes = static_cast<double>(c.value);
  return 1e-4 * (1 + 4 / lanes);
}

void fillRecords(const std::string& path) {
  auto store = records::Store::open(path);
  ASSERT_TRUE(store.isOk()) << store.status().message();
  const TargetSpec target;
  records::Record r;
  r.target = *(*store)->put(records::TextKind::Target, target.str());
  r.machine = *(*store)->put(records::TextKind::Machine, records::machineText(target.str()));
  r.proposer = "random";
  r.compiler = "test";
  r.code = keyOf("code");
  r.grammar = language::kGrammarVersion;
  r.vocabularyCount = 1;
  r.vocabulary = keyOf("vocabulary");
  for (int64_t size : {16, 24, 40, 64, 96, 100, 128, 160, 200, 256}) {
    const loop::Computation kernel = product(size, size, size);
    const space::Space space(kernel, target);
    r.workload = *(*store)->put(records::TextKind::Workload, space::canonical(kernel).text);
    r.incumbent = *(*store)->put(records::TextKind::Incumbent, "the incumbent");
    std::vector<records::Record> all;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const space::Choices choices = generator::randomWalk(space, seed).choices();
      r.sentence = language::planText(choices);
      r.seed = seed;
      r.samples = {secondsOf(choices) * 3};  // a machine that drifts
      r.ratio = secondsOf(choices) / 1e-4;
      r.spread = 0.01;
      r.outcome = seed == 7 ? records::Outcome::Wrong : records::Outcome::Ok;
      r.time = static_cast<int64_t>(seed);
      all.push_back(r);
    }
    auto added = (*store)->addAll(all);
    ASSERT_TRUE(added.isOk()) << added.status().message();
  }
}

TEST(Examples, AreWhatTheRecordsSay) {
  Folder folder;
  fillRecords(folder.file("a.records"));
  auto read = readExamples({folder.file("a.records")}, 256);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->groups.size(), 10u);
  EXPECT_EQ(read->untimed, 10);
  EXPECT_EQ(read->unreadable, 0);
  for (const ExampleGroup& g : read->groups) {
    double best = INFINITY;
    for (const Example& e : g.examples) {
      best = std::min(best, e.slowdown);
      ASSERT_FALSE(e.places.empty());
      ASSERT_EQ(e.places.size(), e.legalEnd.size());
      ASSERT_EQ(e.legal.size(), static_cast<size_t>(e.legalEnd.back()));
      for (size_t d = 0; d < e.places.size(); ++d) {
        const auto first = e.legal.begin() + (d == 0 ? 0 : e.legalEnd[d - 1]), last = e.legal.begin() + e.legalEnd[d];
        EXPECT_GT(last - first, 1);
        EXPECT_NE(std::find(first, last, e.tokens[static_cast<size_t>(e.places[d])]), last);
      }
    }
    EXPECT_EQ(best, 1);
  }
  std::vector<std::string> machines;
  auto elsewhere = readExamples({folder.file("a.records")}, 256, [&](const std::string& machine) {
    machines.push_back(machine);
    return machine.empty();
  });
  ASSERT_TRUE(elsewhere.isOk());
  EXPECT_EQ(elsewhere->count() + elsewhere->untimed, 0);
  EXPECT_EQ(machines, std::vector<std::string>{records::machineText(TargetSpec().str())});
  auto few = readExamples({folder.file("a.records")}, 20);
  ASSERT_TRUE(few.isOk());
  EXPECT_EQ(few->count(), 0);
  EXPECT_GT(few->tooLong, 0);

  Examples rest = *read;
  const Examples held = takeHeldOut(rest, 0.3, 5);
  EXPECT_EQ(held.groups.size() + rest.groups.size(), 10u);
  EXPECT_FALSE(held.groups.empty());
  EXPECT_FALSE(rest.groups.empty());
}

TEST(TlmBatches, GoOnceThroughAllSentencesAnEpoch) {
  Folder folder;
  fillRecords(folder.file("a.records"));
  auto examples = readExamples({folder.file("a.records")}, 256);
  ASSERT_TRUE(examples.isOk());
  TlmBatches batches(*examples, 20, 5, 3, {});
  const int64_t epoch = batches.stepsPerEpoch();
  int64_t all = 0, tokens = 0;
  for (const ExampleGroup& g : examples->groups) {
    all += static_cast<int64_t>((g.examples.size() + 4) / 5 * 5);
    for (const Example& e : g.examples) tokens += static_cast<int64_t>(e.tokens.size());
  }
  ASSERT_EQ(epoch * 20, all);  // as many pieces as fit batches: each sentence once
  int64_t seen = 0;
  for (int64_t k = 0; k < epoch; ++k) seen += batches.tokens(k);
  EXPECT_EQ(seen, tokens);

  const generator::tlm::TrainingShape shape = batches.shape(3 * epoch);
  TlmBatches again(*examples, 20, 5, 3, {});
  const auto words = static_cast<int64_t>(language::vocabularySize());
  const auto late = again.at(2 * epoch + 1, shape, words);  // from anywhere
  std::map<std::string, Tensor> way;
  for (int64_t k = 0; k <= 2 * epoch + 1; ++k) way = batches.at(k, shape, words);
  for (const auto& [name, tensor] : way) EXPECT_TRUE(tensor.identical(late.at(name))) << name;
  double sum = 0;
  for (int64_t i = 0; i < shape.decisions; ++i) {
    const double w = late.at("weights").elementAsDouble(i);
    sum += w;
    if (w == 0) continue;
    const int64_t row = late.at("rows").elementAsInt(i), label = late.at("labels").elementAsInt(i);
    EXPECT_EQ(late.at("tokens").elementAsInt(row + 1), label);
    EXPECT_EQ(late.at("positions").elementAsInt(row) + 1, late.at("positions").elementAsInt(row + 1));
    EXPECT_EQ(late.at("segments").elementAsInt(row), late.at("segments").elementAsInt(row + 1));
    EXPECT_EQ(late.at("legal").elementAsInt(i * words + label), 1);
  }
  EXPECT_NEAR(sum, 1, 1e-5);
}

std::string bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TlmTraining small(const Folder& folder, const std::string& name) {
  TlmTraining t;
  t.records = {folder.file("a.records")};
  t.folder = folder.file(name);
  t.model.layers = 1;
  t.model.width = 32;
  t.model.heads = 2;
  t.sentences = 20;
  t.group = 5;
  t.steps = 30;
  t.rate = 0.02;
  t.heldOut = 0.3;
  t.seed = 5;
  t.every = 10;
  t.compile.threads = 2;
  return t;
}

TEST(TlmTraining, LearnsWhatIsFastAndGoesOnAfterAStop) {
  Folder folder;
  fillRecords(folder.file("a.records"));
  TlmTraining t = small(folder, "straight");
  std::vector<TlmProgress> progress;
  TlmWatch watch;
  TlmFacts facts;
  watch.begin = [&](const TlmFacts& f) { facts = f; };
  watch.progress = [&](const TlmProgress& p) { progress.push_back(p); };
  auto s = trainTlm(t, watch);
  ASSERT_TRUE(s.isOk()) << s.status().message();
  EXPECT_EQ(facts.workloads, 10);
  ASSERT_EQ(progress.size(), 3u);
  EXPECT_LT(progress.back().policy, progress.front().policy - 0.05);
  ASSERT_TRUE(progress.back().heldOutPolicy.has_value());
  EXPECT_LT(*progress.back().heldOutPolicy, *progress.front().heldOutPolicy);
  const std::string log = bytesOf(folder.file("straight/train.jsonl"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3);
  EXPECT_NE(bytesOf(folder.file("straight/train.svg")).find("</svg>"), std::string::npos);
  auto weights = generator::tlm::readWeights(folder.file("straight/weights.safetensors"));
  ASSERT_TRUE(weights.isOk()) << weights.status().message();

  // Killed after the checkpoint of step 10.
  t.folder = folder.file("stopped");
  std::filesystem::create_directories(t.folder);
  watch.progress = [&](const TlmProgress& p) {
    if (p.step == 20)
      std::filesystem::copy_file(folder.file("stopped/checkpoint.safetensors"), folder.file("kept.safetensors"));
  };
  ASSERT_TRUE(trainTlm(t, watch).isOk());
  std::filesystem::copy_file(folder.file("kept.safetensors"), folder.file("stopped/checkpoint.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(folder.file("stopped/weights.safetensors"));
  watch.progress = {};
  s = trainTlm(t, watch);
  ASSERT_TRUE(s.isOk()) << s.status().message();
  EXPECT_EQ(facts.firstStep, 10);
  EXPECT_EQ(bytesOf(folder.file("stopped/weights.safetensors")), bytesOf(folder.file("straight/weights.safetensors")));
  const std::string goneOn = bytesOf(folder.file("stopped/train.jsonl"));
  EXPECT_EQ(std::count(goneOn.begin(), goneOn.end(), '\n'), 3);

  t.seed = 6;
  t.heldOut = 0;
  EXPECT_NE(trainTlm(t, {}).status().message().find("was made with"), std::string::npos);
}

/// A model that was trained a little, to adapt.
generator::tlm::Weights someWeights(const Folder& folder) {
  TlmTraining t = small(folder, "base");
  t.steps = 4;
  EXPECT_TRUE(trainTlm(t, {}).isOk());
  auto weights = generator::tlm::readWeights(folder.file("base/weights.safetensors"));
  EXPECT_TRUE(weights.isOk()) << weights.status().message();
  return *weights;
}

TEST(TlmTraining, AnAdapterLearnsBesideItsModel) {
  namespace tlm = generator::tlm;
  Folder folder;
  fillRecords(folder.file("a.records"));
  const tlm::Weights base = someWeights(folder);
  TlmTraining t = small(folder, "adapter");
  t.model = base.config;
  t.adaptation = {{4, 8}, base};
  t.optimiser.weightDecay = 0;
  std::vector<TlmProgress> progress;
  TlmWatch watch;
  watch.progress = [&](const TlmProgress& p) { progress.push_back(p); };
  auto trained = trainTlm(t, watch);
  ASSERT_TRUE(trained.isOk()) << trained.status().message();
  EXPECT_LT(progress.back().policy, progress.front().policy - 0.02);
  // What was held back is evaluated with the matrices, so it gets better too.
  EXPECT_LT(*progress.back().heldOutPolicy, *progress.front().heldOutPolicy - 0.01);
  EXPECT_EQ(trained->size(), 10u);  // A and B of four matrices, and the value head
  auto file = tlm::readAdapter(folder.file("adapter/adapter.safetensors"));
  ASSERT_TRUE(file.isOk()) << file.status().message();
  for (const auto& [name, tensor] : *trained) EXPECT_TRUE(tensor.identical(file->adapter.parameters.at(name))) << name;
  auto merged = tlm::adapted(base, file->adapter);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  EXPECT_TRUE(merged->parameters.at("wte.weight").identical(base.parameters.at("wte.weight")));
  EXPECT_FALSE(merged->parameters.at("h.0.mlp.c_fc.weight").identical(base.parameters.at("h.0.mlp.c_fc.weight")));

  // Without a folder nothing is written; one that is stopped has what it got to.
  t.folder.clear();
  int64_t steps = 0;
  watch.isInterrupted = [&] { return ++steps == 12; };
  auto stopped = trainTlm(t, watch);
  ASSERT_TRUE(stopped.isOk()) << stopped.status().message();
  EXPECT_EQ(steps, 12);
  EXPECT_FALSE(stopped->at("h.0.mlp.c_fc.lora_b").identical(trained->at("h.0.mlp.c_fc.lora_b")));
  // The time that there is decides how many steps, and so how soon the learning rate comes down.
  watch.isInterrupted = {};
  progress.clear();
  t.steps = 1000000;
  t.every = 1;
  t.seconds = 1;
  auto brief = trainTlm(t, watch);
  ASSERT_TRUE(brief.isOk()) << brief.status().message();
  ASSERT_FALSE(progress.empty());
  EXPECT_LT(progress.back().steps, 100000);
  EXPECT_EQ(progress.back().step, progress.back().steps);
}

TEST(TlmTraining, SaysWhatIsWrong) {
  Folder folder;
  TlmTraining t = small(folder, "out");
  EXPECT_NE(trainTlm(t, {}).status().message().find("a.records"), std::string::npos);
  t.group = 3;
  EXPECT_EQ(trainTlm(t, {}).status().message(), "a step of 20 sentences can't be cut in groups of 3");
}

}  // namespace
}  // namespace locution::train

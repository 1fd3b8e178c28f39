// A training that stops and goes on, and the files it goes on from.
#include "train/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "train/shuffle.h"
#include "train/small_gpt2.h"

namespace locution::train {
namespace {

driver::CompileOptions compileOptions(int threads = 1) {
  driver::CompileOptions o;
  o.threads = threads;
  o.jobs = 2;
  return o;
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("locution-train-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(Trainer, GoesOnFromACheckpointAsIfItHadNotStopped) {
  const SmallGpt2 m;
  auto step = TrainingStep::create(m.graph(), "loss", m.names(), {}, compileOptions(2));
  ASSERT_TRUE(step.isOk()) << step.status().message();
  Folder folder;
  const Batches batches = [&](int64_t k) -> Result<Tensors> {
    Shuffle order(2, 3);
    return m.randomData(static_cast<uint64_t>(100 * order.at(k)));
  };
  TrainerOptions options;
  options.rate = {0.03, 0.003, 3, 20};
  options.steps = 20;
  std::vector<double> losses;
  auto watch = [&](const StepReport& r, const TrainingStep&) {
    losses.push_back(r.loss);
    return Status::ok();
  };
  Status s = train(**step, m.randomParameters(50), batches, options, watch);
  ASSERT_TRUE(s.isOk()) << s.message();
  const State straight = (*step)->state();
  EXPECT_LT(losses.back(), 0.7 * losses.front());

  options.checkpoint = folder.file("state.safetensors");
  options.metadata["seed"] = "3";
  auto stop = [&](const StepReport& r, const TrainingStep&) {
    return r.step == 12 ? Status::error("stop") : Status::ok();
  };
  EXPECT_EQ(train(**step, m.randomParameters(50), batches, options, stop).message(), "stop");
  auto fresh = TrainingStep::create(m.graph(), "loss", m.names(), {}, compileOptions(2));
  ASSERT_TRUE(fresh.isOk());
  std::vector<int64_t> done;
  s = train(**fresh, {}, batches, options, [&](const StepReport& r, const TrainingStep&) {
    done.push_back(r.step);
    return Status::ok();
  });
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(done.front(), 13);
  const State resumed = (*fresh)->state();
  EXPECT_EQ(resumed.step, 20);
  for (const auto& [name, tensor] : straight.parameters) {
    EXPECT_TRUE(tensor.identical(resumed.parameters.at(name))) << name;
    EXPECT_TRUE(straight.second.at(name).identical(resumed.second.at(name))) << name;
  }
  options.metadata["seed"] = "4";
  EXPECT_NE(train(**fresh, {}, batches, options).message().find("was made with seed \"3\", this training has \"4\""),
            std::string::npos);
}

graph::Graph square() {
  auto g = graph::parseGraph(R"(graph "square" {
  input %w: float32[3]
  input %x: float32[3]
  %p: float32[3] = Mul(%w, %x)
  %loss: float32[scalar] = ReduceSumSquare(%p) {keepdims = 0}
  output %loss
})");
  EXPECT_TRUE(g.isOk()) << g.status().message();
  return std::move(*g);
}

TEST(Trainer, StopsAtALossThatIsNotFinite) {
  StepOptions options;
  auto step = TrainingStep::create(square(), "loss", {"w"}, options, compileOptions());
  ASSERT_TRUE(step.isOk());
  TrainerOptions trainer;
  trainer.steps = 3;
  const Batches batches = [](int64_t k) -> Result<Tensors> {
    Tensor x(DType::F32, {3});
    if (k == 1) x.setElement(0, NAN);
    return Tensors{{"x", x}};
  };
  EXPECT_TRUE(
      train(**step, {{"w", Tensor(DType::F32, {3})}}, batches, trainer).message().starts_with("step 1: the loss is"));
}

TEST(Checkpoint, RefusesWhatIsNone) {
  Folder folder;
  EXPECT_FALSE(loadCheckpoint(folder.file("nothing")).isOk());
  State s;
  s.step = 7;
  s.parameters["w"] = Tensor::of<float>(DType::F32, {2}, {1, 2});
  s.first["w"] = s.second["w"] = Tensor(DType::F32, {2});
  const std::string path = folder.file("a.safetensors");
  ASSERT_TRUE(saveCheckpoint(path, s, {{"note", "x"}}).isOk());
  auto back = loadCheckpoint(path);
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->state.step, 7);
  EXPECT_EQ(back->metadata.at("note"), "x");
  EXPECT_TRUE(back->state.parameters.at("w").identical(s.parameters["w"]));
  EXPECT_EQ(back->state.parameters.size(), 1u);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  EXPECT_FALSE(loadCheckpoint(path).isOk());
}

}  // namespace
}  // namespace locution::train

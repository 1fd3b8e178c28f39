#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>

#include "support/strings.h"

namespace locution::train {

namespace {

using Clock = std::chrono::steady_clock;

Status begin(TrainingStep& step, const Tensors& initial, const TrainerOptions& options) {
  std::error_code ignored;
  if (options.checkpoint.empty() || !std::filesystem::exists(options.checkpoint, ignored)) return step.start(initial);
  LOCUTION_ASSIGN_OR_RETURN(Checkpoint found, loadCheckpoint(options.checkpoint));
  for (const auto& [key, value] : options.metadata) {
    auto was = found.metadata.find(key);
    const std::string before = was == found.metadata.end() ? "nothing" : locution::quoted(was->second);
    if (before != locution::quoted(value))
      return Status::error(options.checkpoint + ": was made with " + key + " " + before + ", this training has " +
                           locution::quoted(value));
  }
  return step.resume(found.state).withContext(options.checkpoint);
}

}  // namespace

Status train(TrainingStep& step, const Tensors& initial, const Batches& batches, const TrainerOptions& options,
             const Watch& watch) {
  LOCUTION_RETURN_IF_ERROR(begin(step, initial, options));
  auto save = [&]() -> Status {
    return options.checkpoint.empty() ? Status::ok()
                                      : saveCheckpoint(options.checkpoint, step.state(), options.metadata);
  };
  while (step.stepsDone() < options.steps) {
    StepReport report;
    report.step = step.stepsDone();
    report.learningRate = options.rate.at(report.step);
    LOCUTION_ASSIGN_OR_RETURN(Tensors data, batches(report.step));
    const auto start = Clock::now();
    LOCUTION_RETURN_IF_ERROR(step.run(data, report.learningRate));
    report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    report.loss = step.loss();
    report.gradientNorm = step.output("gradient.norm").elementAsDouble(0);
    // Neither is a state worth keeping: the checkpoint stays what it was.
    if (!std::isfinite(report.loss) || !std::isfinite(report.gradientNorm))
      return Status::error("step " + std::to_string(report.step) + ": the loss is " + std::to_string(report.loss) +
                           ", the gradients' norm " + std::to_string(report.gradientNorm));
    if (watch) {
      Status s = watch(report, step);
      if (!s.isOk()) {
        LOCUTION_RETURN_IF_ERROR(save());
        return s;
      }
    }
    if (options.checkpointEvery > 0 && step.stepsDone() % options.checkpointEvery == 0 &&
        step.stepsDone() < options.steps)
      LOCUTION_RETURN_IF_ERROR(save());
  }
  return save();
}

}  // namespace locution::train

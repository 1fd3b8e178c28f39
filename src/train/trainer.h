// The training loop: steps on batches, the learning rate's schedule, checkpoints, and going on from one. What step k does depends on the
// state before it, on k and on the batch of k: a training that was stopped gives the same bits as one that was not.
#pragma once

#include <functional>
#include <string>

#include "train/checkpoint.h"
#include "train/schedule.h"
#include "train/step.h"

namespace locution::train {

/// Data by input name for a step counted from 0; the same for the same step.
using Batches = std::function<Result<Tensors>(int64_t step)>;

struct StepReport {
  int64_t step = 0;  ///< counted from 0
  double learningRate = 0;
  double loss = 0, gradientNorm = 0;
  double seconds = 0;  ///< of this step
};

struct TrainerOptions {
  LearningRate rate;
  int64_t steps = 0;            ///< to have done at the end; of those a checkpoint already did the rest is left
  std::string checkpoint;       ///< file; empty: none
  int64_t checkpointEvery = 0;  ///< steps; 0: at the end only
  Metadata metadata;            ///< kept in the checkpoint; one with other metadata is not gone on from
};

/// After each step; an error ends the training (a checkpoint is written first).
using Watch = std::function<Status(const StepReport& report, const TrainingStep& step)>;

/// Goes on from the checkpoint where there is one, else from `initial`. Errors: a loss that isn't finite, with its step; files.
Status train(TrainingStep& step, const Tensors& initial, const Batches& batches, const TrainerOptions& options,
             const Watch& watch = {});

}  // namespace locution::train

// Trains the Tensor Language Model on records of measured sentences: reads them, holds some workloads back for evaluation, runs the steps,
// and keeps weights, a checkpoint, a log and a plot in one folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"
#include "generator/tlm/model.h"
#include "generator/tlm/weights.h"
#include "support/status.h"
#include "train/adamw.h"
#include "train/drawn_examples.h"
#include "train/schedule.h"
#include "train/tlm_batches.h"

namespace locution::train {

/// Low-rank matrices and the value head are trained, the model's other parameters stay as they are.
struct TlmAdaptation {
  generator::tlm::Lora lora;
  generator::tlm::Weights base;
};

struct TlmTraining {
  std::vector<std::string> records;  ///< files or servers
  Examples examples;                 ///< besides them
  DrawnSentences drawn;              ///< besides these
  std::string folder;                ///< of what comes out; a checkpoint in it is gone on from. Empty: nothing is kept
  std::string from;                  ///< weights to start from; empty: random ones
  std::optional<TlmAdaptation> adaptation;  ///< instead of `from`
  generator::tlm::ModelConfig model;        ///< that of the adaptation's base, where there is one
  int64_t sentences = 64, group = 4;        ///< of a step; neighbours of one workload
  int64_t steps = 1000;
  double seconds = 0;  ///< not 0: as many steps fewer as it takes to end by then
  double rate = 1e-3;  ///< at its peak, after a 20th of the steps; a tenth of it at the end
  AdamWOptions optimiser;
  TlmLoss loss;
  double heldOut = 0.05;  ///< share of the workloads
  uint64_t seed = 0;
  int64_t every = 50;  ///< steps between lines of the log, evaluations, and checkpoints
  driver::CompileOptions compile;
};

/// What the terminal shows and the log keeps, averaged over the steps since the last.
struct TlmProgress {
  int64_t step = 0, steps = 0;  ///< done, of
  double learningRate = 0, gradientNorm = 0;
  double loss = 0, policy = 0, accuracy = 0;  ///< of decisions, weighted as the loss is
  std::optional<double> heldOutPolicy, heldOutAccuracy;
  double tokensPerSecond = 0, secondsLeft = 0;
};
struct TlmFacts {
  int64_t workloads = 0, sentences = 0, heldOutSentences = 0, leftOut = 0, stepsPerEpoch = 0, firstStep = 0;
  generator::tlm::TrainingShape shape;
  double readSeconds = 0, compileSeconds = 0;
};
struct TlmWatch {
  std::function<void(const TlmFacts&)> begin;
  std::function<void(const TlmProgress&)> progress;
  std::function<bool()>
      isInterrupted;  ///< asked after each step; true: a checkpoint is written, and the training ends with an error; without a
                      ///< folder it ends with what it has
};

/// What was trained: all parameters of the model, or those of an adaptation (generator::tlm::loraParametersOf).
/// Files: weights.safetensors (of an adaptation adapter.safetensors), checkpoint.safetensors, train.jsonl, train.svg. Same records,
/// options and seed on one machine, and no limit of time: the same weights, byte for byte, whether or not the training was stopped in
/// between.
Result<generator::tlm::Parameters> trainTlm(const TlmTraining& training, const TlmWatch& watch);

}  // namespace locution::train

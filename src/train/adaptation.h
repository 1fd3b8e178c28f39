// Adapts the Tensor Language Model to this machine: plans that it proposes for a corpus's kernels are measured, low-rank matrices learn
// from them, and what it would then write is measured against what it wrote before (docs/decisions/adapting.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "driver/language_model.h"
#include "generator/tlm/adapter.h"
#include "support/status.h"
#include "train/tlm_training.h"
#include "tune/sampling.h"

namespace locution::train {

struct Adaptation {
  driver::LanguageModel model;  ///< with the adapter that there is, if there is one
  std::vector<tune::SamplingWorkload> workloads;
  std::string records;  ///< where measurements are kept; those of this kind of machine are learnt from
  generator::tlm::Lora lora{8, 16};
  double rate = 1e-3;        ///< learning rate at its peak
  int64_t measurements = 0;  ///< as tune::SamplingOptions
  double seconds = 0;        ///< of all; 0: no limit
  uint64_t seed = 0;
  int jobs = 0;          ///< threads that compile plans and that train; 0: all cores
  std::string compiler;  ///< for the records
};

struct AdaptationWatch {
  std::function<void(const tune::SamplingProgress&)> measuring;
  TlmWatch training;  ///< `isInterrupted` is not asked
  std::function<void(size_t done, size_t of)> judging;
  /// Once it is true, what is under way ends, and what follows works with what there is.
  std::function<bool()> isInterrupted;
};

/// What it came to, over the workloads that were judged. Means are geometric, of the time before over the time after: above 1 is faster.
struct AdaptationResult {
  tune::SamplingResult measured;
  int64_t steps = 0;      ///< of training
  std::string untrained;  ///< why there was none
  int64_t judged = 0;
  int64_t heldBack = 0;         ///< of these: not learnt from
  double model = 1;             ///< what the model itself writes for those that were held back
  double whole = 1, least = 1;  ///< what is written with the adapter: its known plans included; of the worst workload
  int64_t changed = 0;          ///< workloads that get another plan
  bool hasNewMatrices =
      false;              ///< the trained ones were better there; else the adapter has those that there were, or none
  bool isBetter = false;  ///< than what there was; else it stays
  generator::tlm::Adapter adapter;  ///< what comes in its place
  double seconds = 0;
  bool isInterrupted = false;
};

/// Errors: the records'; no workload that could be measured.
Result<AdaptationResult> adapt(const Adaptation& adaptation, const codegen::KernelCompiler& compiler,
                               const AdaptationWatch& watch);

}  // namespace locution::train

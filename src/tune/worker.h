// A process that compiles, checks and times a batch of candidates, and the parent's watch over it. They share one block of memory, in
// which the worker says what it is at and what came out; all else it inherits.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tune/candidate.h"
#include "tune/measure.h"
#include "tune/oracle.h"
#include "tune/region.h"

namespace locution::tune {

/// What all batches of a kernel have in common. Workers inherit it.
struct Subject {
  loop::Computation kernel;
  const codegen::KernelCompiler* compiler = nullptr;
  const generator::Scheduler* packer = nullptr;
  MeasureOptions options;
  std::vector<Region> inputs;   ///< read-only
  std::vector<Tensor> tensors;  ///< the same as tensors
  Oracle oracle;
  std::unique_ptr<PackingCode> packingCode = std::make_unique<PackingCode>();
  std::optional<Candidate> incumbent;
  std::map<uint64_t, Region> packed;  ///< the incumbent's constants, by Packing::key
  /// Outputs of the incumbent once it has been checked, else empty. Written by the worker that checks it.
  std::vector<Region> reference;
  bool hasReference = false;
  double incumbentSeconds = 0;  ///< 0: not known yet
};

/// A tensor that shows a region's bytes.
Tensor viewOf(const Region& region, const loop::Buffer& buffer);
/// Fills `to` with the packed operand.
void packConstant(const Packing& pack, const Subject& subject, const Region& to);

enum class Task : uint8_t { CheckIncumbent, Check, Measure };

/// Runs workers until every plan has an outcome. Errors: the incumbent's failure, as text.
Result<std::vector<Measurement>> runWorkers(Subject* subject, const std::vector<schedule::Plan>& plans, Task task);

}  // namespace locution::tune

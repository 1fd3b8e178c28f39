// Measuring stored records again: whether what a database says of plans holds on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "records/store.h"
#include "support/status.h"

namespace locution::tune {

struct AgainOptions {
  int64_t records = 200;  ///< to measure; fewer where the store holds fewer
  uint64_t seed = 0;      ///< says which
  int jobs = 0;           ///< threads that compile; 0: all cores
  std::function<std::unique_ptr<codegen::KernelCompiler>(const TargetSpec&)> makeCompiler;
  std::function<bool()> isStopped;
  std::function<void(size_t done, size_t all)> progress;
};

struct MeasuredAgain {
  records::Record record;
  double ratio = 0;  ///< to the incumbent of then, now; 0: not measured, see `problem`
  std::string problem;
  /// How far the two ratios are apart: |now / then - 1|.
  double difference() const;
};

/// Draws among the records that were timed against an incumbent on a CPU of this machine's model and profile, by the records' contents
/// and the seed alone; by target and workload. Errors: those of the store; no such record.
Result<std::vector<MeasuredAgain>> measureAgain(records::Store& store, const AgainOptions& options);

}  // namespace locution::tune

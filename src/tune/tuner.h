// Tuning a model's kernels: a search a kernel, trials where they pay most, the best plans measured again at the end. Every search starts with
// the incumbent, what the rules write without measuring; a plan takes its place only where it was faster again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "loop/compute.h"
#include "records/store.h"
#include "space/space.h"
#include "tune/plan_timer.h"

namespace locution::tune {

struct TuneKernel {
  loop::Computation computation;
  std::string op;
  int64_t count = 1;  ///< how often the model runs it
};

struct TuneProgress {
  int64_t trials = 0, wanted = 0;
  int64_t resumed = 0;  ///< of the trials: found in the records, not measured
  double seconds = 0;   ///< since the start
  /// Of all kernels in one run of the model: with the incumbents, and with the best so far.
  double before = 0, now = 0;
  std::string kernel;  ///< what is measured
};

struct TuneOptions {
  std::string search = "evolutionary";
  /// Measured plans for the whole model, besides the incumbents; records of the same search and seed count.
  int64_t trials = 200;
  /// Not 0: so many of each kernel instead, however little they gain: to know how good its best plan can be.
  int64_t trialsEach = 0;
  uint64_t seed = 0;
  records::Store* store = nullptr;  ///< null: nothing is kept
  std::string model, compiler;      ///< for the records
  std::function<bool()> isStopped;
  std::function<void(const TuneProgress&)> progress;
};

struct TunedKernel {
  std::string name, op;
  int64_t count = 1;
  double before = 0, after = 0;        ///< seconds of a run
  int64_t trials = 0;                  ///< with those of the records
  bool isConfirmed = false;            ///< `after` was measured again, in turns with the incumbent
  std::optional<schedule::Plan> plan;  ///< null: the incumbent stays
  space::Choices choices;              ///< of `plan`
  std::string sentence;                ///< the choices as text
  std::string problem;                 ///< why it was not measured
};

struct TuneResult {
  std::vector<TunedKernel> kernels;  ///< in the order given
  int64_t trials = 0, resumed = 0;
  double seconds = 0;
  bool isInterrupted = false;
};

/// Kernels that have no schedule (raw loops), or one only, are left as they are. The plan to beat is the analytic one.
/// Errors: those of the store, a search that there isn't. A kernel that can't be measured is one that gains nothing.
Result<TuneResult> tuneKernels(const std::vector<TuneKernel>& kernels, const TargetSpec& target,
                               const MakeTimer& makeTimer, const TuneOptions& options);
/// With real measurements.
Result<TuneResult> tuneKernels(const std::vector<TuneKernel>& kernels, const codegen::KernelCompiler& compiler,
                               int jobs, const TuneOptions& options);

}  // namespace locution::tune

// How fast plans of a kernel are, each held against an incumbent that is measured in turns with them, and whether what they compute is
// right. Candidates are compiled and run in a forked process under a watchdog: one that crashes, hangs or writes where it must not is a
// measurement with that outcome and disturbs no other.
//
// What is timed is one run of the kernel as within a model: constants come from memory, activations lie in the caches, packing of
// activations counts. The code is what a compilation with the plan gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "loop/compute.h"
#include "schedule/plan.h"
#include "support/status.h"

namespace locution::tune {

enum class Outcome : uint8_t { Ok, Wrong, Crash, Timeout, Illegal };
/// "ok", "wrong", "crash", "timeout", "illegal": as records have them.
std::string_view outcomeName(Outcome outcome);

struct Measurement {
  Outcome outcome = Outcome::Illegal;
  std::string reason;             ///< why not Ok
  std::vector<double> samples;    ///< seconds of a run each, in order
  std::vector<double> incumbent;  ///< its time next to each sample
  double seconds = 0;             ///< median of the samples
  double ratio = 0;               ///< its least sample over the incumbent's least; 0: none
  double spread = 0;              ///< interquartile range of the samples / median
  bool abandoned = false;         ///< so much slower than the incumbent that there is one sample, which may be an
                                  ///< estimate from a part of a run; that part was checked
  uint64_t codeHash = 0;          ///< of the machine code
  double compileMs = 0;           ///< processor time to apply the plan and make its code
};

struct MeasureOptions {
  int threads = 0;             ///< that run a kernel; 0: as many as the target is compiled for
  int jobs = 0;                ///< that compile; 0: all cores
  double secondsEach = 0.008;  ///< to spend on samples of a candidate near the best; others get less
  double abandonRatio = 2;     ///< no more samples once that much slower than the incumbent
  double watchdogSeconds = 1;  ///< of a run; at least 10 times what the incumbent takes
  double compileSeconds = 10;  ///< of a compilation
  uint64_t seed = 1;           ///< of operands and sampled places
  double maxPoints = 2e5;  ///< that the interpreter evaluates for comparison; a tenth of a second holds some millions
};

/// One kernel, its operands and its incumbent; plans come in batches of any size. One call at a time. The caller must have no other
/// threads at work that hold locks of the C library or the compiler: a fork copies none, and what they had locked stays locked.
class KernelBench {
 public:
  ~KernelBench();
  /// Candidates' results by their position. All are compiled first, on all cores, and then measured with nothing else at work.
  /// Errors: the incumbent itself fails.
  Result<std::vector<Measurement>> measure(const std::vector<schedule::Plan>& plans);
  /// Only whether the plans are legal, compile and compute the right thing; no samples.
  Result<std::vector<Measurement>> check(const std::vector<schedule::Plan>& plans);

 private:
  friend class Measurer;
  struct Impl;
  explicit KernelBench(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Measurer {
 public:
  /// `compiler` must outlive the measurer and its benches; its target must be this machine's.
  Measurer(const codegen::KernelCompiler& compiler, MeasureOptions options);
  ~Measurer();

  /// Errors: a kernel without a schedule (raw loops), operands that can't be made up, an incumbent that is illegal or wrong.
  Result<std::unique_ptr<KernelBench>> open(const loop::Computation& kernel, const schedule::Plan& incumbent) const;
  /// The first plan is the incumbent, and is measured like the others.
  Result<std::vector<Measurement>> measure(const loop::Computation& kernel,
                                           const std::vector<schedule::Plan>& plans) const;

 private:
  friend Result<std::vector<Measurement>> checkPlans(const loop::Computation&, const std::vector<schedule::Plan>&,
                                                     const codegen::KernelCompiler&, uint64_t);
  Result<std::unique_ptr<KernelBench>> prepare(const loop::Computation& kernel, const schedule::Plan* incumbent) const;
  const codegen::KernelCompiler& compiler_;
  MeasureOptions options_;
};

/// Compiles plans and compares what they compute with the interpreter at every place of the outputs: for kernels of few points.
Result<std::vector<Measurement>> checkPlans(const loop::Computation& kernel, const std::vector<schedule::Plan>& plans,
                                            const codegen::KernelCompiler& compiler, uint64_t seed);
Result<Measurement> checkPlan(const loop::Computation& kernel, const schedule::Plan& plan,
                              const codegen::KernelCompiler& compiler, uint64_t seed);

}  // namespace locution::tune

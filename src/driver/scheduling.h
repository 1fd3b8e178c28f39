// Who writes a compilation's plans: what --scheduler and --records ask for. Rules answer at once; records are looked up; a search has to
// measure first, on this machine, what the model's kernels could be.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "driver/compiler.h"
#include "driver/lower.h"
#include "generator/scheduler.h"

namespace locution::generator {
class FromRecords;
}
namespace locution::records {
class Store;
}
namespace locution::tune {
struct TuneKernel;
}

namespace locution::driver {

/// "analytic"; "evolutionary:200": a search and its trials for the whole model; "tlm:8": sentences for a kernel.
struct SchedulerSpec {
  std::string name;
  int64_t trials = 0;     ///< 0: no search
  int64_t sentences = 0;  ///< that the language model draws; 0: one, the likeliest ("tlm:greedy")
};
/// Errors: no such scheduler; a number that it wants or doesn't take. The message lists what there is.
Result<SchedulerSpec> parseScheduler(const std::string& text);

/// The kernels that steps run, equal ones once.
std::vector<tune::TuneKernel> kernelsToTune(const Lowered& lowered);
/// Errors: code for the target doesn't run here.
Status requireThisMachine(const TargetSpec& target);

class Scheduling {
 public:
  /// Errors: as parseScheduler; records that are missing, or that nobody reads or writes; the same of weights.
  static Result<std::unique_ptr<Scheduling>> make(const CompileOptions& options, const TargetSpec& target);
  ~Scheduling();
  /// Whether options and model alone decide the plans, so that compiled models may be kept.
  static bool isReproducible(const std::string& scheduler);
  /// Whether a machine's adapter (language_model.h) is among what decides them.
  static bool readsAdapter(const std::string& scheduler);

  const generator::Scheduler& scheduler() const { return *scheduler_; }
  /// `prepare` has something to do.
  bool measures() const { return found_ != nullptr; }
  /// Kernels that the sentences of a file are about get their plans from there. Errors: those of generator/sentences.h.
  Status prefer(const std::string& sentences, const std::string& file);
  /// Before the kernels of `lowered` are scheduled: where a search is asked for, makes it; else does nothing.
  Status prepare(const Lowered& lowered, const codegen::KernelCompiler& compiler, const std::string& model,
                 const Progress& progress);
  /// What a user should know about the plans.
  std::vector<std::string> warnings() const;

 private:
  class Found;
  explicit Scheduling(SchedulerSpec spec);

  SchedulerSpec spec_;
  int jobs_ = 0;
  uint64_t seed_ = 0;
  std::string place_;
  std::vector<std::string> warnings_;
  std::unique_ptr<records::Store> store_;
  std::unique_ptr<generator::Scheduler> scheduler_;
  Found* found_ = nullptr;                           ///< `scheduler_`, or below it, where it is what a search found
  const generator::FromRecords* records_ = nullptr;  ///< the same for records
};

}  // namespace locution::driver

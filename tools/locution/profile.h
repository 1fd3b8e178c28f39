// Where an inference's time goes, kernel by kernel: measured, set beside the machine's limits, and shown as a table, as JSON, and as a trace
// for chrome://tracing or Perfetto.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::tools {

/// One instruction of the executable.
struct ProfiledKernel {
  std::string name, op, sentence;  ///< op: the anchor's type
  std::vector<std::string> ops;    ///< all that is fused into it
  double ms = 0, share = 0;
  double flops = 0, bytes = 0;
  double rooflineMs =
      0;  ///< at the machine's limits: arithmetic at peak, or traffic at the speed of memory, whichever takes longer
  bool boundByMemory = false;

  double gflops() const { return ms > 0 ? flops / ms / 1e6 : 0; }
  double gbs() const { return ms > 0 ? bytes / ms / 1e6 : 0; }
  /// Above 1 where a cache gave the data.
  double rooflineFraction() const { return ms > 0 ? rooflineMs / ms : 0; }
};

struct Profile {
  std::vector<ProfiledKernel> kernels;  ///< in the order they run
  double totalMs = 0;
};

/// Collects the times of profiled runs, each whole run by itself: of runs that something else disturbed nothing is kept.
class ProfileCollector {
 public:
  explicit ProfileCollector(runtime::Context& context) : context_(context) {}
  /// Runs once with the profiler on.
  Status run();
  /// Each instruction's mean over the middle half of the runs by length, so that the sum stands for a median run.
  Profile take(const runtime::Executable& executable, int threads) const;

 private:
  runtime::Context& context_;
  std::vector<runtime::InstructionProfile> before_;
  std::vector<std::vector<float>> runs_;  ///< seconds of each instruction
};

nlohmann::ordered_json toJson(const ProfiledKernel& kernel);
/// The kernels' time by the anchor's op type, longest first: [{op, count, ms, share, gflops, gbs}].
nlohmann::ordered_json byOp(const Profile& profile);
/// Kernels by time, then the totals by kind; as wide as the terminal, or as wide as it takes where there is none.
void printProfile(const Profile& profile, double latencyMs);

/// Runs a few times and writes every instruction with begin and end.
Status writeTrace(const std::string& path, const std::string& model, runtime::Context& context,
                  const runtime::Executable& executable, const Profile& profile);

}  // namespace locution::tools

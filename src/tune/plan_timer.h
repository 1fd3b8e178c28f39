// Times plans of several kernels, each against its incumbent.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "tune/measure.h"

namespace locution::tune {

class PlanTimer {
 public:
  virtual ~PlanTimer() = default;
  /// As KernelBench::measure. Errors: the kernel can't be measured, or its incumbent fails.
  virtual Result<std::vector<Measurement>> measure(size_t kernel, const std::vector<schedule::Plan>& plans) = 0;
};

/// By the Measurer. Benches hold operands, so those that were not used for longest are closed when they hold too much together.
class BenchTimer : public PlanTimer {
 public:
  struct Kernel {
    const loop::Computation* computation;
    schedule::Plan incumbent;
  };
  BenchTimer(const codegen::KernelCompiler& compiler, MeasureOptions options, std::vector<Kernel> kernels);
  ~BenchTimer() override;
  Result<std::vector<Measurement>> measure(size_t kernel, const std::vector<schedule::Plan>& plans) override;

 private:
  struct Open {
    size_t kernel;
    std::unique_ptr<KernelBench> bench;
  };
  int64_t bytesOf(size_t kernel) const;

  Measurer measurer_;
  std::vector<Kernel> kernels_;
  std::list<Open> open_;  ///< the last used first
};

using MakeTimer = std::function<std::unique_ptr<PlanTimer>(std::vector<BenchTimer::Kernel>)>;
/// Of real measurements; `compiler` must outlive what it makes. `jobs`: threads that compile, 0: all cores; `seed`: of operands.
MakeTimer benchTimers(const codegen::KernelCompiler& compiler, int jobs, uint64_t seed);

}  // namespace locution::tune

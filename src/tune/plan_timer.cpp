#include "tune/plan_timer.h"

#include "loop/build.h"

namespace locution::tune {

namespace {
/// Of operands, held at once.
constexpr int64_t kMostBytes = int64_t{3} << 30;
}  // namespace

BenchTimer::BenchTimer(const codegen::KernelCompiler& compiler, MeasureOptions options, std::vector<Kernel> kernels)
    : measurer_(compiler, options), kernels_(std::move(kernels)) {}
BenchTimer::~BenchTimer() = default;

int64_t BenchTimer::bytesOf(size_t kernel) const {
  int64_t bytes = 0;
  const loop::Computation& c = *kernels_[kernel].computation;
  for (const auto* list : {&c.inputs, &c.outputs})
    for (const loop::BufferRef& b : *list) {
      int64_t elements = 1;
      for (int64_t d : loop::extents(*b)) elements *= d;
      // Operands twice: as given and packed; outputs twice: the incumbent's too.
      bytes += 2 * dtypeBytes(b->element.dtype, elements);
    }
  return bytes;
}

Result<std::vector<Measurement>> BenchTimer::measure(size_t kernel, const std::vector<schedule::Plan>& plans) {
  for (auto it = open_.begin(); it != open_.end(); ++it)
    if (it->kernel == kernel) {
      open_.splice(open_.begin(), open_, it);
      return open_.front().bench->measure(plans);
    }
  int64_t bytes = bytesOf(kernel);
  for (const Open& o : open_) bytes += bytesOf(o.kernel);
  while (!open_.empty() && bytes > kMostBytes) {
    bytes -= bytesOf(open_.back().kernel);
    open_.pop_back();
  }
  LOCUTION_ASSIGN_OR_RETURN(auto bench, measurer_.open(*kernels_[kernel].computation, kernels_[kernel].incumbent));
  open_.push_front({kernel, std::move(bench)});
  return open_.front().bench->measure(plans);
}

MakeTimer benchTimers(const codegen::KernelCompiler& compiler, int jobs, uint64_t seed) {
  return [&compiler, jobs, seed](std::vector<BenchTimer::Kernel> timed) -> std::unique_ptr<PlanTimer> {
    MeasureOptions measure;
    measure.jobs = jobs;
    measure.seed = seed;
    return std::make_unique<BenchTimer>(compiler, measure, std::move(timed));
  };
}

}  // namespace locution::tune

#include "tune/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "generator/scheduler.h"
#include "loop/build.h"
#include "loop/passes.h"
#include "tune/operands.h"
#include "tune/worker.h"

namespace locution::tune {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

void summarise(Measurement* m) {
  if (m->samples.empty()) return;
  m->seconds = quantile(m->samples, 0.5);
  m->spread = (quantile(m->samples, 0.75) - quantile(m->samples, 0.25)) / m->seconds;
  // What else the machine does only ever adds time: of as many samples the least are steadier than any mean (docs/decisions/measuring.md).
  m->ratio = *std::min_element(m->samples.begin(), m->samples.end()) /
             *std::min_element(m->incumbent.begin(), m->incumbent.end());
}

constexpr size_t kHugeConstant = 2u << 20;

}  // namespace

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok:
      return "ok";
    case Outcome::Wrong:
      return "wrong";
    case Outcome::Crash:
      return "crash";
    case Outcome::Timeout:
      return "timeout";
    case Outcome::Illegal:
      return "illegal";
  }
  return "";
}

struct KernelBench::Impl {
  std::unique_ptr<generator::Scheduler> packer = generator::makeAnalytic();
  Subject subject;

  Result<std::vector<Measurement>> run(const std::vector<schedule::Plan>& plans, Task task) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Measurement> out, runWorkers(&subject, plans, task));
    for (Measurement& m : out) summarise(&m);
    return out;
  }

  Status makeOperands(Values values) {
    Subject& s = subject;
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Tensor> made, tune::makeOperands(s.kernel, s.options.seed, values));
    s.inputs.clear();
    s.tensors.clear();
    for (size_t i = 0; i < made.size(); ++i) {
      const loop::BufferRef& b = s.kernel.inputs[i];
      const auto& constants = s.kernel.constants;
      const bool isConstant = std::find(constants.begin(), constants.end(), b) != constants.end();
      s.inputs.emplace_back(made[i].bytes(), Region::Sharing::Own, isConstant && made[i].bytes() >= kHugeConstant);
      std::memcpy(s.inputs.back().data(), made[i].raw(), made[i].bytes());
      s.inputs.back().protect();
      s.tensors.push_back(viewOf(s.inputs.back(), *b));
    }
    LOCUTION_ASSIGN_OR_RETURN(s.oracle, Oracle::make(s.kernel, s.tensors, s.options.maxPoints, s.options.seed));
    return Status::ok();
  }

  // Where the outputs are mostly NaN (roots and logarithms of anything) comparing them would tell little.
  Status makeOperands() {
    LOCUTION_RETURN_IF_ERROR(makeOperands(Values::AnySign));
    constexpr double kEnough = 0.75;
    return subject.oracle.finiteShare() >= kEnough ? Status::ok() : makeOperands(Values::Positive);
  }

  Status setIncumbent(const schedule::Plan& plan) {
    Subject& s = subject;
    s.incumbent = compileCandidate(s.kernel, plan, *s.compiler, *s.packer, s.packingCode.get());
    if (!s.incumbent->illegal.empty())
      return Status::error("the incumbent of '" + s.kernel.name + "': " + s.incumbent->illegal);
    for (const Packing& p : s.incumbent->packs) {
      if (!p.isConstant) continue;
      auto [it, added] = s.packed.try_emplace(p.key);
      if (!added) continue;
      const size_t bytes =
          Tensor(p.computation.outputs[0]->element.dtype, loop::extents(*p.computation.outputs[0])).bytes();
      it->second = Region(bytes, Region::Sharing::Own, bytes >= kHugeConstant);
      packConstant(p, s, it->second);
      it->second.protect();
    }
    for (const loop::BufferRef& b : s.kernel.outputs)
      s.reference.emplace_back(Tensor(b->element.dtype, loop::extents(*b)).bytes(), Region::Sharing::WithChildren);
    return run({}, Task::CheckIncumbent).status();
  }
};

KernelBench::KernelBench(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KernelBench::~KernelBench() = default;

Result<std::vector<Measurement>> KernelBench::measure(const std::vector<schedule::Plan>& plans) {
  LOCUTION_CHECK(impl_->subject.hasReference) << "nothing to measure against";
  return impl_->run(plans, Task::Measure);
}

Result<std::vector<Measurement>> KernelBench::check(const std::vector<schedule::Plan>& plans) {
  return impl_->run(plans, Task::Check);
}

Measurer::Measurer(const codegen::KernelCompiler& compiler, MeasureOptions options)
    : compiler_(compiler), options_(options) {
  if (options_.threads <= 0) options_.threads = compiler.target().threads;
}
Measurer::~Measurer() = default;

Result<std::unique_ptr<KernelBench>> Measurer::prepare(const loop::Computation& kernel,
                                                       const schedule::Plan* incumbent) const {
  if (kernel.raw) return Status::error("'" + kernel.name + "' is given as loops: there is nothing to schedule");
  auto impl = std::make_unique<KernelBench::Impl>();
  impl->subject.kernel = kernel;
  impl->subject.compiler = &compiler_;
  impl->subject.packer = impl->packer.get();
  impl->subject.options = options_;
  Status s = impl->makeOperands();
  if (!s.isOk()) return s.withContext("kernel '" + kernel.name + "'");
  if (incumbent) LOCUTION_RETURN_IF_ERROR(impl->setIncumbent(*incumbent));
  return std::unique_ptr<KernelBench>(new KernelBench(std::move(impl)));
}

Result<std::unique_ptr<KernelBench>> Measurer::open(const loop::Computation& kernel,
                                                    const schedule::Plan& incumbent) const {
  return prepare(kernel, &incumbent);
}

Result<std::vector<Measurement>> Measurer::measure(const loop::Computation& kernel,
                                                   const std::vector<schedule::Plan>& plans) const {
  if (plans.empty()) return std::vector<Measurement>();
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<KernelBench> bench, open(kernel, plans[0]));
  return bench->measure(plans);
}

Result<std::vector<Measurement>> checkPlans(const loop::Computation& kernel, const std::vector<schedule::Plan>& plans,
                                            const codegen::KernelCompiler& compiler, uint64_t seed) {
  MeasureOptions options;
  options.seed = seed;
  options.maxPoints = INFINITY;
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<KernelBench> bench, Measurer(compiler, options).prepare(kernel, nullptr));
  return bench->check(plans);
}

Result<Measurement> checkPlan(const loop::Computation& kernel, const schedule::Plan& plan,
                              const codegen::KernelCompiler& compiler, uint64_t seed) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Measurement> out, checkPlans(kernel, {plan}, compiler, seed));
  return out[0];
}

}  // namespace locution::tune

#include "driver/kernels.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "loop/passes.h"
#include "support/hash.h"

namespace locution::driver {

namespace {

template <typename Range>
size_t positionOf(const Range& range, const loop::BufferRef& b) {
  return static_cast<size_t>(std::find(range.begin(), range.end(), b) - range.begin());
}

}  // namespace

Result<ScheduledKernel> scheduleKernel(const loop::Computation& computation, const generator::Scheduler& scheduler,
                                       const TargetSpec& target) {
  ScheduledKernel out;
  std::vector<schedule::PackedOperand> packs;
  if (computation.raw) {
    out.function = schedule::rawFunction(computation);
  } else {
    LOCUTION_RETURN_IF_ERROR(scheduler.check(computation, target));
    schedule::Plan plan = scheduler.propose(computation, target);
    out.sentence = plan.str();
    auto lowered = schedule::apply(computation, plan);
    if (auto* error = std::get_if<schedule::ApplyError>(&lowered)) {
      LOCUTION_CHECK(false) << "the scheduler " << scheduler.name() << " wrote an illegal plan ("
                            << schedule::reasonText(error->reason) << ", step " << error->step << "): " << out.sentence
                            << "\n"
                            << loop::print(computation);
    }
    auto& l = std::get<schedule::Lowered>(lowered);
    out.function = std::move(l.function);
    packs = std::move(l.packs);
  }
  for (const loop::BufferRef& b : out.function.params) {
    size_t at = positionOf(computation.inputs, b);
    if (at < computation.inputs.size()) {
      out.params.push_back({Param::Kind::Input, at});
      continue;
    }
    at = positionOf(computation.outputs, b);
    if (at < computation.outputs.size()) {
      out.params.push_back({Param::Kind::Output, at});
      continue;
    }
    size_t k = 0;
    while (k < packs.size() && packs[k].packed != b) ++k;
    LOCUTION_CHECK(k < packs.size()) << b->name;
    out.params.push_back({Param::Kind::Packed, k});
  }
  for (schedule::PackedOperand& p : packs) {
    out.packSources.push_back(positionOf(computation.inputs, p.source));
    out.packComputations.push_back(std::move(p.computation));
  }
  Status ok = loop::verify(out.function);
  LOCUTION_CHECK(ok.isOk()) << ok.message() << "\nplan: " << out.sentence << "\n" << loop::print(out.function);
  return out;
}

uint64_t kernelKey(const loop::Computation& c) {
  std::string constants;
  for (const loop::BufferRef& b : c.inputs) constants += positionOf(c.constants, b) < c.constants.size() ? 'c' : 'v';
  return hashText(constants, loop::hash(c));
}

Status parallelTasks(size_t count, int jobs, const std::function<Status(size_t)>& task) {
  std::vector<Status> results(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  auto work = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      results[i] = task(i);
      if (!results[i].isOk()) failed = true;
    }
  };
  size_t threads = std::min(
      count,
      static_cast<size_t>(jobs > 0 ? jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))));
  std::vector<std::thread> pool;
  for (size_t t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  for (Status& s : results)
    if (!s.isOk()) return s;
  return Status::ok();
}

}  // namespace locution::driver

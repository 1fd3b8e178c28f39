#include "driver/evaluator.h"

#include <algorithm>
#include <cstring>

#include "driver/kernels.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/strided_copy.h"
#include "runtime/code_memory.h"
#include "schedule/stages.h"
#include "schedule/whole_bytes.h"

namespace locution::driver {

// Kernels in order; buffers by number: inputs, then outputs, then temporaries.
struct Evaluator::Compiled {
  struct Call {
    runtime::KernelFunction entry = nullptr;
    std::shared_ptr<runtime::CodeMemory> code;
    int64_t extent = 1;
    std::vector<size_t> buffers;
  };
  std::vector<Call> calls;
  std::vector<std::pair<DType, std::vector<int64_t>>> buffers;
};

Evaluator::Evaluator(const codegen::KernelCompiler& host, const generator::Scheduler& scheduler, int threads)
    : host_(host), scheduler_(scheduler), threads_(threads) {}
Evaluator::~Evaluator() = default;

namespace {

// Work small enough that interpreting it costs less than compiling it.
constexpr double kInterpretLimit = 1 << 15;
constexpr size_t kMaxCached = 512;

double workOf(const loop::Computation& c) {
  double work = 0;
  for (const loop::Stage& s : c.stages) {
    double points = 1;
    for (const loop::Axis& a : s.axes) points *= static_cast<double>(a.extent);
    for (const loop::Axis& a : s.reduce) points *= static_cast<double>(a.extent);
    work += points;
  }
  return work;
}

}  // namespace

Result<std::shared_ptr<const Evaluator::Compiled>> Evaluator::compile(const loop::Computation& computation) {
  uint64_t key = kernelKey(computation);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = cache_.find(key);
    if (it != cache_.end()) return it->second;
  }
  auto out = std::make_shared<Compiled>();
  std::map<const loop::Buffer*, size_t> number;
  auto numberOf = [&](const loop::BufferRef& b) {
    auto [it, added] = number.emplace(b.get(), out->buffers.size());
    if (added) out->buffers.emplace_back(b->element.dtype, loop::extents(*b));
    return it->second;
  };
  loop::Computation fused = computation;
  std::vector<loop::BufferRef> inputs = computation.inputs;
  if (!computation.raw) {
    for (const schedule::WholeBytes& w : schedule::writeWholeBytes(&fused))
      std::replace(inputs.begin(), inputs.end(), w.from, w.to);
    fused = schedule::fuseStages(fused);
  }
  // Those that nobody reads keep their numbers.
  for (const loop::BufferRef& b : inputs) numberOf(b);
  for (const loop::BufferRef& b : fused.outputs) numberOf(b);
  auto addCall = [&](const loop::Function& f, std::vector<size_t> buffers) -> Status {
    LOCUTION_ASSIGN_OR_RETURN(codegen::KernelCode code, host_.compile(f));
    Compiled::Call call;
    LOCUTION_ASSIGN_OR_RETURN(call.code, runtime::CodeMemory::create(code.bytes));
    call.entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>(call.code->data()));
    call.extent = f.parallelExtent;
    call.buffers = std::move(buffers);
    out->calls.push_back(std::move(call));
    return Status::ok();
  };
  for (const loop::Computation& kernel : schedule::cutKernels(fused, host_.target())) {
    LOCUTION_ASSIGN_OR_RETURN(ScheduledKernel scheduled, scheduleKernel(kernel, scheduler_, host_.target()));
    std::vector<size_t> packed;
    for (size_t k = 0; k < scheduled.packSources.size(); ++k) {
      const loop::Computation& pack = scheduled.packComputations[k];
      LOCUTION_ASSIGN_OR_RETURN(ScheduledKernel copy, scheduleKernel(pack, scheduler_, host_.target()));
      packed.push_back(numberOf(pack.outputs[0]));
      std::vector<size_t> buffers;
      for (const Param& p : copy.params)
        buffers.push_back(p.kind == Param::Kind::Input ? numberOf(kernel.inputs[scheduled.packSources[k]])
                                                       : packed.back());
      LOCUTION_RETURN_IF_ERROR(addCall(copy.function, std::move(buffers)));
    }
    std::vector<size_t> buffers;
    for (const Param& p : scheduled.params)
      buffers.push_back(
          p.kind == Param::Kind::Packed
              ? packed[p.index]
              : numberOf(p.kind == Param::Kind::Input ? kernel.inputs[p.index] : kernel.outputs[p.index]));
    LOCUTION_RETURN_IF_ERROR(addCall(scheduled.function, std::move(buffers)));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  // A process that compiles a model for ever new shapes meets ever new computations.
  if (cache_.size() >= kMaxCached) cache_.clear();
  return cache_.emplace(key, out).first->second;
}

Result<std::vector<Tensor>> Evaluator::evaluate(const loop::Computation& computation,
                                                const std::vector<Tensor>& inputs) {
  size_t n = computation.inputs.size();
  LOCUTION_CHECK(inputs.size() == n) << computation.name;
  if (interpretSmall_ && workOf(computation) <= kInterpretLimit && !computation.raw) {
    loop::Function f = loop::naiveLoops(computation);
    std::vector<Tensor> params = inputs;
    for (const loop::BufferRef& b : computation.outputs) params.emplace_back(b->element.dtype, loop::extents(*b));
    LOCUTION_RETURN_IF_ERROR(loop::interpret(f, params));
    return std::vector<Tensor>(params.begin() + static_cast<long>(n), params.end());
  }
  if (interpretSmall_)
    if (std::optional<loop::StridedCopy> copy = loop::asStridedCopy(computation)) {
      Tensor out(computation.outputs[0]->element.dtype, loop::extents(*computation.outputs[0]));
      runStridedCopy(*copy, inputs[0], &out);
      return std::vector<Tensor>{std::move(out)};
    }
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const Compiled> compiled, compile(computation));
  std::vector<Tensor> tensors = inputs;
  for (size_t i = n; i < compiled->buffers.size(); ++i)
    tensors.emplace_back(compiled->buffers[i].first, compiled->buffers[i].second);
  for (const Compiled::Call& call : compiled->calls) {
    std::vector<void*> pointers;
    for (size_t b : call.buffers) pointers.push_back(tensors[b].raw());
    runtime::KernelArgs args{pointers.data(), &runtime::mathTable()};
    int64_t pieces = std::clamp<int64_t>(call.extent, 1, threads_);
    LOCUTION_RETURN_IF_ERROR(parallelTasks(static_cast<size_t>(pieces), threads_, [&](size_t piece) {
      auto p = static_cast<int64_t>(piece);
      call.entry(&args, call.extent * p / pieces, call.extent * (p + 1) / pieces);
      return Status::ok();
    }));
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < computation.outputs.size(); ++i) {
    Tensor& made = tensors[n + i];
    const loop::Buffer& wanted = *computation.outputs[i];
    if (made.dtype() != wanted.element.dtype) {
      // The bytes of smaller elements.
      Tensor packed(wanted.element.dtype, loop::extents(wanted));
      std::memcpy(packed.raw(), made.raw(), packed.bytes());
      made = std::move(packed);
    }
    results.push_back(std::move(made));
  }
  return results;
}

}  // namespace locution::driver

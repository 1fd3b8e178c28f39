// Measures what plans are judged against, with generated code: one thread's multiply-add rate and its read bandwidth.
#include <time.h>

#include <algorithm>
#include <vector>

#include "core/tensor.h"
#include "loop/build.h"
#include "runtime/code_memory.h"
#include "runtime/cpu_features.h"
#include "runtime/kernel_abi.h"
#include "support/strings.h"
#include "targets/cpu/caches.h"
#include "targets/cpu/cpu_target.h"

namespace locution::targets::cpu {
namespace {

using loop::Expr;
using loop::LoopKind;

constexpr int kRuns = 9;
constexpr int64_t kFmaSteps = 3'000'000;
constexpr int64_t kReadBytes = int64_t{192} << 20;

loop::Stmt unrolled(const loop::VarRef& var, int64_t n, loop::Stmt body) {
  return loop::forLoop(var, loop::index(0), loop::index(n), LoopKind::Unrolled, std::move(body));
}

/// `chains` vectors, each x = x * factor + addend, `steps` times: more chains than the latency needs, few enough for registers.
loop::Function fmaKernel(int lanes, int64_t chains, int64_t steps) {
  auto in = loop::makeBuffer("in", {DType::F32, 1}, {2 * lanes});
  auto out = loop::makeBuffer("out", {DType::F32, 1}, {chains * lanes});
  auto acc = loop::makeBuffer("acc", {DType::F32, lanes}, {chains}, loop::Scope::Register);
  auto c = loop::makeVar("c");
  auto n = loop::makeVar("n");
  auto vectorAt = [&](Expr at) { return loop::ramp(std::move(at), loop::index(1), lanes); };
  Expr factor = loop::load(in, {vectorAt(loop::index(0))});
  Expr addend = loop::load(in, {vectorAt(loop::index(lanes))});
  loop::Stmt init = unrolled(c, chains, loop::store(acc, {c}, addend));
  loop::Stmt step = unrolled(c, chains, loop::store(acc, {c}, loop::load(acc, {c}) * factor + addend));
  loop::Stmt all = loop::forLoop(n, loop::index(0), loop::index(steps), LoopKind::Serial, step);
  loop::Stmt end = unrolled(c, chains, loop::store(out, {vectorAt(Expr(c) * lanes)}, loop::load(acc, {c})));
  loop::Function f;
  f.name = "peak";
  f.params = {in, out};
  f.outputCount = 1;
  f.body = loop::allocate(acc, loop::block({init, all, end}));
  return f;
}

/// Sums a buffer into four vectors.
loop::Function readKernel(int lanes, int64_t elements) {
  constexpr int64_t kChains = 4;
  auto in = loop::makeBuffer("in", {DType::F32, 1}, {elements});
  auto out = loop::makeBuffer("out", {DType::F32, 1}, {kChains * lanes});
  auto acc = loop::makeBuffer("acc", {DType::F32, lanes}, {kChains}, loop::Scope::Register);
  auto c = loop::makeVar("c");
  auto n = loop::makeVar("n");
  Expr lane = Expr(c) * lanes;
  Expr at = loop::ramp(Expr(n) * (kChains * lanes) + lane, loop::index(1), lanes);
  loop::Stmt init = unrolled(c, kChains, loop::store(acc, {c}, loop::broadcast(loop::floatImm(DType::F32, 0), lanes)));
  loop::Stmt step = unrolled(c, kChains, loop::store(acc, {c}, loop::load(acc, {c}) + loop::load(in, {at})));
  loop::Stmt all = loop::forLoop(n, loop::index(0), loop::index(elements / (kChains * lanes)), LoopKind::Serial, step);
  loop::Stmt end =
      unrolled(c, kChains, loop::store(out, {loop::ramp(lane, loop::index(1), lanes)}, loop::load(acc, {c})));
  loop::Function f;
  f.name = "read";
  f.params = {in, out};
  f.outputCount = 1;
  f.body = loop::allocate(acc, loop::block({init, all, end}));
  return f;
}

/// This thread's, so that other programs do not count.
double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Median seconds of one run.
Result<double> timeOf(const codegen::KernelCompiler& compiler, const loop::Function& f, Tensor& in, Tensor& out) {
  LOCUTION_ASSIGN_OR_RETURN(auto code, compiler.compile(f));
  LOCUTION_ASSIGN_OR_RETURN(auto memory, runtime::CodeMemory::create(code.bytes));
  auto entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>(memory->data()));
  void* buffers[] = {in.raw(), out.raw()};
  runtime::KernelArgs args{buffers, &runtime::mathTable()};
  std::vector<double> seconds;
  for (int i = 0; i <= kRuns; ++i) {
    double start = cpuSeconds();
    entry(&args, 0, 1);
    // The first run warms up.
    if (i > 0) seconds.push_back(cpuSeconds() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

}  // namespace

Result<TargetSpec> measureMachine(const TargetSpec& base) {
  auto missing = runtime::missingFeatures(base.features);
  if (!missing.empty())
    return Status::error("this machine can't be measured as " + base.cpu + ": it lacks " + join(missing, ", "));
  TargetSpec spec = base;
  readCacheSizes(&spec);
  auto compiler = makeKernelCompiler(base);
  int lanes = base.lanes(4);
  int64_t chains = base.vectorRegisters >= 32 ? 24 : 12;

  Tensor fmaIn(DType::F32, {2 * lanes});
  for (int64_t i = 0; i < 2 * lanes; ++i) fmaIn.setElement(i, i < lanes ? 0.999 : 0.001);
  Tensor fmaOut(DType::F32, {chains * lanes});
  LOCUTION_ASSIGN_OR_RETURN(double fmaSeconds, timeOf(*compiler, fmaKernel(lanes, chains, kFmaSteps), fmaIn, fmaOut));
  spec.peakGflops = 2e-9 * static_cast<double>(chains * lanes * kFmaSteps) / fmaSeconds;

  Tensor big(DType::F32, {kReadBytes / 4});
  // Fresh pages are all one page of zeros until they are written.
  for (int64_t i = 0; i < kReadBytes / 4; i += 512) big.data<float>()[i] = 1;
  Tensor sums(DType::F32, {int64_t{4} * lanes});
  LOCUTION_ASSIGN_OR_RETURN(double readSeconds, timeOf(*compiler, readKernel(lanes, kReadBytes / 4), big, sums));
  spec.readGbs = 1e-9 * static_cast<double>(kReadBytes) / readSeconds;
  return spec;
}

}  // namespace locution::targets::cpu

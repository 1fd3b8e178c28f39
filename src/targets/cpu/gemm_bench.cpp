// The register tile of a packed GEMM on each instruction set that runs here: GFLOP/s, its share of the measured multiply-add
// peak, and the time to compile it.
#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/tensor.h"
#include "loop/build.h"
#include "runtime/code_memory.h"
#include "runtime/kernel_abi.h"
#include "targets/cpu/cpu_target.h"

namespace locution::targets::cpu {
namespace {

using loop::Expr;
using loop::LoopKind;

constexpr int64_t kDepth = 768;

/// C[rows x vectors*lanes] = A[K x rows]^T * B[K x vectors*lanes]
loop::Function gemm(int64_t rows, int64_t vectors, int64_t unroll, int lanes) {
  auto a = loop::makeBuffer("a", {DType::F32, 1}, {kDepth, rows});
  auto b = loop::makeBuffer("b", {DType::F32, 1}, {kDepth, vectors * lanes});
  auto c = loop::makeBuffer("c", {DType::F32, 1}, {rows, vectors * lanes});
  auto acc = loop::makeBuffer("acc", {DType::F32, lanes}, {rows, vectors}, loop::Scope::Register);
  auto i = loop::makeVar("i");
  auto j = loop::makeVar("j");
  auto outer = loop::makeVar("outer");
  auto inner = loop::makeVar("inner");
  auto unrolled = [](const loop::VarRef& var, int64_t n, loop::Stmt s) {
    return loop::forLoop(var, loop::index(0), loop::index(n), LoopKind::Unrolled, std::move(s));
  };
  auto tile = [&](loop::Stmt s) { return unrolled(i, rows, unrolled(j, vectors, std::move(s))); };
  Expr k = Expr(outer) * unroll + Expr(inner);
  Expr column = loop::ramp(Expr(j) * lanes, loop::index(1), lanes);
  Expr product = loop::broadcast(loop::load(a, {k, i}), lanes) * loop::load(b, {k, column});
  loop::Stmt init = tile(loop::store(acc, {i, j}, loop::broadcast(loop::floatImm(DType::F32, 0), lanes)));
  loop::Stmt step = unrolled(inner, unroll, tile(loop::store(acc, {i, j}, loop::load(acc, {i, j}) + product)));
  loop::Stmt sum = loop::forLoop(outer, loop::index(0), loop::index(kDepth / unroll), LoopKind::Serial, step);
  loop::Function f;
  f.name = "gemm";
  f.params = {a, b, c};
  f.outputCount = 1;
  f.body = loop::allocate(acc, loop::block({init, sum, tile(loop::store(c, {i, column}, loop::load(acc, {i, j})))}));
  return f;
}

/// Of this thread, so that a busy machine does not show.
double cpuMilliseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

/// The target with its measured profile, or null where it doesn't run.
const TargetSpec* measuredTarget(int64_t which) {
  static const char* const kNames[] = {"x86-64-v2", "x86-64-v3", "native"};
  static std::map<int64_t, std::optional<TargetSpec>> cache;
  auto [it, isNew] = cache.try_emplace(which);
  if (isNew) {
    auto target = makeTarget("", kNames[which], 1);
    auto measured = target ? measureMachine(*target) : target;
    if (measured) it->second = *measured;
  }
  return it->second ? &*it->second : nullptr;
}

void tile(benchmark::State& state) {
  const TargetSpec* target = measuredTarget(state.range(0));
  int64_t rows = state.range(1), vectors = state.range(2), unroll = state.range(3);
  if (!target || rows * vectors > target->vectorRegisters) return state.SkipWithError("not on this machine");
  auto compiler = makeKernelCompiler(*target);
  int lanes = target->lanes(4);
  loop::Function f = gemm(rows, vectors, unroll, lanes);
  double best = 1e9;
  Result<codegen::KernelCode> code = Status::error("not compiled");
  for (int i = 0; i < 10; ++i) {
    double start = cpuMilliseconds();
    code = compiler->compile(f);
    best = std::min(best, cpuMilliseconds() - start);
  }
  auto memory = code ? runtime::CodeMemory::create(code->bytes) : code.status();
  if (!memory) return state.SkipWithError(memory.status().message().c_str());
  auto entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>((*memory)->data()));
  Tensor a(DType::F32, {kDepth, rows}), b(DType::F32, {kDepth, vectors * lanes}),
      c(DType::F32, {rows, vectors * lanes});
  void* buffers[] = {a.raw(), b.raw(), c.raw()};
  runtime::KernelArgs args{buffers, &runtime::mathTable()};
  for (auto step : state) {
    entry(&args, 0, 1);
    benchmark::ClobberMemory();
  }
  double flops = 2.0 * static_cast<double>(rows * vectors * lanes * kDepth) * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(flops * 1e-9 / target->peakGflops, benchmark::Counter::kIsRate);
  state.counters["compile_ms"] = best;
  state.counters["bytes"] = static_cast<double>(code->bytes.size());
}
BENCHMARK(tile)->ArgNames({"isa", "rows", "vectors", "unroll"})->ArgsProduct({{0, 1}, {4, 6}, {2}, {1, 4}});
BENCHMARK(tile)->ArgNames({"isa", "rows", "vectors", "unroll"})->ArgsProduct({{2}, {6, 7}, {4}, {1, 2, 4}});
BENCHMARK(tile)->ArgNames({"isa", "rows", "vectors", "unroll"})->ArgsProduct({{2}, {14}, {2}, {1, 4}});

}  // namespace
}  // namespace locution::targets::cpu

// What tests of generated code share: the instruction sets to try, compiling, and running on tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "loop/build.h"
#include "loop/scalar.h"
#include "runtime/code_memory.h"
#include "runtime/cpu_features.h"
#include "runtime/kernel_abi.h"
#include "targets/cpu/cpu_target.h"

namespace locution::targets::cpu {

/// One target for each vector width, of those that this machine can run.
inline std::vector<TargetSpec> runnableTargets() {
  std::vector<TargetSpec> out;
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
    auto target = makeTarget("", cpu, 1);
    EXPECT_TRUE(target) << target.status().message();
    if (target && runtime::missingFeatures(target->features).empty()) out.push_back(*target);
  }
  return out;
}

/// A compiled function; a test failure, and not valid, when it doesn't compile.
class CompiledKernel {
 public:
  CompiledKernel(const TargetSpec& target, const loop::Function& f) : extent_(f.parallelExtent) {
    auto code = makeKernelCompiler(target)->compile(f);
    EXPECT_TRUE(code) << code.status().message();
    if (!code) return;
    auto memory = runtime::CodeMemory::create(code->bytes);
    EXPECT_TRUE(memory);
    if (memory) memory_ = *memory;
  }
  bool isValid() const { return memory_ != nullptr; }
  /// Runs the whole parallel range, cut into `parts` calls.
  void run(std::vector<Tensor>& params, int64_t parts = 1) const {
    auto entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>(memory_->data()));
    std::vector<void*> buffers;
    for (Tensor& t : params) buffers.push_back(t.raw());
    runtime::KernelArgs args{buffers.data(), &runtime::mathTable()};
    for (int64_t i = 0; i < parts; ++i) EXPECT_EQ(entry(&args, extent_ * i / parts, extent_ * (i + 1) / parts), 0);
  }

 private:
  int64_t extent_;
  // Shared because the runtime hands it out so.
  std::shared_ptr<runtime::CodeMemory> memory_;
};

inline bool runKernel(const TargetSpec& target, const loop::Function& f, std::vector<Tensor>& params,
                      int64_t parts = 1) {
  CompiledKernel kernel(target, f);
  if (kernel.isValid()) kernel.run(params, parts);
  return kernel.isValid();
}

inline uint64_t bitsAt(const Tensor& t, int64_t i) {
  int bytes = dtypeBits(t.dtype()) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, t.raw() + i * bytes, static_cast<size_t>(bytes));
  return bits;
}
inline void setBits(Tensor& t, int64_t i, uint64_t bits) {
  auto bytes = static_cast<size_t>(dtypeBits(t.dtype()) / 8);
  std::memcpy(t.raw() + i * static_cast<int64_t>(bytes), &bits, bytes);
}
inline loop::Word wordAt(const Tensor& t, int64_t i) { return loop::bitsToWord(t.dtype(), bitsAt(t, i)); }

/// Equal values; any NaN equals any NaN, and +0 equals -0 where `signedZeros` is false.
inline bool sameWord(DType type, loop::Word a, loop::Word b, bool signedZeros = true) {
  if (!isFloat(type)) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  return a.f == b.f && (!signedZeros || std::signbit(a.f) == std::signbit(b.f));
}

/// Values that tend to break things, then random bits.
inline Tensor interesting(DType type, int64_t count, uint64_t seed) {
  Tensor t(type, {count});
  std::mt19937_64 random(seed);
  std::vector<double> floats = {0.0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                1.5,
                                2,
                                3,
                                -7,
                                10,
                                127,
                                128,
                                255,
                                256,
                                -128,
                                -129,
                                32767,
                                65504,
                                65520,
                                1e5,
                                2147483647.0,
                                2147483648.0,
                                -2147483648.0,
                                -2147483649.0,
                                9.3e18,
                                -9.3e18,
                                1.9e19,
                                1e30,
                                -1e38,
                                3.5e38,
                                1e-40,
                                -1e-45,
                                6e-8,
                                5.9e-5,
                                1e300,
                                __builtin_inf(),
                                -__builtin_inf(),
                                __builtin_nan("")};
  std::vector<int64_t> ints = {0,
                               1,
                               -1,
                               2,
                               -2,
                               3,
                               7,
                               8,
                               31,
                               32,
                               63,
                               64,
                               100,
                               127,
                               -127,
                               -128,
                               255,
                               32767,
                               -32768,
                               65535,
                               16777217,
                               2147483647,
                               -2147483648LL,
                               4294967295LL,
                               INT64_MAX,
                               INT64_MIN};
  for (int64_t i = 0; i < count; ++i) {
    auto pick = random();
    bool isSpecial = pick % 3 != 0;
    if (isFloat(type)) {
      double scale = static_cast<double>(random() % 2000) / 100 - 10;
      double value = floats[pick / 7 % floats.size()];
      uint64_t bits = loop::wordToBits(type, loop::wordOf(loop::roundFloat(type, isSpecial ? value : scale)));
      // Random bits too, but no signalling NaN: a move through a register may quiet it.
      if (pick % 11 == 0) bits = loop::wordToBits(type, loop::bitsToWord(type, random()));
      setBits(t, i, bits);
    } else {
      int64_t value = isSpecial ? ints[pick / 7 % ints.size()] : static_cast<int64_t>(random());
      setBits(t, i, loop::wordToBits(type, loop::wordOf(loop::wrapInt(type, value))));
    }
  }
  return t;
}

/// The types that kernels compute with and store.
inline const std::vector<DType>& computeTypes() {
  static const std::vector<DType> kTypes = {
      DType::F32,  DType::F64,      DType::F16,        DType::BF16,   DType::I8,         DType::I16,
      DType::I32,  DType::I64,      DType::U8,         DType::U16,    DType::U32,        DType::U64,
      DType::Bool, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0};
  return kTypes;
}

/// for i: store(i) over `count` elements, `lanes` at a time, the last ones under a mask.
struct VectorLoop {
  loop::VarRef var = loop::makeVar("i");
  loop::Expr at, mask;
  int64_t steps = 0;
  VectorLoop(int64_t count, int lanes) {
    if (lanes == 1) {
      at = var;
      steps = count;
      return;
    }
    at = loop::ramp(loop::Expr(var) * lanes, loop::index(1), lanes);
    steps = (count + lanes - 1) / lanes;
    if (count % lanes != 0) mask = loop::lt(at, loop::broadcast(loop::index(count), lanes));
  }
  loop::Stmt over(loop::Stmt body, loop::LoopKind kind = loop::LoopKind::Serial) const {
    return loop::forLoop(var, loop::index(0), loop::index(steps), kind, std::move(body));
  }
};

}  // namespace locution::targets::cpu

// The contract between generated code and whoever runs it. A kernel is position-independent machine code without relocations
// or external symbols: all it needs comes through Args. Part of the .loc version.
#pragma once

#include <cstdint>

namespace locution::runtime {

/// C library functions that generated code may call, one element at a time; the order is math_table.inc: append only.
struct MathTable {
#define MATH_F32_1(name) float (*name##F32)(float);
#define MATH_F32_2(name) float (*name##F32)(float, float);
#define MATH_F64_1(name) double (*name##F64)(double);
#define MATH_F64_2(name) double (*name##F64)(double, double);
#include "runtime/math_table.inc"
#undef MATH_F32_1
#undef MATH_F32_2
#undef MATH_F64_1
#undef MATH_F64_2
};

struct KernelArgs {
  void* const*
      buffers;  ///< one a Function param, in order; 64-byte aligned unless the param is a model input or output
  const MathTable* math;
};

/// Runs iterations [begin, end) of the kernel's parallel loop ([0, 1) when it has none). Returns 0.
/// The caller may run any partition of the range, in any order, on any threads.
using KernelFunction = int (*)(const KernelArgs* args, int64_t begin, int64_t end);

const MathTable& mathTable();

}  // namespace locution::runtime

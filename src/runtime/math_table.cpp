#include <cmath>

#include "runtime/kernel_abi.h"

namespace locution::runtime {

const MathTable& mathTable() {
  static constexpr MathTable kTable = {
#define MATH_F32_1(name) [](float x) { return std::name(x); },
#define MATH_F32_2(name) [](float x, float y) { return std::name(x, y); },
#define MATH_F64_1(name) [](double x) { return std::name(x); },
#define MATH_F64_2(name) [](double x, double y) { return std::name(x, y); },
#include "runtime/math_table.inc"
#undef MATH_F32_1
#undef MATH_F32_2
#undef MATH_F64_1
#undef MATH_F64_2
  };
  return kTable;
}

}  // namespace locution::runtime

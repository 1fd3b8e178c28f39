// The expansions, run by the interpreter; their accuracy over all of float32 is tested with generated code in targets/cpu.
#include "codegen/expand_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensor.h"
#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"

namespace locution::codegen {
namespace {

loop::Function apply(const char* name, DType type, int64_t count) {
  auto in = loop::makeBuffer("in", {type, 1}, {count});
  auto out = loop::makeBuffer("out", {type, 1}, {count});
  auto i = loop::makeVar("i");
  loop::Function f;
  f.name = name;
  f.params = {in, out};
  f.outputCount = 1;
  f.body = loop::forLoop(i, loop::index(0), loop::index(count), loop::LoopKind::Serial,
                         loop::store(out, {i}, loop::call(name, {loop::load(in, {i})})));
  return f;
}

std::vector<double> run(const loop::Function& f, DType type, const std::vector<double>& values) {
  auto count = static_cast<int64_t>(values.size());
  std::vector<Tensor> params = {Tensor(type, {count}), Tensor(type, {count})};
  for (int64_t i = 0; i < count; ++i) params[0].setElement(i, values[static_cast<size_t>(i)]);
  Status status = loop::interpret(f, params);
  EXPECT_TRUE(status) << status.message();
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(params[1].elementAsDouble(i));
  return out;
}

const std::vector<double>& inputs() {
  static const std::vector<double> kInputs = {0.0, -0.0, 1e-45, -1e-40, 1e-10,    0.3,       -0.6, 0.7,
                                              1,   -1,   2.5,   -4,     9,        -20,       60,   88.5,
                                              -90, 200,  -200,  3e38,   INFINITY, -INFINITY, NAN};
  return kInputs;
}

TEST(ExpandMath, AgreesWithTheLibrary) {
  for (DType type : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (const char* name : {"exp", "log", "tanh", "erf", "sigmoid"}) {
      auto count = static_cast<int64_t>(inputs().size());
      loop::Function f = apply(name, type, count);
      loop::Function expanded = expandMath(f);
      Status status = loop::verify(expanded);
      ASSERT_TRUE(status) << status.message();
      auto expected = run(f, type, inputs());
      auto actual = run(expanded, type, inputs());
      double unit = type == DType::F16    ? 0x1p-10
                    : type == DType::BF16 ? 0x1p-7
                    : type == DType::F32  ? 0x1p-21
                                          : 0x1p-50;
      double smallest = type == DType::F16 ? 0x1p-23 : 0x1p-147;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i]) || std::isinf(expected[i])) {
          EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : expected[i] == actual[i])
              << name << "(" << inputs()[i] << ") = " << actual[i];
        } else {
          EXPECT_NEAR(actual[i], expected[i], std::max(unit * std::fabs(expected[i]), smallest))
              << name << "(" << inputs()[i] << ") of " << dtypeName(type);
        }
      }
    }
  }
}

TEST(ExpandMath, LeavesOtherCallsAlone) {
  loop::Function f = apply("sin", DType::F32, 3);
  EXPECT_EQ(expandMath(f).body, f.body);
  loop::Function g = apply("exp", DType::F64, 3);
  EXPECT_EQ(expandMath(g).body, g.body);
}

}  // namespace
}  // namespace locution::codegen

// Models whose dims are left open: any shape runs, each is compiled once, memory stays within bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "driver/compiler.h"
#include "driver/lazy_region.h"
#include "runtime/context.h"

namespace locution::driver {
namespace {

using ::testing::HasSubstr;

Result<Compiled> compileOpen(const std::string& text, CompileOptions options = {}) {
  auto graph = graph::parseGraph(text);
  EXPECT_TRUE(graph.isOk()) << graph.status().message();
  options.jobs = 1;
  options.anyShape = true;
  return compileGraph(std::move(*graph), options);
}
runtime::Context contextOf(const Compiled& compiled) {
  auto program = runtime::Program::load(compiled.executable);
  EXPECT_TRUE(program.isOk()) << program.status().message();
  return runtime::Context(*program, runtime::ThreadPool::create(1));
}
int64_t compilations(const Compiled& compiled) {
  return static_cast<LazyRegion&>(*compiled.executable->regions.at(0).compiler).compilations();
}
Tensor filled(const std::vector<int64_t>& dims, float value) {
  Tensor t(DType::F32, dims);
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, value);
  return t;
}

// The sum of each row of two inputs, times 2.
constexpr const char* kRows = R"(graph "rows" {
  input %x: float32["n"x"m"]
  input %y: float32["n"x"m"]
  const %axes: int64[1] = [1]
  const %two: float32[scalar] = 2
  %s: float32["n"x"m"] = Add(%x, %y)
  %r: float32["n"x1] = ReduceSum(%s, %axes)
  %z: float32["n"x1] = Mul(%r, %two)
  output %z
})";

TEST(LazyModel, EveryShapeIsCompiledOnce) {
  auto compiled = compileOpen(kRows);
  ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
  EXPECT_EQ(compiled->executable->inputs[0].dims, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(compiled->executable->outputs[0].dims, (std::vector<int64_t>{-1, 1}));
  runtime::Context context = contextOf(*compiled), other = contextOf(*compiled);
  for (int round = 0; round < 2; ++round)
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3}, {1, 1}, {5, 0}, {0, 4}, {7, 67}})
      for (runtime::Context* c : {&context, &other}) {
        ASSERT_TRUE(c->setInput(0, filled(dims, 1)).isOk());
        ASSERT_TRUE(c->setInput(1, filled(dims, 0.5F)).isOk());
        Status ran = c->run();
        ASSERT_TRUE(ran.isOk()) << ran.message();
        ASSERT_EQ(c->output(0).dims(), (std::vector<int64_t>{dims[0], 1}));
        for (int64_t i = 0; i < dims[0]; ++i)
          EXPECT_EQ(c->output(0).elementAsDouble(i), 3 * static_cast<double>(dims[1]));
      }
  EXPECT_EQ(compilations(*compiled), 5);
}

TEST(LazyModel, WhatDoesNotFitIsAnErrorOfTheRun) {
  auto compiled = compileOpen(kRows);
  ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
  runtime::Context context = contextOf(*compiled);
  EXPECT_EQ(context.setInput(0, filled({4}, 0)).message(), "input \"x\" must be float32[?x?], but is float32[4]");
  ASSERT_TRUE(context.setInput(0, filled({4, 2}, 0)).isOk());
  ASSERT_TRUE(context.setInput(1, filled({4, 3}, 0)).isOk());
  EXPECT_EQ(context.run().message(), "rows: input 'y', dim 1: 'm' is 3 here, but 2 in input 'x', dim 1");
  ASSERT_TRUE(context.setInput(1, filled({4, 2}, 1)).isOk());
  EXPECT_TRUE(context.run().isOk());
}

TEST(LazyModel, ValuesThatDecideShapesAreCompiledIn) {
  auto compiled = compileOpen(R"(graph "view" {
    input %x: float32["n"]
    input %shape: int64[2]
    %y: float32[?] = Reshape(%x, %shape)
    %z: float32[?] = Neg(%y)
    output %z
  })");
  ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
  runtime::Context context = contextOf(*compiled);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 3}, {3, 2}, {6, 1}, {2, 3}}) {
    ASSERT_TRUE(context.setInput(0, filled({6}, 1)).isOk());
    ASSERT_TRUE(context.setInput(1, Tensor::vectorI64(shape)).isOk());
    Status ran = context.run();
    ASSERT_TRUE(ran.isOk()) << ran.message();
    EXPECT_EQ(context.output(0).dims(), shape);
    EXPECT_EQ(context.output(0).elementAsDouble(5), -1);
  }
  EXPECT_EQ(compilations(*compiled), 3);
}

TEST(LazyModel, WhatIsSettledIsCompiledAhead) {
  CompileOptions options;
  options.inputShapes["x"] = Shape::of({2, 3});
  auto compiled = compileOpen(kRows, options);
  ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
  EXPECT_TRUE(compiled->executable->regions.empty());  // y's dims have the same names
  auto rank = compileOpen("graph \"g\" {\n input %x: float32[?]\n %y: float32[?] = Neg(%x)\n output %y\n}");
  ASSERT_FALSE(rank.isOk());
  EXPECT_THAT(rank.status().message(), HasSubstr("not even the rank of input 'x' is known"));
}

}  // namespace
}  // namespace locution::driver

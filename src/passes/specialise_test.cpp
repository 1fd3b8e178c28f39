#include "passes/specialise.h"

#include <gtest/gtest.h>

namespace locution::passes {
namespace {

constexpr const char* kTwoInputs = R"(graph "g" {
  input %x: float32[batchx3]
  input %y: float32[batchxn]
  %z: float32[batchxn] = Foo(%x, %y)
  output %z
})";

graph::Graph parse(const char* text) {
  Result<graph::Graph> graph = graph::parseGraph(text);
  EXPECT_TRUE(graph.isOk()) << graph.status().message();
  return std::move(graph.value());
}

std::string messageOf(const char* text, const std::map<std::string, Shape>& shapes,
                      const std::map<std::string, Tensor>& values = {}) {
  graph::Graph graph = parse(text);
  graph::Patch patch(graph);
  return specialise(patch, shapes, values).message();
}

TEST(Specialise, ASymbolIsBoundForAllInputs) {
  graph::Graph graph = parse(kTwoInputs);
  graph::Patch patch(graph);
  ASSERT_TRUE(specialise(patch, {{"x", Shape{4, 3}}}, {}).isOk());
  EXPECT_EQ(graph.type(graph.findValue("y")).shape.str(), "4xn");
  EXPECT_EQ(graph.type(graph.findValue("z")).shape.str(), "4xn");
  ASSERT_EQ(dynamicDims(graph).size(), 1U);
  EXPECT_EQ(dynamicDims(graph)[0].symbol, "n");
  EXPECT_EQ(needStaticInputs(graph).message(),
            "input 'y': dim 1 (n) is dynamic in 4xn; give the numbers with --shape y=..., or a value with --input");
}

TEST(Specialise, Messages) {
  EXPECT_EQ(messageOf(kTwoInputs, {{"q", Shape{1}}}), "the model has no input 'q'; its inputs are: x, y");
  EXPECT_EQ(messageOf(kTwoInputs, {{"x", Shape{1}}}), "input 'x' has 2 dims (batchx3), but 1 are given (1)");
  EXPECT_EQ(messageOf(kTwoInputs, {{"x", Shape{2, 4}}}),
            "input 'x', dim 1: the model wants 3 (batchx3), given is 4 (2x4)");
  EXPECT_EQ(messageOf(kTwoInputs, {{"x", Shape{2, 3}}, {"y", Shape{5, 1}}}),
            "input 'y', dim 0: 'batch' is 5 here, but 2 in input 'x', dim 0");
  EXPECT_EQ(messageOf(kTwoInputs, {}, {{"x", Tensor(DType::F64, {2, 3})}}),
            "input 'x': the model wants float32, given is float64");
  EXPECT_EQ(messageOf(kTwoInputs, {{"x", Shape{2, 3}}}, {{"x", Tensor(DType::F32, {1, 3})}}),
            "input 'x': the shape given is 2x3, but its value has the shape 1x3");
}

TEST(Specialise, ValuesThatDecideShapesBecomeConstants) {
  graph::Graph graph = parse(R"(graph "g" {
    input %x: float32[nx3]
    input %shape: int64[2]
    input %ids: int64[4]
    const %one: int64[1] = [1]
    %s: int64[2] = Mul(%shape, %one)
    %r: float32[?] = Reshape(%x, %s)
    %g: float32[?] = Gather(%r, %ids)
    output %g
  })");
  graph::Patch patch(graph);
  ASSERT_EQ(shapeInputs(graph).size(), 1U);
  EXPECT_EQ(shapeInputs(graph)[0], graph.findValue("shape"));
  std::vector<graph::ValueId> frozen;
  Status s = specialise(patch, {},
                        {{"x", Tensor(DType::F32, {2, 3})},
                         {"shape", Tensor::vectorI64({3, 2})},
                         {"ids", Tensor::vectorI64({0, 1, 2, 0})}},
                        &frozen);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(frozen, std::vector<graph::ValueId>{graph.findValue("shape")});
  EXPECT_TRUE(graph.users(graph.findValue("shape")).empty());
  EXPECT_FALSE(graph.users(graph.findValue("ids")).empty());
  EXPECT_TRUE(graph.isMainInput(graph.findValue("shape")));
  EXPECT_TRUE(graph::verify(graph).isOk());
}

TEST(Specialise, ShapesBeyondAnyMemory) {
  EXPECT_EQ(
      needStaticInputs(parse("graph \"g\" {\n input %x: float32[3x4611686018427387904]\n output %x\n}")).message(),
      "input 'x': the shape 3x4611686018427387904 is too large");
}

TEST(Specialise, UnrankedInputsTakeAnyShape) {
  graph::Graph graph = parse("graph \"g\" {\n input %x: float32[?]\n output %x\n}");
  EXPECT_NE(needStaticInputs(graph).message().find("input 'x' has no known shape"), std::string::npos);
  graph::Patch patch(graph);
  ASSERT_TRUE(specialise(patch, {{"x", Shape{2, 5}}}, {}).isOk());
  EXPECT_TRUE(needStaticInputs(graph).isOk());
}

}  // namespace
}  // namespace locution::passes

#include <gtest/gtest.h>

#include "ops/one_node.h"

namespace locution::ops {
namespace {

// Infers the lines of a graph whose values have unknown shapes; gives the type of %y, or the message.
std::string typeOf(const std::string& lines) {
  auto graph = graph::parseGraph("graph \"g\" {\n" + lines + "\noutput %y\n}");
  if (!graph) return graph.status().message();
  KnownDims known;
  Status status = inferGraph(*graph, known);
  return status.isOk() ? graph->type(graph->findValue("y")).str() : status.message();
}

TEST(Infer, ShapeGatherConcatReshape) {
  EXPECT_EQ(typeOf("input %x: float32[batchxseqx768]\n"
                   "const %zero: int64[scalar] = 0\n"
                   "const %axis: int64[1] = [0]\n"
                   "const %rest: int64[3] = [-1, 12, 64]\n"
                   "%s: int64[?] = Shape(%x)\n"
                   "%b: int64[?] = Gather(%s, %zero)\n"
                   "%u: int64[?] = Unsqueeze(%b, %axis)\n"
                   "%c: int64[?] = Concat(%u, %rest) {axis = 0}\n"
                   "%y: float32[?] = Reshape(%x, %c)"),
            "float32[batchxseqx12x64]");
}

TEST(Infer, ArithmeticOnExtents) {
  EXPECT_EQ(typeOf("input %x: float32[1xcxhxw]\n"
                   "const %two: int64[1] = [2]\n"
                   "const %from: int64[1] = [2]\n"
                   "const %to: int64[1] = [9223372036854775807]\n"
                   "const %one: float32[1] = [1.0]\n"
                   "%s: int64[?] = Shape(%x)\n"
                   "%hw: int64[?] = Slice(%s, %from, %to)\n"
                   "%d: int64[?] = Mul(%hw, %two)\n"
                   "%i: int32[?] = Cast(%d) {to = \"int32\"}\n"
                   "%l: int64[?] = Cast(%i) {to = \"int64\"}\n"
                   "%y: float32[?] = Expand(%one, %l)"),
            "float32[(2*h)x(2*w)]");
}

TEST(Infer, ExpandByWhereAndEqual) {
  // What exporters write for expand(-1, 4, -1).
  EXPECT_EQ(typeOf("input %x: float32[nx1x3]\n"
                   "const %want: int64[3] = [-1, 4, -1]\n"
                   "const %minus: int64[3] = [-1, -1, -1]\n"
                   "const %ones: int64[3] = [1, 1, 1]\n"
                   "%e: bool[?] = Equal(%want, %minus)\n"
                   "%w: int64[?] = Where(%e, %ones, %want)\n"
                   "%y: float32[?] = Expand(%x, %w)"),
            "float32[nx4x3]");
  // An extent is never -1.
  EXPECT_EQ(typeOf("input %x: float32[n]\n"
                   "const %minus: int64[1] = [-1]\n"
                   "const %one: int64[1] = [1]\n"
                   "const %v: float32[scalar] = 0.0\n"
                   "%s: int64[?] = Shape(%x)\n"
                   "%e: bool[?] = Equal(%s, %minus)\n"
                   "%w: int64[?] = Where(%e, %one, %s)\n"
                   "%y: float32[?] = ConstantOfShape(%w)"),
            "float32[n]");
}

TEST(Infer, RangesAndProducts) {
  EXPECT_EQ(typeOf("input %x: float32[bxs]\n"
                   "const %zero: int64[scalar] = 0\n"
                   "const %one: int64[scalar] = 1\n"
                   "%s: int64[?] = Shape(%x)\n"
                   "%n: int64[?] = Gather(%s, %one)\n"
                   "%y: int64[?] = Range(%zero, %n, %one)"),
            "int64[s]");
  EXPECT_EQ(typeOf("input %x: float32[bx3x4]\n"
                   "const %axes: int64[1] = [0]\n"
                   "%s: int64[?] = Shape(%x) {start = 1}\n"
                   "%p: int64[?] = ReduceProd(%s, %axes)\n"
                   "%y: float32[?] = ConstantOfShape(%p)"),
            "float32[12]");
}

TEST(Infer, SlicesOfSymbols) {
  auto slice = [](const std::string& start, const std::string& end) {
    return typeOf("input %x: float32[n]\nconst %s: int64[1] = [" + start + "]\nconst %e: int64[1] = [" + end +
                  "]\n%y: float32[?] = Slice(%x, %s, %e)");
  };
  EXPECT_EQ(slice("0", "9223372036854775807"), "float32[n]");
  EXPECT_EQ(slice("1", "9223372036854775807"), "float32[(max(0, n - 1))]");
  EXPECT_EQ(slice("0", "4"), "float32[(min(4, n))]");
  EXPECT_EQ(slice("-1", "9223372036854775807"), "float32[(min(1, n))]");
}

TEST(Infer, UnknownsStayOpen) {
  EXPECT_EQ(typeOf("input %x: float32[?]\n%y: float32[?] = Softmax(%x)"), "float32[?]");
  EXPECT_EQ(typeOf("input %x: float32[2x3]\ninput %s: int64[2]\n%y: float32[?] = Reshape(%x, %s)"),
            "float32[\"%y.0\"x\"%y.1\"]");
  EXPECT_EQ(typeOf("input %x: float32[2x3]\ninput %s: int64[n]\n%y: float32[?] = Reshape(%x, %s)"), "float32[?]");
  EXPECT_EQ(typeOf("input %x: float32[?]\ninput %z: float32[?]\n%y: float32[?] = Concat(%x, %z) {axis = 1}"),
            "float32[?]");
  EXPECT_EQ(typeOf("input %x: float32[?]\n%y: float32[?] = Transpose(%x)"), "float32[?]");
  EXPECT_EQ(typeOf("input %x: float32[2x3]\ninput %a: int64[1]\n%y: float32[?] = ReduceSum(%x, %a) {keepdims = 0}"),
            "float32[\"%y.0\"]");
}

TEST(Infer, BroadcastOfSymbols) {
  auto add = [](const std::string& a, const std::string& b) {
    return typeOf("input %a: float32[" + a + "]\ninput %b: float32[" + b + "]\n%y: float32[?] = Add(%a, %b)");
  };
  EXPECT_EQ(add("n", "1"), "float32[n]");
  EXPECT_EQ(add("n", "8"), "float32[8]");
  EXPECT_EQ(add("n", "n"), "float32[n]");
  EXPECT_EQ(add("3xn", "n"), "float32[3xn]");
}

TEST(Infer, SplitKeepsContents) {
  EXPECT_EQ(typeOf("input %x: float32[axbxc]\n"
                   "%s: int64[?] = Shape(%x)\n"
                   "%p: int64[?], %q: int64[?] = Split(%s) {num_outputs = 2}\n"
                   "%y: float32[?] = ConstantOfShape(%p)"),
            "float32[axb]");
}

TEST(Table, IsSortedAndUnique) {
  for (size_t i = 1; i < allOps().size(); ++i) EXPECT_LT(allOps()[i - 1].name, allOps()[i].name);
  EXPECT_EQ(findOp("NoSuchOp"), nullptr);
  ASSERT_NE(findOp("Add"), nullptr);
  EXPECT_EQ(findOp("Add")->pattern, Pattern::Elementwise);
  for (const OpDef& op : allOps()) {
    bool loops = op.pattern != Pattern::Host && op.pattern != Pattern::Control && op.pattern != Pattern::Kernel;
    EXPECT_EQ(op.compute != nullptr, loops) << op.name;
    EXPECT_NE(op.infer, nullptr) << op.name;
  }
}

TEST(Infer, ShapesBeyondAnyMemory) {
  EXPECT_EQ(typeOf("const %n: int64[2] = [4611686018427387904, 3]\n%y: float32[?] = ConstantOfShape(%n)"),
            "ConstantOfShape: an output of the shape 4611686018427387904x3 is too large");
}

TEST(Table, NoOperatorTrustsItsInputs) {
  // Any operator on no inputs, on unknown types and on types it doesn't expect: an answer or a message, never a crash.
  for (const OpDef& op : allOps()) {
    SCOPED_TRACE(op.name);
    for (DType type : {DType::F32, DType::I64, DType::Bool, DType::String})
      for (const Shape& shape : {Shape::unranked(), Shape(), Shape{Dim(2)}, Shape{Dim::symbol("n"), Dim(0)},
                                 Shape{Dim(1), Dim(4), Dim(2), Dim(2)}})
        for (size_t inputs = 0; inputs <= 6; ++inputs)
          for (size_t outputs = 1; outputs <= 3; ++outputs) {
            OneNode node{std::string(op.name)};
            for (size_t i = 0; i < inputs; ++i) node.type({type, shape});
            (void)node.outputs(outputs).inferred();
          }
  }
}

}  // namespace
}  // namespace locution::ops

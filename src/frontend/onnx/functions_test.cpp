// Model-local functions and graphs in attributes.
#include <gmock/gmock.h>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using testing::addNode;
using testing::Attributes;
using ::testing::HasSubstr;
using testing::Names;
using testing::TestModel;

onnx::FunctionProto& addFunction(TestModel& m, const std::string& name, const Names& inputs, const Names& outputs,
                                 int64_t opset = 17) {
  onnx::FunctionProto& f = *m.proto.add_functions();
  f.set_domain("local");
  f.set_name(name);
  for (const std::string& s : inputs) f.add_input(s);
  for (const std::string& s : outputs) f.add_output(s);
  auto& import = *f.add_opset_import();
  import.set_version(opset);
  return f;
}

TestModel modelWithFunctions() {
  TestModel m(17);
  m.import("local", 1);
  return m;
}

TEST(Functions, AreInlinedWithTheCallersNames) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "Double", {"a"}, {"b"});
  addNode(f, "Relu", {"a"}, {"t"});
  addNode(f, "Add", {"t", "t"}, {"b"});
  m.node("Double", {"x"}, {"t"}, "local");
  m.node("Double", {"t"}, {"y"}, "local");
  m.graph().mutable_node(0)->set_name("first");
  m.output("y");
  EXPECT_EQ(m.text(),
            "first/t = Relu(x)\n"
            "t = Add(first/t, first/t)\n"
            "y/t = Relu(t)\n"
            "y = Add(y/t, y/t)\n"
            "out y\n");
}

TEST(Functions, AttributesReferencesAndDefaults) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"a"}, {"b"});
  f.add_attribute("axis");
  f.add_attribute("unset");
  auto& alpha = *f.add_attribute_proto();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(0.5);
  addNode(f, "Softmax", {"a"}, {"s"}).ref("axis", "axis", onnx::AttributeProto::INT);
  addNode(f, "Elu", {"s"}, {"e"}).ref("alpha", "alpha", onnx::AttributeProto::FLOAT);
  addNode(f, "Flatten", {"e"}, {"b"}).ref("axis", "unset", onnx::AttributeProto::INT);
  m.node("F", {"x"}, {"p"}, "local").i("axis", 2);
  m.node("F", {"p"}, {"y"}, "local").i("axis", 1).f("alpha", 2);
  m.output("y");
  EXPECT_EQ(m.text(),
            "p/s = Softmax(x) axis=2\np/e = Elu(p/s) alpha=0.5\np = Flatten(p/e)\n"
            "y/s = Softmax(p) axis=1\ny/e = Elu(y/s) alpha=2\ny = Flatten(y/e)\nout y\n");
}

TEST(Functions, ConstantsAreSharedBetweenCalls) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"a"}, {"b"});
  addNode(f, "Constant", {}, {"c"}).t("value", Tensor::of<float>(DType::F32, {2}, {1, 2}));
  addNode(f, "Add", {"a", "c"}, {"b"});
  m.node("F", {"x"}, {"p"}, "local");
  m.node("F", {"p"}, {"y"}, "local");
  m.output("y");
  EXPECT_EQ(m.text(), "p = Add(x, float32[2]{1 2})\ny = Add(p, float32[2]{1 2})\nout y\n");
}

TEST(Functions, OwnOpsetNestingAndOptionalInputs) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& inner = addFunction(m, "Inner", {"a", "lo"}, {"b"}, 12);
  addNode(inner, "ReduceSum", {"a"}, {"r"}).ref("axes", "axes", onnx::AttributeProto::INTS);
  addNode(inner, "Clip", {"r", "lo"}, {"b"});
  onnx::FunctionProto& outer = addFunction(m, "Outer", {"a"}, {"b"});
  auto& import = *outer.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  addNode(outer, "Inner", {"a"}, {"b"}, "local").ref("axes", "k", onnx::AttributeProto::INTS);
  m.node("Outer", {"x"}, {"y"}, "local").is("k", {1});
  m.output("y");
  EXPECT_EQ(m.text(), "y/b/r = ReduceSum(x, int64[1]{1})\ny = Clip(y/b/r)\nout y\n");
}

TEST(Functions, OutputsThatAreInputsOrTwice) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"a"}, {"a", "r", "r"});
  addNode(f, "Relu", {"a"}, {"r"});
  m.node("F", {"x"}, {"p", "q", "s"}, "local");
  m.output("p");
  m.output("q");
  m.output("s");
  EXPECT_EQ(m.text(), "q = Relu(x)\np = Identity(x)\ns = Identity(q)\nout p, q, s\n");
}

TEST(Functions, GraphsInFunctionsSeeTheirNamesAndAttributes) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"c", "a"}, {"b"});
  onnx::GraphProto branch;
  addNode(branch, "Elu", {"a"}, {"t"}).ref("alpha", "alpha", onnx::AttributeProto::FLOAT);
  branch.add_output()->set_name("t");
  addNode(f, "If", {"c"}, {"b"}).g("then_branch", branch).g("else_branch", branch);
  m.input("cond", DType::Bool, {});
  m.node("F", {"cond", "x"}, {"y"}, "local").f("alpha", 3);
  m.output("y");
  EXPECT_EQ(
      m.text(),
      "y = If(cond)\n  in \n  y/t = Elu(x) alpha=3\n  out y/t\n  in \n  y/t.2 = Elu(x) alpha=3\n  out y/t.2\nout y\n");
}

TEST(Functions, AGraphOfTheCallerTwice) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"c"}, {"b"});
  addNode(f, "If", {"c"}, {"b"})
      .ref("then_branch", "g", onnx::AttributeProto::GRAPH)
      .ref("else_branch", "g", onnx::AttributeProto::GRAPH);
  onnx::GraphProto graph;
  *graph.add_initializer() = tensorToProto("w", Tensor::scalarF32(2));
  addNode(graph, "Constant", {}, {"k"}).t("value", Tensor::scalarF32(3));
  addNode(graph, "Mul", {"w", "k"}, {"p"});
  addNode(graph, "Mul", {"p", "x"}, {"q"});
  graph.add_output()->set_name("q");
  m.input("cond", DType::Bool, {});
  m.node("F", {"cond"}, {"y"}, "local").g("g", graph);
  m.output("y");
  EXPECT_EQ(m.text(),
            "y = If(cond)\n"
            "  in \n  p = Mul(float32{2}, float32{3})\n  q = Mul(p, x)\n  out q\n"
            "  in \n  p.2 = Mul(float32{2}, float32{3})\n  q.2 = Mul(p.2, x)\n  out q.2\n"
            "out y\n");
}

TEST(Functions, Overloads) {
  TestModel m = modelWithFunctions();
  addNode(addFunction(m, "F", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  onnx::FunctionProto& f = addFunction(m, "F", {"a"}, {"b"});
  f.set_overload("2");
  addNode(f, "Abs", {"a"}, {"b"});
  m.node("F", {"x"}, {"p"}, "local");
  m.node("F", {"p"}, {"y"}, "local");
  m.graph().mutable_node(1)->set_overload("2");
  m.output("y");
  EXPECT_EQ(m.text(), "p = Relu(x)\ny = Abs(p)\nout y\n");
}

TEST(Functions, Errors) {
  TestModel m = modelWithFunctions();
  onnx::FunctionProto& f = addFunction(m, "F", {"a"}, {"b"});
  addNode(f, "F", {"a"}, {"b"}, "local");
  m.node("F", {"x"}, {"y"}, "local");
  m.output("y");
  EXPECT_THAT(m.error(), HasSubstr("functions call each other more than 32 deep; is it recursive?"));

  f.mutable_node(0)->set_op_type("Relu");
  f.mutable_node(0)->set_domain("");
  f.mutable_node(0)->set_input(0, "nowhere");
  EXPECT_EQ(m.error(),
            "test.onnx: node 0 (F, domain local, opset 1): node 0 (Relu, opset 17): input 0 'nowhere' is no input, "
            "initializer or "
            "output of another node");
  f.mutable_node(0)->set_input(0, "a");
  f.mutable_node(0)->set_output(0, "elsewhere");
  EXPECT_THAT(m.error(), HasSubstr("output 'b' of the function is made by none of its nodes"));
  f.mutable_node(0)->set_output(0, "b");
  EXPECT_EQ(m.error(), "no error");
  m.graph().mutable_node(0)->add_input("x");
  EXPECT_THAT(m.error(), HasSubstr("it is given 2 inputs and 1 outputs, the function has 1 and 1"));
  addFunction(m, "F", {}, {});
  EXPECT_THAT(m.error(), HasSubstr("function 'F' of domain 'local' is defined twice"));
}

TEST(Functions, DoNotExplode) {
  TestModel m = modelWithFunctions();
  for (int level = 0; level < 25; ++level) {
    onnx::FunctionProto& f = addFunction(m, "F" + std::to_string(level), {"a"}, {"b"});
    std::string callee = level == 0 ? "Relu" : "F" + std::to_string(level - 1);
    std::string domain = level == 0 ? "" : "local";
    addNode(f, callee, {"a"}, {"t"}, domain);
    addNode(f, callee, {"t"}, {"b"}, domain);
  }
  m.node("F24", {"x"}, {"y"}, "local");
  m.output("y");
  ImportOptions options;
  options.requireKnownOps = false;
  options.maxInlinedNodes = 10000;
  auto result = m.tryImport(options);
  ASSERT_FALSE(result.isOk());
  EXPECT_THAT(result.status().message(), HasSubstr("functions unfold to more than 10000 nodes"));
}

TEST(Regions, CaptureNamesOfTheGraphsAround) {
  TestModel m(17);
  m.input("cond", DType::Bool, {});
  m.node("Relu", {"x"}, {"a"});
  onnx::GraphProto inner;
  addNode(inner, "Add", {"a", "t"}, {"u"});
  inner.add_output()->set_name("u");
  onnx::GraphProto thenBranch;
  addNode(thenBranch, "Neg", {"a"}, {"t"});
  addNode(thenBranch, "If", {"cond"}, {"r"}).g("then_branch", inner).g("else_branch", inner);
  thenBranch.add_output()->set_name("r");
  onnx::GraphProto elseBranch;
  *elseBranch.add_initializer() = tensorToProto("w", Tensor::scalarF32(2));
  addNode(elseBranch, "Mul", {"a", "w"}, {"y"});  // a name of the main graph, too
  elseBranch.add_output()->set_name("y");
  m.node("If", {"cond"}, {"y"}).g("then_branch", thenBranch).g("else_branch", elseBranch);
  m.output("y");
  EXPECT_EQ(m.text(),
            "a = Relu(x)\n"
            "y = If(cond)\n"
            "  in \n"
            "  t = Neg(a)\n"
            "  r = If(cond)\n"
            "    in \n    u = Add(a, t)\n    out u\n"
            "    in \n    u.2 = Add(a, t)\n    out u.2\n"
            "  out r\n"
            "  in \n"
            "  y.2 = Mul(a, float32{2})\n"
            "  out y.2\n"
            "out y\n");
}

TEST(Regions, OutputsAreTheirOwn) {
  TestModel m(17);
  m.input("cond", DType::Bool, {});
  onnx::GraphProto branch;
  branch.add_output()->set_name("x");
  m.node("If", {"cond"}, {"y"}).g("then_branch", branch).g("else_branch", branch);
  m.output("y");
  EXPECT_EQ(m.text(),
            "y = If(cond)\n  in \n  x.2 = Identity(x)\n  out x.2\n  in \n  x.3 = Identity(x)\n  out x.3\nout y\n");
}

TEST(Regions, NodesAreSortedByWhatTheirGraphsRead) {
  TestModel m(17);
  m.input("cond", DType::Bool, {});
  onnx::GraphProto branch;
  addNode(branch, "Relu", {"late"}, {"t"});
  branch.add_output()->set_name("t");
  m.node("If", {"cond"}, {"y"}).g("then_branch", branch).g("else_branch", branch);
  m.node("Abs", {"x"}, {"late"});
  m.output("y");
  EXPECT_THAT(m.text(), HasSubstr("late = Abs(x)\ny = If(cond)"));
  m.graph().mutable_node(1)->set_input(0, "y");
  EXPECT_THAT(m.error(), HasSubstr("depends on itself"));
  m.graph().mutable_node(1)->set_output(0, "never");
  EXPECT_THAT(m.error(), HasSubstr("node 0 (If, opset 17): then_branch: node 0 (Relu, opset 17): input 0 'late'"));
}

TEST(Regions, LoopAndScan) {
  TestModel m(17);
  m.input("n", DType::I64, {});
  onnx::GraphProto body;
  testing::addValueInfo(*body.add_input(), "i", DType::I64, {});
  testing::addValueInfo(*body.add_input(), "go", DType::Bool, {});
  testing::addValueInfo(*body.add_input(), "v", DType::F32, {"1"});
  addNode(body, "Add", {"v", "x"}, {"v2"});
  for (const char* name : {"go", "v2", "v2"}) body.add_output()->set_name(name);
  m.node("Loop", {"n", "", "x"}, {"last", "all"}).g("body", body);
  onnx::GraphProto step;
  testing::addValueInfo(*step.add_input(), "s", DType::F32, {});
  testing::addValueInfo(*step.add_input(), "e", DType::F32, {});
  addNode(step, "Add", {"s", "e"}, {"s2"});
  for (const char* name : {"s2", "s"}) step.add_output()->set_name(name);
  m.node("Scan", {"x", "all"}, {"f", "g"}).g("body", step).i("num_scan_inputs", 1);
  m.output("f");
  EXPECT_EQ(m.text(),
            "last, all = Loop(n, _, x)\n"
            "  in i, go, v\n"
            "  v2 = Add(v, x)\n"
            "  out go, v2, v2\n"
            "f, g = Scan(x, all) num_scan_inputs=1\n"
            "  in s, e\n"
            "  s2 = Add(s, e)\n"
            "  out s2, s\n"
            "out f\n");
  auto& loop = *m.graph().mutable_node(0);
  loop.add_output("more");
  EXPECT_EQ(m.error(), "test.onnx: node 0 (Loop, opset 17): body has 3 inputs and 3 outputs, 3 and 4 are needed");
  loop.mutable_output()->RemoveLast();
  m.graph().mutable_node(1)->mutable_attribute(1)->set_i(3);
  EXPECT_THAT(m.error(), HasSubstr("num_scan_inputs is 3, it has 2 inputs"));
}

TEST(Regions, ScanOfOpset8IsAScanInAScan) {
  TestModel m(8);
  onnx::GraphProto step;
  testing::addValueInfo(*step.add_input(), "s", DType::F32, {});
  testing::addValueInfo(*step.add_input(), "e", DType::F32, {});
  addNode(step, "Add", {"s", "e"}, {"s2"});
  step.add_output()->set_name("s2");
  m.node("Scan", {"", "x", "x"}, {"f"}).g("body", step).i("num_scan_inputs", 1).is("directions", {1});
  m.output("f");
  EXPECT_EQ(m.text(),
            "f = Scan(x, x) num_scan_inputs=2\n"
            "  in Scan/item, Scan/item.2\n"
            "  f/Scan = Scan(Scan/item, Scan/item.2) num_scan_inputs=1 scan_input_directions=[1]\n"
            "    in s, e\n"
            "    s2 = Add(s, e)\n"
            "    out s2\n"
            "  out f/Scan\n"
            "out f\n");
}

TEST(Regions, SequenceMapIsALoop) {
  TestModel m(17);
  auto& s = *m.graph().add_input();
  s.set_name("s");
  s.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  onnx::GraphProto body;
  testing::addValueInfo(*body.add_input(), "a", DType::F32, {});
  testing::addValueInfo(*body.add_input(), "b", DType::F32, {});
  addNode(body, "Add", {"a", "b"}, {"c"});
  testing::addValueInfo(*body.add_output(), "c", DType::F32, {});
  m.node("SequenceMap", {"s", "x"}, {"y"}).g("body", body);
  m.output("y");
  EXPECT_EQ(m.text(),
            "y/SequenceLength = SequenceLength(s)\n"
            "y/SequenceEmpty = SequenceEmpty() dtype=float32\n"
            "y = Loop(y/SequenceLength, _, y/SequenceEmpty)\n"
            "  in SequenceMap/index, SequenceMap/cond, SequenceMap/sequence\n"
            "  y/SequenceAt = SequenceAt(s, SequenceMap/index)\n"
            "  c = Add(y/SequenceAt, x)\n"
            "  y/Identity = Identity(SequenceMap/cond)\n"
            "  y/SequenceInsert = SequenceInsert(SequenceMap/sequence, c)\n"
            "  out y/Identity, y/SequenceInsert\n"
            "out y\n");
}

}  // namespace
}  // namespace locution::frontend

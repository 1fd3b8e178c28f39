// The graph as a whole: inputs, outputs, names, versions, and what makes a file no model.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "frontend/onnx/schema.h"
#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using testing::addNode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestModel;

ImportedModel imported(const TestModel& model) {
  ImportOptions options;
  options.requireKnownOps = false;
  auto result = model.tryImport(options);
  EXPECT_TRUE(result.isOk()) << result.status().message();
  return result ? std::move(*result) : ImportedModel();
}

TEST(Importer, InputsOutputsAndMetadata) {
  TestModel m(17);
  m.input("n", DType::I64, {});
  m.input("odd", DType::U4, {"", "-1", "batch", "0"});
  m.graph().mutable_input(2)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_denotation(
      "DATA_BATCH");
  auto& any = *m.graph().add_input();
  any.set_name("any");
  any.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BFLOAT16);
  auto& entry = *m.proto.add_metadata_props();
  entry.set_key("author");
  entry.set_value("someone");
  m.proto.set_producer_name("maker");
  m.proto.set_producer_version("2");
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  ImportedModel model = imported(m);
  const graph::Graph& g = model.graph;
  ASSERT_EQ(g.main().inputs.size(), 4u);
  EXPECT_EQ(g.type(g.main().inputs[0]).str(), "float32[batchx3x4]");
  EXPECT_EQ(g.type(g.main().inputs[1]).str(), "int64[scalar]");
  const Shape& odd = g.type(g.main().inputs[2]).shape;
  EXPECT_EQ(odd.rank(), 4);
  EXPECT_FALSE(odd[0].isKnown() || odd[1].isKnown());
  EXPECT_FALSE(odd[0] == odd[1]);
  EXPECT_EQ(odd[2], Dim::symbol("batch"));
  EXPECT_EQ(odd[3], Dim(0));
  EXPECT_EQ(g.type(g.main().inputs[3]).str(), "bfloat16[?]");
  EXPECT_EQ(g.metadata.at("author"), "someone");
  EXPECT_EQ(model.producer, "maker 2");
  EXPECT_EQ(model.opset, 17);
  EXPECT_EQ(g.name, "test");
}

TEST(Importer, SequencesAndOptionalsAsInputs) {
  TestModel m(17);
  auto& s = *m.graph().add_input();
  s.set_name("s");
  s.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  auto& o = *m.graph().add_input();
  o.set_name("o");
  *o.mutable_type()->mutable_optional_type()->mutable_elem_type() = s.type();
  m.node("SequenceLength", {"s"}, {"y"});
  m.output("y");
  ImportedModel model = imported(m);
  EXPECT_EQ(model.graph.type(model.graph.main().inputs[1]).kind, ValueKind::Sequence);
  EXPECT_EQ(model.graph.type(model.graph.main().inputs[2]).kind, ValueKind::Optional);

  auto& map = *m.graph().add_input();
  map.set_name("m");
  map.mutable_type()->mutable_map_type()->set_key_type(onnx::TensorProto::INT64);
  EXPECT_EQ(m.error(), "test.onnx: graph input 'm': maps are not supported");
  map.clear_type();
  EXPECT_EQ(m.error(), "test.onnx: graph input 'm': no type is given");
}

TEST(Importer, InitializersThatAreInputsAreConstants) {
  TestModel m(17);
  m.input("w", DType::F32, {"1"});
  m.constant("w", Tensor::of<float>(DType::F32, {1}, {2}));
  m.node("Mul", {"x", "w"}, {"y"});
  m.output("y");
  EXPECT_EQ(m.text(), "y = Mul(x, float32[1]{2})\nout y\n");
  EXPECT_EQ(imported(m).graph.main().inputs.size(), 1u);
}

TEST(Importer, OutputsMayBeInputsConstantsOrTwice) {
  TestModel m(17);
  m.constant("w", Tensor::scalarF32(2));
  m.node("Relu", {"x"}, {"y"});
  for (const char* name : {"y", "x", "w", "y"}) m.output(name);
  EXPECT_EQ(m.text(), "y = Relu(x)\nout y, x, float32{2}, y\n");
}

TEST(Importer, DeclaredTypesAreHintsOnly) {
  TestModel m(17);
  m.node("Relu", {"x"}, {"h"});
  m.node("Relu", {"h"}, {"y"});
  testing::addValueInfo(*m.graph().add_value_info(), "h", DType::I8, {"7"});
  testing::addValueInfo(*m.graph().add_output(), "y", DType::F32, {"1", "2"});
  ImportedModel model = imported(m);
  EXPECT_EQ(model.hints.at("h").str(), "int8[7]");
  EXPECT_EQ(model.declaredOutputs[0]->str(), "float32[1x2]");
  EXPECT_FALSE(model.graph.type(model.graph.findValue("h")).shape.isRanked());
  EXPECT_FALSE(model.graph.type(model.graph.findValue("y")).shape.isRanked());
}

TEST(Importer, NamesAreAnyBytes) {
  std::string name("a\0\xff \n'\"%", 8);
  TestModel m(17);
  m.node("Relu", {"x"}, {name});
  m.node("Relu", {name}, {"y"});
  m.output("y");
  ImportedModel model = imported(m);
  EXPECT_TRUE(model.graph.findValue(name).isValid());
  m.node("Relu", {name}, {name});
  EXPECT_THAT(m.error(), HasSubstr("already an output of node 0 (Relu, opset 17)"));
}

TEST(Importer, OptionalInputsAndOutputsLeftOut) {
  TestModel m(13);
  m.constant("hi", Tensor::scalarF32(6));
  m.node("Clip", {"x", "", "hi"}, {"a"});
  m.node("Clip", {"a", "", ""}, {"b"});
  m.node("TopK", {"b", "k"}, {"", "y"});
  m.constant("k", Tensor::vectorI64({2}));
  m.output("y");
  EXPECT_EQ(m.text(), "a = Clip(x, _, float32{6})\nb = Clip(a)\n_, y = TopK(b, int64[1]{2})\nout y\n");
}

TEST(Importer, SourceIndexAndNames) {
  TestModel m(17);
  m.node("Relu", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"y"});
  m.graph().mutable_node(1)->set_name("last");
  m.output("y");
  ImportedModel model = imported(m);
  const graph::Node& last = model.graph.node(model.graph.main().nodes[1]);
  EXPECT_EQ(last.sourceIndex, 1);
  EXPECT_EQ(last.name, "last");
}

TEST(Importer, GeneratedNamesNeverTakeANameOfTheFile) {
  TestModel m(12);
  m.node("ReduceSum", {"x"}, {"s"}).is("axes", {1});
  m.node("Relu", {"s"}, {"s/axes"});
  m.output("s/axes");
  EXPECT_EQ(m.text(), "s = ReduceSum(x, int64[1]{1})\ns/axes = Relu(s)\nout s/axes\n");
}

TEST(Importer, SparseInitializer) {
  TestModel m(17);
  auto& s = *m.graph().add_sparse_initializer();
  *s.mutable_values() = tensorToProto("w", Tensor::of<float>(DType::F32, {1}, {5}));
  *s.mutable_indices() = tensorToProto("", Tensor::vectorI64({1}));
  s.add_dims(3);
  m.node("Mul", {"x", "w"}, {"y"});
  m.output("y");
  EXPECT_EQ(m.text(), "y = Mul(x, float32[3]{0 5 0})\nout y\n");
}

TEST(Importer, Versions) {
  auto with = [](auto change) {
    TestModel m(17);
    m.node("Relu", {"x"}, {"y"});
    m.output("y");
    change(m);
    return m.error();
  };
  EXPECT_EQ(with([](TestModel&) {}), "no error");
  EXPECT_EQ(with([](TestModel& m) { m.proto.mutable_opset_import(0)->set_version(kNewestOpset); }), "no error");
  EXPECT_EQ(with([](TestModel& m) { m.proto.mutable_opset_import(0)->set_domain("ai.onnx"); }), "no error");
  EXPECT_EQ(with([](TestModel& m) { m.proto.mutable_opset_import(0)->set_version(kNewestOpset + 1); }),
            "test.onnx: opset 28 is too new, supported are 7 to 27");
  EXPECT_EQ(with([](TestModel& m) { m.proto.mutable_opset_import(0)->set_version(0); }),
            "test.onnx: opset 0 of domain '' makes no sense");
  EXPECT_THAT(with([](TestModel& m) { m.proto.clear_opset_import(); }), HasSubstr("opset_import is empty"));
  EXPECT_THAT(with([](TestModel& m) { m.import("ai.onnx", 18); }), HasSubstr("imported as 17 and as 18"));
  EXPECT_EQ(with([](TestModel& m) { m.proto.mutable_opset_import(0)->set_domain("com.microsoft"); }),
            "test.onnx: node 0 (Relu): the model imports no opset of ai.onnx");
  EXPECT_EQ(with([](TestModel& m) { m.proto.set_ir_version(kNewestIrVersion + 1); }),
            "test.onnx: ir_version 14 is too new, supported are 3 to 13");
  EXPECT_THAT(with([](TestModel& m) { m.proto.set_ir_version(2); }), HasSubstr("ir_version 2 is too old"));
  EXPECT_THAT(with([](TestModel& m) { m.proto.clear_ir_version(); }), HasSubstr("not an ONNX model"));
  EXPECT_THAT(with([](TestModel& m) { m.proto.clear_graph(); }), HasSubstr("not an ONNX model: it has no graph"));
  EXPECT_EQ(with([](TestModel& m) { m.graph().clear_output(); }), "test.onnx: the graph has no outputs");
}

TEST(Importer, BeforeOpset7OnlyWhatDidNotChange) {
  TestModel m(6);
  m.node("Relu", {"x"}, {"a"});
  m.output("a");
  EXPECT_EQ(m.error(), "no error");
  m.node("Add", {"x", "a"}, {"b"});
  EXPECT_EQ(m.error(),
            "test.onnx: unsupported operator: node 1 (Add, opset 6): its form before opset 7 is not supported");
}

TEST(Importer, UnsupportedOperatorsAreListedAtOnce) {
  TestModel m(13);
  m.import("com.acme", 3);
  m.node("Frobnicate", {"x"}, {"a", "", "b"}, "com.acme");
  m.node("Mish", {"a"}, {"c"});
  m.node("Relu", {"c"}, {"d"});
  m.node("NoSuchThing", {"d"}, {"y"});
  m.graph().mutable_node(0)->set_name("f1");
  onnx::GraphProto branch;
  addNode(branch, "Inner", {"x"}, {"r"});
  branch.add_output()->set_name("r");
  m.input("cond", DType::Bool, {});
  m.node("If", {"cond"}, {"z"}).g("then_branch", branch).g("else_branch", branch);
  m.output("y");
  EXPECT_EQ(m.error(),
            "test.onnx: 5 unsupported operators:\n"
            "  node 0 'f1' (Frobnicate, domain com.acme, opset 3): unknown operator\n"
            "  node 1 (Mish, opset 13): it exists from opset 18 on\n"
            "  node 3 (NoSuchThing, opset 13): unknown operator\n"
            "  node 4 (If, opset 13): then_branch: node 0 (Inner, opset 13): unknown operator\n"
            "  node 4 (If, opset 13): else_branch: node 0 (Inner, opset 13): unknown operator");
}

TEST(Importer, OperatorsThatTheCompilerLacksAreUnsupportedToo) {
  TestModel m(20);
  m.node("ImageDecoder", {"x"}, {"y"});
  m.output("y");
  auto result = m.tryImport();
  ASSERT_FALSE(result.isOk());
  EXPECT_THAT(result.status().message(), HasSubstr("unsupported operator: node 0 (ImageDecoder, opset 20)"));
}

TEST(Importer, AListOfUnsupportedOperatorsEnds) {
  TestModel m(13);
  for (int i = 0; i < 500; ++i) m.node("Nothing", {"x"}, {"y" + std::to_string(i)});
  m.output("y0");
  EXPECT_THAT(m.error(), AllOf(HasSubstr("500 unsupported operators"), HasSubstr("and 400 more")));
}

TEST(Importer, BrokenGraphs) {
  auto with = [](auto change) {
    TestModel m(17);
    m.node("Relu", {"x"}, {"a"});
    m.node("Relu", {"a"}, {"y"});
    m.output("y");
    change(m);
    return m.error();
  };
  EXPECT_EQ(with([](TestModel& m) {
              m.node("Add", {"x", "nowhere"}, {"b"});
            }),
            "test.onnx: node 2 (Add, opset 17): input 1 'nowhere' is no input, initializer or output of another node");
  EXPECT_EQ(with([](TestModel& m) { m.node("Relu", {"x"}, {"a"}); }),
            "test.onnx: node 2 (Relu, opset 17): output 'a' is already an output of node 0 (Relu, opset 17)");
  EXPECT_EQ(with([](TestModel& m) {
              m.node("Split", {"x"}, {"p", "p"});
            }),
            "test.onnx: node 2 (Split, opset 17): output 'p' is already an output of node 2 (Split, opset 17)");
  EXPECT_EQ(with([](TestModel& m) { m.node("Relu", {"a"}, {"x"}); }),
            "test.onnx: node 2 (Relu, opset 17): output 'x' is already an input or initializer of the graph");
  EXPECT_EQ(with([](TestModel& m) { m.input("x", DType::F32, {}); }), "test.onnx: graph input 'x' is given twice");
  EXPECT_EQ(with([](TestModel& m) { m.input("", DType::F32, {}); }), "test.onnx: graph input 1 has no name");
  EXPECT_EQ(with([](TestModel& m) {
              m.constant("w", Tensor::scalarF32(1));
              m.constant("w", Tensor::scalarF32(1));
            }),
            "test.onnx: initializer 'w' is given twice");
  EXPECT_EQ(with([](TestModel& m) { m.output("z"); }),
            "test.onnx: graph output 'z' is no output of a node, no input and no initializer");
  EXPECT_EQ(with([](TestModel& m) { m.node("Relu", {"x"}, {}); }),
            "test.onnx: node 2 (Relu, opset 17): it has no outputs");
  EXPECT_EQ(with([](TestModel& m) { m.node("Relu", {}, {"b"}); }),
            "test.onnx: node 2 (Relu, opset 17): input X is missing");
}

TEST(Importer, Cycles) {
  TestModel m(17);
  m.node("Relu", {"x"}, {"a"});
  m.node("Add", {"a", "d"}, {"b"});
  m.node("Relu", {"b"}, {"c"});
  m.node("Relu", {"c"}, {"d"});
  m.node("Relu", {"d"}, {"y"});
  m.output("y");
  EXPECT_EQ(m.error(), "test.onnx: node 1 (Add, opset 17): its output 'b' depends on itself: the graph has a cycle");

  TestModel self(17);
  self.node("Add", {"x", "y"}, {"y"});
  self.output("y");
  EXPECT_THAT(self.error(), HasSubstr("its output 'y' depends on itself"));
}

TEST(Importer, NodesOutOfOrderAreSorted) {
  TestModel m(17);
  m.node("Add", {"a", "b"}, {"y"});
  m.node("Relu", {"b"}, {"a"});
  m.node("Relu", {"x"}, {"b"});
  m.output("y");
  EXPECT_EQ(m.text(), "b = Relu(x)\na = Relu(b)\ny = Add(a, b)\nout y\n");
  EXPECT_THAT(imported(m).warnings, ElementsAre("the nodes are not in topological order"));
}

TEST(Importer, AttributesAreChecked) {
  auto with = [](auto change) {
    TestModel m(13);
    change(m.node("Concat", {"x", "x"}, {"y"}));
    m.output("y");
    return m;
  };
  EXPECT_EQ(with([](auto a) { a.i("axis", 1); }).text(), "y = Concat(x, x) axis=1\nout y\n");
  EXPECT_EQ(with([](auto) {}).error(), "test.onnx: node 0 (Concat, opset 13): attribute 'axis' is missing");
  EXPECT_EQ(with([](auto a) { a.f("axis", 1); }).error(),
            "test.onnx: node 0 (Concat, opset 13): attribute 'axis' is a float, it should be an int");
  EXPECT_EQ(with([](auto a) { a.is("axis", {1}); }).error(),
            "test.onnx: node 0 (Concat, opset 13): attribute 'axis' is ints, it should be an int");
  EXPECT_EQ(with([](auto a) { a.i("axis", 1).i("axis", 2); }).error(),
            "test.onnx: node 0 (Concat, opset 13): attribute 'axis' is given twice");
  TestModel odd = with([](auto a) { a.i("axis", 1).i("colour", 2); });
  EXPECT_EQ(odd.text(), "y = Concat(x, x) axis=1\nout y\n");
  EXPECT_THAT(imported(odd).warnings,
              ElementsAre("node 0 (Concat, opset 13): attribute 'colour' is unknown and ignored"));
  EXPECT_THAT(with([](auto a) { a.ref("axis", "a", onnx::AttributeProto::INT); }).error(),
              HasSubstr("which only a function can"));
}

TEST(Importer, AttributesWithoutAType) {
  TestModel m(13);
  m.node("Concat", {"x", "x"}, {"y"}).i("axis", 1);
  m.graph().mutable_node(0)->mutable_attribute(0)->clear_type();
  m.output("y");
  EXPECT_EQ(m.text(), "y = Concat(x, x) axis=1\nout y\n");
}

TEST(Importer, DataTypesOfAttributesBecomeNames) {
  TestModel m(21);
  m.node("Cast", {"x"}, {"a"}).i("to", onnx::TensorProto::BFLOAT16);
  m.node("QuantizeLinear", {"x", "x"}, {"b"}).i("output_dtype", 0);
  m.output("a");
  EXPECT_EQ(m.text(), "a = Cast(x) to=bfloat16\nb = QuantizeLinear(x, x)\nout a\n");
  m.node("Cast", {"x"}, {"c"}).i("to", 77);
  EXPECT_EQ(m.error(), "test.onnx: node 2 (Cast, opset 21): attribute 'to': unknown data type 77");
}

TEST(Importer, Files) {
  testing::TemporaryFolder folder;
  EXPECT_EQ(importModel(folder.file("no.onnx")).status().message(),
            "can't open '" + folder.file("no.onnx") + "': No such file or directory");
  EXPECT_THAT(importModel(folder.path()).status().message(), HasSubstr("isn't a regular file"));
  folder.write("empty.onnx", "");
  EXPECT_EQ(importModel(folder.file("empty.onnx")).status().message(),
            folder.file("empty.onnx") + ": not an ONNX model: it has no graph");
  folder.write("text.onnx", "this is no protobuf");
  EXPECT_EQ(importModel(folder.file("text.onnx")).status().message(),
            folder.file("text.onnx") + ": not an ONNX model: damaged or truncated protobuf");
}

TEST(Importer, MoreThanTwoGigabytesInOneFile) {
  testing::TemporaryFolder folder;
  std::ofstream(folder.file("big.onnx"), std::ios::binary).close();
  std::filesystem::resize_file(folder.file("big.onnx"), (int64_t{1} << 31) + 5);  // sparse on disk
  EXPECT_THAT(importModel(folder.file("big.onnx")).status().message(),
              AllOf(HasSubstr("2147483653 bytes"), HasSubstr("save the weights as external data")));
}

}  // namespace
}  // namespace locution::frontend

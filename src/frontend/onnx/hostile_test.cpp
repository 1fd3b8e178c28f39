// Bytes that are no model, or almost one: a message, never a crash.
#include <gtest/gtest.h>

#include <random>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using testing::addNode;
using testing::TestModel;

/// A bit of everything: constants, optional inputs, old forms, regions, a function.
std::string sampleModel() {
  TestModel m(11);
  m.import("local", 1);
  m.import("com.microsoft", 1);
  m.input("cond", DType::Bool, {});
  m.constant("w", Tensor::of<float>(DType::F32, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  m.constant("n", Tensor::scalarI64(3));
  onnx::FunctionProto& f = *m.proto.add_functions();
  f.set_domain("local");
  f.set_name("F");
  f.add_input("a");
  f.add_output("b");
  f.add_attribute("alpha");
  f.add_opset_import()->set_version(13);
  addNode(f, "Elu", {"a"}, {"t"}).ref("alpha", "alpha", onnx::AttributeProto::FLOAT);
  addNode(f, "Softmax", {"t"}, {"b"});
  onnx::GraphProto branch;
  *branch.add_initializer() = tensorToProto("k", Tensor::scalarF32(2));
  addNode(branch, "Mul", {"q", "k"}, {"r"});
  branch.add_output()->set_name("r");
  onnx::GraphProto body;
  testing::addValueInfo(*body.add_input(), "i", DType::I64, {});
  testing::addValueInfo(*body.add_input(), "go", DType::Bool, {});
  testing::addValueInfo(*body.add_input(), "v", DType::F32, {"1"});
  addNode(body, "Add", {"v", "v"}, {"v2"});
  for (const char* name : {"go", "v2", "v2"}) body.add_output()->set_name(name);
  m.node("MatMul", {"x", "w"}, {"p"});
  m.node("F", {"p"}, {"q"}, "local").f("alpha", 0.5);
  m.node("If", {"cond"}, {"s"}).g("then_branch", branch).g("else_branch", branch);
  m.node("Loop", {"n", "", "s"}, {"u", "all"}).g("body", body);
  m.node("Softmax", {"u"}, {"z"}).i("axis", 1);
  m.node("Constant", {}, {"c"}).t("value", Tensor::vectorI64({1, 2}));
  m.node("FusedGemm", {"z", "w"}, {"y"}, "com.microsoft").s("activation", "Relu");
  m.output("y");
  return m.bytes();
}

bool importBytes(const std::string& bytes) {
  ImportOptions options;
  options.requireKnownOps = false;
  options.maxDenseBytes = 1 << 20;
  options.maxInlinedNodes = 10000;
  auto model = importModel(std::as_bytes(std::span(bytes)), "hostile.onnx", "", options);
  if (model) return true;
  EXPECT_TRUE(model.status().message().starts_with("hostile.onnx: ")) << model.status().message();
  return false;
}

TEST(Hostile, TruncatedAtEveryLength) {
  std::string bytes = sampleModel();
  ASSERT_TRUE(importBytes(bytes));
  for (size_t length = 0; length < bytes.size(); ++length) importBytes(bytes.substr(0, length));
}

TEST(Hostile, EveryByteChanged) {
  std::string bytes = sampleModel();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int change : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      importBytes(changed);
    }
  }
}

TEST(Hostile, RandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 ? 256 : 32));
    EXPECT_FALSE(importBytes(bytes));
  }
}

TEST(Hostile, PiecesSwapped) {
  std::mt19937 random(2);
  std::string bytes = sampleModel();
  for (int round = 0; round < 2000; ++round) {
    std::string changed = bytes;
    size_t from = random() % bytes.size(), to = random() % bytes.size(), count = 1 + random() % 40;
    changed.replace(to, random() % 40, bytes.substr(from, count));
    importBytes(changed);
  }
}

TEST(Hostile, GraphsNestedTooDeep) {
  onnx::GraphProto graph;
  graph.add_output()->set_name("x");
  for (int depth = 0; depth < 200; ++depth) {
    onnx::GraphProto outer;
    addNode(outer, "If", {"x"}, {"y"}).g("then_branch", graph);
    outer.add_output()->set_name("y");
    graph = outer;
  }
  TestModel m(13);
  m.graph() = graph;
  EXPECT_FALSE(importBytes(m.bytes()));
}

}  // namespace
}  // namespace locution::frontend

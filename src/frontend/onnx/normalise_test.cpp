// What each opset changed, brought into the form of the newest.
#include <gmock/gmock.h>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using ::testing::HasSubstr;
using testing::TestModel;

/// A model of one node of x (and more inputs) with output y.
template <typename F>
TestModel one(int64_t opset, const std::string& op, const testing::Names& inputs, F attributes,
              const std::string& domain = "") {
  TestModel m(opset);
  if (!domain.empty()) m.import(domain, 1);
  for (const std::string& name : inputs)
    if (name != "x" && !name.empty() && name[0] != '#') m.input(name, DType::F32, {});
  attributes(m.node(op, inputs, {"y"}, domain));
  m.output("y");
  return m;
}
const auto none = [](testing::Attributes) {};

TEST(Normalise, AxesBecomeInputs) {
  EXPECT_EQ(one(11, "Squeeze", {"x"},
                [](auto a) {
                  a.is("axes", {0, -1});
                })
                .text(),
            "y = Squeeze(x, int64[2]{0 -1})\nout y\n");
  EXPECT_EQ(one(11, "Squeeze", {"x"}, none).text(), "y = Squeeze(x)\nout y\n");
  EXPECT_EQ(one(11, "Unsqueeze", {"x"}, [](auto a) { a.is("axes", {0}); }).text(),
            "y = Unsqueeze(x, int64[1]{0})\nout y\n");
  EXPECT_THAT(one(11, "Unsqueeze", {"x"}, none).error(), HasSubstr("attribute 'axes' is missing"));
  EXPECT_THAT(one(13, "Unsqueeze", {"x"}, none).error(), HasSubstr("input axes is missing"));
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                         "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    int64_t last = std::string(op) == "ReduceSum" ? 12 : 17;
    std::string name = op;
    EXPECT_EQ(one(last, op, {"x"}, [](auto a) { a.is("axes", {1}).i("keepdims", 0); }).text(),
              "y = " + name + "(x, int64[1]{1}) keepdims=0\nout y\n");
    EXPECT_EQ(one(7, op, {"x"}, none).text(), "y = " + name + "(x)\nout y\n");
    EXPECT_EQ(one(last + 1, op, {"x", "a"}, [](auto a) { a.i("noop_with_empty_axes", 1); }).text(),
              "y = " + name + "(x, a) noop_with_empty_axes=1\nout y\n");
  }
}

TEST(Normalise, SoftmaxFlattensBefore13) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    std::string name = op;
    std::string flattened = "y/Shape = Shape(x)\ny/Flatten = Flatten(x) axis=1\ny/" + name + " = " + name +
                            "(y/Flatten) axis=-1\ny = Reshape(y/" + name + ", y/Shape) allowzero=1\nout y\n";
    EXPECT_EQ(one(12, op, {"x"}, none).text(), flattened);
    EXPECT_EQ(one(7, op, {"x"}, [](auto a) { a.i("axis", 1); }).text(), flattened);
    EXPECT_EQ(one(11, op, {"x"}, [](auto a) { a.i("axis", -1); }).text(), "y = " + name + "(x) axis=-1\nout y\n");
    EXPECT_EQ(one(13, op, {"x"}, none).text(), "y = " + name + "(x)\nout y\n");
    EXPECT_EQ(one(13, op, {"x"}, [](auto a) { a.i("axis", 1); }).text(), "y = " + name + "(x) axis=1\nout y\n");
  }
}

TEST(Normalise, ClipBoundsBefore11) {
  EXPECT_EQ(one(10, "Clip", {"x"}, [](auto a) { a.f("min", 0).f("max", 6); }).text(),
            "y/CastLike = CastLike(float32{0}, x)\ny/CastLike.2 = CastLike(float32{6}, x)\ny = Clip(x, y/CastLike, "
            "y/CastLike.2)\nout y\n");
  EXPECT_THAT(one(10, "Clip", {"x"}, [](auto a) { a.f("min", 0); }).text(),
              HasSubstr("CastLike(float32{3.40282e+38}, x)"));
  EXPECT_EQ(one(11, "Clip", {"x"}, none).text(), "y = Clip(x)\nout y\n");
}

TEST(Normalise, PadBefore11) {
  EXPECT_EQ(one(10, "Pad", {"x"},
                [](auto a) {
                  a.is("pads", {0, 1, 0, 1}).s("mode", "edge");
                })
                .text(),
            "y = Pad(x, int64[4]{0 1 0 1}) mode=edge\nout y\n");
  EXPECT_EQ(one(10, "Pad", {"x"},
                [](auto a) {
                  a.is("pads", {0, 1}).f("value", 2);
                })
                .text(),
            "y/CastLike = CastLike(float32{2}, x)\ny = Pad(x, int64[2]{0 1}, y/CastLike)\nout y\n");
}

TEST(Normalise, SliceBefore10) {
  EXPECT_EQ(one(9, "Slice", {"x"}, [](auto a) { a.is("starts", {1}).is("ends", {-1}).is("axes", {2}); }).text(),
            "y = Slice(x, int64[1]{1}, int64[1]{-1}, int64[1]{2})\nout y\n");
  EXPECT_EQ(one(9, "Slice", {"x"}, [](auto a) { a.is("starts", {1}).is("ends", {3}); }).text(),
            "y = Slice(x, int64[1]{1}, int64[1]{3})\nout y\n");
  EXPECT_THAT(one(9, "Slice", {"x"},
                  [](auto a) {
                    a.is("starts", {1}).is("ends", {3, 4});
                  })
                  .error(),
              HasSubstr("node 0 (Slice, opset 9): starts, ends and axes have 1, 2 and 1 entries"));
}

TEST(Normalise, Split) {
  auto split = [](int64_t opset, auto attributes) {
    TestModel m(opset);
    attributes(m.node("Split", {"x"}, {"y", "z"}));
    m.output("y");
    return m;
  };
  EXPECT_EQ(split(11, none).text(), "y, z = Split(x) num_outputs=2\nout y\n");
  EXPECT_EQ(split(11,
                  [](auto a) {
                    a.is("split", {1, 2}).i("axis", 1);
                  })
                .text(),
            "y, z = Split(x, int64[2]{1 2}) axis=1\nout y\n");
  EXPECT_EQ(split(13, none).text(), "y, z = Split(x) num_outputs=2\nout y\n");
  EXPECT_EQ(split(18, [](auto a) { a.i("num_outputs", 2); }).text(), "y, z = Split(x) num_outputs=2\nout y\n");
  EXPECT_THAT(split(18, [](auto a) { a.i("num_outputs", 3); }).error(),
              HasSubstr("num_outputs is 3, it has 2 outputs"));
  EXPECT_THAT(split(11,
                    [](auto a) {
                      a.is("split", {1, 2, 3});
                    })
                  .error(),
              HasSubstr("3 sizes are given for 2 outputs"));
}

TEST(Normalise, TopKBefore10) {
  TestModel m(9);
  m.node("TopK", {"x"}, {"v", "i"}).i("k", 3).i("axis", 1);
  m.output("i");
  EXPECT_EQ(m.text(), "v, i = TopK(x, int64[1]{3}) axis=1\nout i\n");
}

TEST(Normalise, UpsampleAndResize) {
  std::string asymmetric = "coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=";
  EXPECT_EQ(one(7, "Upsample", {"x"},
                [](auto a) {
                  a.fs("scales", {1, 2});
                })
                .text(),
            "y = Resize(x, _, float32[2]{1 2}) " + asymmetric + "floor\nout y\n");
  EXPECT_EQ(one(9, "Upsample", {"x", "s"}, none).text(), "y = Resize(x, _, s) " + asymmetric + "floor\nout y\n");
  auto resize10 = [&](const std::vector<float>& scales) {
    TestModel m = one(10, "Resize", {"x", "#s"}, none);
    m.constant("#s", Tensor::of<float>(DType::F32, {int64_t(scales.size())}, scales));
    return m.text();
  };
  EXPECT_EQ(resize10({1, 2}), "y = Resize(x, _, float32[2]{1 2}) " + asymmetric + "floor\nout y\n");
  EXPECT_EQ(resize10({1, 0.5}), "y = Resize(x, _, float32[2]{1 0.5}) " + asymmetric + "ceil\nout y\n");
  EXPECT_EQ(resize10({0.5, 2}), "y/Resize = Resize(x, _, float32[2]{1 2}) " + asymmetric +
                                    "floor\ny = Resize(y/Resize, _, float32[2]{0.5 1}) " + asymmetric +
                                    "ceil\nout y\n");

  TestModel m = one(11, "Resize", {"x", "#roi", "#none", "z"}, [](auto a) { a.s("mode", "linear"); });
  m.constant("#roi", Tensor(DType::F32, {0}));
  m.constant("#none", Tensor(DType::F32, {0}));
  EXPECT_EQ(m.text(), "y = Resize(x, _, _, z) mode=linear\nout y\n");
  EXPECT_THAT(one(13, "Resize", {"x"}, none).error(), HasSubstr("neither scales nor sizes"));
  EXPECT_THAT(one(13, "Resize", {"x", "", "s", "z"}, none).error(), HasSubstr("both scales and sizes"));
  EXPECT_EQ(
      one(11, "Resize", {"x", "", "s"},
          [](auto a) { a.s("coordinate_transformation_mode", "tf_half_pixel_for_nn").s("nearest_mode", "floor"); })
          .text(),
      "y = Resize(x, _, s) coordinate_transformation_mode=half_pixel nearest_mode=round_prefer_ceil\nout y\n");
}

TEST(Normalise, Dropout) {
  TestModel m(9);
  m.node("Dropout", {"x"}, {"y", "mask"}).f("ratio", 0.5);
  m.output("y");
  EXPECT_EQ(m.text(),
            "y = Identity(x)\ny/Shape = Shape(x)\ny/ConstantOfShape = ConstantOfShape(y/Shape) value=bool[1]{1}\n"
            "y/CastLike = CastLike(y/ConstantOfShape, x)\nmask = Identity(y/CastLike)\nout y\n");
  EXPECT_EQ(one(12, "Dropout", {"x", "r"}, none).text(), "y = Identity(x)\nout y\n");
  TestModel off = one(13, "Dropout", {"x", "r", "#t"}, none);
  off.constant("#t", Tensor::of<uint8_t>(DType::Bool, {}, {0}));
  EXPECT_EQ(off.text(), "y = Identity(x)\nout y\n");
  EXPECT_EQ(one(13, "Dropout", {"x", "r", "t"}, [](auto a) { a.i("seed", 3); }).text(),
            "y = Dropout(x, r, t) seed=3\nout y\n");
}

TEST(Normalise, BatchNormalization) {
  testing::Names inputs = {"x", "s", "b", "m", "v"};
  EXPECT_EQ(one(7, "BatchNormalization", inputs, [](auto a) { a.i("spatial", 1).f("epsilon", 0.5); }).text(),
            "y = BatchNormalization(x, s, b, m, v) epsilon=0.5\nout y\n");
  EXPECT_EQ(one(9, "BatchNormalization", inputs, none).text(), "y = BatchNormalization(x, s, b, m, v)\nout y\n");
  EXPECT_THAT(one(8, "BatchNormalization", inputs, [](auto a) { a.i("spatial", 0); }).text(),
              HasSubstr("y = Add(y/Mul, b)"));
  TestModel training(9);
  for (const char* name : {"s", "b", "m", "v"}) training.input(name, DType::F32, {"3"});
  training.node("BatchNormalization", inputs, {"y", "m2", "v2", "", ""});
  training.output("y");
  EXPECT_EQ(training.text(), "y, m2, v2 = BatchNormalization(x, s, b, m, v) training_mode=1\nout y\n");
}

TEST(Normalise, GroupNormalization18HasScalesPerGroup) {
  EXPECT_EQ(one(18, "GroupNormalization", {"x", "s", "b"}, [](auto a) { a.i("num_groups", 2); }).text(),
            "y/Shape = Shape(x) end=2 start=1\n"
            "y/Div = Div(y/Shape, int64[1]{2})\n"
            "y/Concat = Concat(int64[1]{2}, y/Div) axis=0\n"
            "y/Reshape = Reshape(s, int64[2]{2 1})\n"
            "y/Expand = Expand(y/Reshape, y/Concat)\n"
            "y/Reshape.2 = Reshape(y/Expand, y/Shape)\n"
            "y/Reshape.3 = Reshape(b, int64[2]{2 1})\n"
            "y/Expand.2 = Expand(y/Reshape.3, y/Concat)\n"
            "y/Reshape.4 = Reshape(y/Expand.2, y/Shape)\n"
            "y = GroupNormalization(x, y/Reshape.2, y/Reshape.4) num_groups=2\nout y\n");
  EXPECT_EQ(one(21, "GroupNormalization", {"x", "s", "b"}, [](auto a) { a.i("num_groups", 2); }).text(),
            "y = GroupNormalization(x, s, b) num_groups=2\nout y\n");
  EXPECT_THAT(one(18, "GroupNormalization", {"x", "s", "b"}, [](auto a) { a.i("num_groups", 0); }).error(),
              HasSubstr("num_groups is 0"));
}

TEST(Normalise, RenamedModesAndOperators) {
  EXPECT_EQ(one(16, "GridSample", {"x", "g"}, none).text(), "y = GridSample(x, g) mode=linear\nout y\n");
  EXPECT_EQ(one(16, "GridSample", {"x", "g"}, [](auto a) { a.s("mode", "bicubic"); }).text(),
            "y = GridSample(x, g) mode=cubic\nout y\n");
  EXPECT_EQ(one(20, "GridSample", {"x", "g"}, none).text(), "y = GridSample(x, g)\nout y\n");
  EXPECT_THAT(one(10, "RoiAlign", {"x", "r", "b"}, none).text(),
              HasSubstr("coordinate_transformation_mode=output_half_pixel"));
  EXPECT_EQ(one(16, "RoiAlign", {"x", "r", "b"}, none).text(), "y = RoiAlign(x, r, b)\nout y\n");
  EXPECT_EQ(one(10, "Scatter", {"x", "i", "u"}, [](auto a) { a.i("axis", 1); }).text(),
            "y = ScatterElements(x, i, u) axis=1\nout y\n");
  EXPECT_EQ(one(17, "DFT", {"x"}, [](auto a) { a.i("inverse", 1); }).text(),
            "y = DFT(x, _, int64{1}) inverse=1\nout y\n");
}

TEST(Normalise, ConstantsOfEveryAttribute) {
  auto text = [](int64_t opset, auto attributes) { return one(opset, "Constant", {}, attributes).text(); };
  EXPECT_EQ(text(7, [](auto a) { a.t("value", Tensor::scalarF32(2)); }), "out float32{2}\n");
  EXPECT_EQ(text(12, [](auto a) { a.i("value_int", 2); }), "out int64{2}\n");
  EXPECT_EQ(text(12, [](auto a) { a.is("value_ints", {2, 3}); }), "out int64[2]{2 3}\n");
  EXPECT_EQ(text(12, [](auto a) { a.f("value_float", 0.5); }), "out float32{0.5}\n");
  EXPECT_EQ(text(12, [](auto a) { a.fs("value_floats", {}); }), "out float32[0]{}\n");
  EXPECT_EQ(text(12, [](auto a) { a.s("value_string", "hi"); }), "out string{hi}\n");
  EXPECT_EQ(text(12, [](auto a) { a.ss("value_strings", {"a", "b"}); }), "out string[2]{a b}\n");
  EXPECT_THAT(text(12, none), HasSubstr("exactly one attribute"));
  EXPECT_THAT(text(12, [](auto a) { a.i("value_int", 2).f("value_float", 1); }), HasSubstr("exactly one attribute"));
  EXPECT_THAT(text(9, [](auto a) { a.i("value_int", 2); }), HasSubstr("attribute 'value' is missing"));

  TestModel sparse(11);
  auto& attribute = *(sparse.node("Constant", {}, {"y"}), sparse.graph().mutable_node(0))->add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor()->mutable_values() = tensorToProto("", Tensor::of<float>(DType::F32, {1}, {4}));
  *attribute.mutable_sparse_tensor()->mutable_indices() = tensorToProto("", Tensor::vectorI64({2}));
  attribute.mutable_sparse_tensor()->add_dims(3);
  sparse.output("y");
  EXPECT_EQ(sparse.text(), "out float32[3]{0 0 4}\n");
  EXPECT_THAT(one(9, "ConstantOfShape", {"x"},
                  [](auto a) {
                    a.t("value", Tensor::vectorI64({1, 2}));
                  })
                  .error(),
              HasSubstr("must be a tensor of one element"));
}

TEST(Normalise, OptionalsTypeBecomesText) {
  TestModel m(15);
  m.node("Optional", {}, {"y"});
  auto& attribute = *m.graph().mutable_node(0)->add_attribute();
  attribute.set_name("type");
  attribute.set_type(onnx::AttributeProto::TYPE_PROTO);
  attribute.mutable_tp()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT32);
  m.output("y");
  EXPECT_EQ(m.text(), "y = Optional() type=seq(int32[?])\nout y\n");
}

TEST(NormaliseMicrosoft, Activations) {
  const std::string ms = "com.microsoft";
  EXPECT_EQ(one(13, "Gelu", {"x"}, none, ms).text(), "y = Gelu(x)\nout y\n");
  EXPECT_EQ(one(13, "BiasGelu", {"x", "b"}, none, ms).text(), "y/Add = Add(x, b)\ny = Gelu(y/Add)\nout y\n");
  EXPECT_EQ(one(13, "FastGelu", {"x", "b"}, none, ms).text(),
            "y/Add = Add(x, b)\ny = Gelu(y/Add) approximate=tanh\nout y\n");
  EXPECT_EQ(one(13, "FastGelu", {"x"}, none, ms).text(), "y = Gelu(x) approximate=tanh\nout y\n");
  EXPECT_EQ(one(13, "QuickGelu", {"x"}, none, ms).text(),
            "y/CastLike = CastLike(float32{1.702}, x)\ny/Mul = Mul(x, y/CastLike)\ny/Sigmoid = Sigmoid(y/Mul)\ny = "
            "Mul(x, y/Sigmoid)\nout y\n");
}

TEST(NormaliseMicrosoft, Products) {
  const std::string ms = "com.microsoft";
  EXPECT_EQ(one(13, "FusedMatMul", {"x", "b"}, none, ms).text(), "y = MatMul(x, b)\nout y\n");
  EXPECT_EQ(one(
                13, "FusedMatMul", {"x", "b"}, [](auto a) { a.i("transB", 1).f("alpha", 0.125); }, ms)
                .text(),
            "y/Einsum = Einsum(x, b) equation=...im,...jm->...ij\ny/CastLike = CastLike(float32{0.125}, y/Einsum)\n"
            "y = Mul(y/Einsum, y/CastLike)\nout y\n");
  EXPECT_EQ(one(
                13, "FusedMatMul", {"x", "b"}, [](auto a) { a.i("transA", 1); }, ms)
                .text(),
            "y = Einsum(x, b) equation=...mi,...mj->...ij\nout y\n");
  EXPECT_THAT(one(
                  13, "FusedMatMul", {"x", "b"}, [](auto a) { a.i("transBatchA", 1); }, ms)
                  .error(),
              HasSubstr("transBatchA"));
  EXPECT_EQ(one(13, "DynamicQuantizeMatMul", {"x", "b", "s", "", "c"}, none, ms).text(),
            "y/DynamicQuantizeLinear, y/DynamicQuantizeLinear.2, y/DynamicQuantizeLinear.3 = DynamicQuantizeLinear(x)\n"
            "y/MatMulInteger = MatMulInteger(y/DynamicQuantizeLinear, b, y/DynamicQuantizeLinear.3)\n"
            "y/Cast = Cast(y/MatMulInteger) to=float32\n"
            "y/Mul = Mul(y/DynamicQuantizeLinear.2, s)\n"
            "y/Mul.2 = Mul(y/Cast, y/Mul)\n"
            "y = Add(y/Mul.2, c)\nout y\n");
  EXPECT_THAT(one(13, "MatMulIntegerToFloat", {"x", "b", "s", "t", "z"}, none, ms).text(),
              HasSubstr("MatMulInteger(x, b, z)"));
  EXPECT_EQ(one(
                13, "FusedConv", {"x", "w", "", "z"},
                [](auto a) {
                  a.s("activation", "Relu").is("pads", {1, 1});
                },
                ms)
                .text(),
            "y/Conv = Conv(x, w) pads=[1 1]\ny/Add = Add(y/Conv, z)\ny = Relu(y/Add)\nout y\n");
  EXPECT_EQ(
      one(
          13, "FusedGemm", {"x", "w"}, [](auto a) { a.s("activation", "LeakyRelu").f("activation_alpha", 0.25); }, ms)
          .text(),
      "y/Gemm = Gemm(x, w)\ny = LeakyRelu(y/Gemm) alpha=0.25\nout y\n");
  EXPECT_THAT(one(
                  13, "FusedGemm", {"x", "w"}, [](auto a) { a.s("activation", "Magic"); }, ms)
                  .error(),
              HasSubstr("activation 'Magic'"));
}

TEST(NormaliseMicrosoft, QuantisedOperators) {
  const std::string ms = "com.microsoft";
  EXPECT_EQ(one(13, "QLinearAdd", {"x", "s", "z", "b", "t", "u", "v", "w"}, none, ms).text(),
            "y/DequantizeLinear = DequantizeLinear(x, s, z)\ny/DequantizeLinear.2 = DequantizeLinear(b, t, u)\n"
            "y/Add = Add(y/DequantizeLinear, y/DequantizeLinear.2)\ny = QuantizeLinear(y/Add, v, w)\nout y\n");
  EXPECT_EQ(one(
                13, "QLinearLeakyRelu", {"x", "s", "z", "t", "u"}, [](auto a) { a.f("alpha", 0.5); }, ms)
                .text(),
            "y/DequantizeLinear = DequantizeLinear(x, s, z)\ny/LeakyRelu = LeakyRelu(y/DequantizeLinear) alpha=0.5\n"
            "y = QuantizeLinear(y/LeakyRelu, t, u)\nout y\n");
  EXPECT_THAT(one(
                  13, "QLinearReduceMean", {"x", "s", "z", "t", "u"}, [](auto a) { a.is("axes", {1}); }, ms)
                  .text(),
              HasSubstr("ReduceMean(y/DequantizeLinear, int64[1]{1})\n"));
  EXPECT_THAT(
      one(
          13, "QLinearGlobalAveragePool", {"x", "s", "z", "t", "u"}, [](auto a) { a.i("channels_last", 1); }, ms)
          .error(),
      HasSubstr("channels_last"));
  EXPECT_THAT(one(
                  13, "QLinearConcat", {"t", "u", "x", "s", "z", "b", "s2", "z2"}, [](auto a) { a.i("axis", 1); }, ms)
                  .text(),
              HasSubstr("Concat(y/DequantizeLinear, y/DequantizeLinear.2) axis=1\ny = QuantizeLinear(y/Concat, t, u)"));
  EXPECT_THAT(one(
                  13, "QLinearConcat", {"t", "u", "x", "s"}, [](auto a) { a.i("axis", 1); }, ms)
                  .error(),
              HasSubstr("4 inputs are given"));
  EXPECT_EQ(one(
                13, "QGemm", {"x", "s", "z", "b", "t", "u", "c"}, [](auto a) { a.i("transB", 1); }, ms)
                .text(),
            "y/DequantizeLinear = DequantizeLinear(x, s, z)\ny/DequantizeLinear.2 = DequantizeLinear(b, t, u) axis=0\n"
            "y/Cast = Cast(c) to=float32\ny/Mul = Mul(s, t)\ny/Mul.2 = Mul(y/Cast, y/Mul)\n"
            "y = Gemm(y/DequantizeLinear, y/DequantizeLinear.2, y/Mul.2) transB=1\nout y\n");
  EXPECT_EQ(
      one(
          11, "DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", "", "s", "z", "t", "u"},
          [](auto a) { a.i("hidden_size", 8); }, ms)
          .text(),
      "y/Cast = Cast(w) to=float32\ny/Cast.2 = Cast(z) to=float32\ny/Reshape = Reshape(y/Cast.2, int64[3]{0 1 -1})\n"
      "y/Sub = Sub(y/Cast, y/Reshape)\ny/Reshape.2 = Reshape(s, int64[3]{0 1 -1})\ny/Mul = Mul(y/Sub, y/Reshape.2)\n"
      "y/Transpose = Transpose(y/Mul) perm=[0 2 1]\ny/Cast.3 = Cast(r) to=float32\ny/Cast.4 = Cast(u) to=float32\n"
      "y/Reshape.3 = Reshape(y/Cast.4, int64[3]{0 1 -1})\ny/Sub.2 = Sub(y/Cast.3, y/Reshape.3)\n"
      "y/Reshape.4 = Reshape(t, int64[3]{0 1 -1})\ny/Mul.2 = Mul(y/Sub.2, y/Reshape.4)\n"
      "y/Transpose.2 = Transpose(y/Mul.2) perm=[0 2 1]\ny = LSTM(x, y/Transpose, y/Transpose.2) hidden_size=8\nout "
      "y\n");
}

TEST(NormaliseMicrosoft, Normalisations) {
  const std::string ms = "com.microsoft";
  EXPECT_EQ(
      one(13, "SimplifiedLayerNormalization", {"x", "s"}, [](auto a) { a.i("axis", -1).f("epsilon", 0.5); }).text(),
      "y = RMSNormalization(x, s) axis=-1 epsilon=0.5\nout y\n");
  TestModel m(13);
  m.import(ms, 1);
  for (const char* name : {"k", "g", "b"}) m.input(name, DType::F32, {"4"});
  m.node("SkipLayerNormalization", {"x", "k", "g", "b"}, {"y", "", "", "sum"}, ms).f("epsilon", 0.5);
  m.output("y");
  EXPECT_EQ(m.text(),
            "y/Add = Add(x, k)\ny/LayerNormalization = LayerNormalization(y/Add, g, b) axis=-1 epsilon=0.5\n"
            "y = Identity(y/LayerNormalization)\nsum = Identity(y/Add)\nout y\n");
  EXPECT_EQ(one(11, "LayerNormalization", {"x", "s"}, none).text(), "y = LayerNormalization(x, s)\nout y\n");
  EXPECT_THAT(
      one(13, "GroupQueryAttention", {"x"}, none, ms).error(),
      HasSubstr("unsupported operator: node 0 (GroupQueryAttention, domain com.microsoft, opset 1): unknown operator"));
}

TEST(NormaliseMicrosoft, MultiHeadAttention) {
  const std::string ms = "com.microsoft";
  auto heads = [](auto a) { a.i("num_heads", 2).f("scale", 0.5); };
  EXPECT_EQ(one(13, "MultiHeadAttention", {"x", "k", "v"}, heads, ms).text(),
            "y = Attention(x, k, v) is_causal=0 kv_num_heads=2 q_num_heads=2 scale=0.5\nout y\n");
  EXPECT_EQ(
      one(13, "MultiHeadAttention", {"x", "k", "v", "b", "", "m"}, heads, ms).text(),
      "y/Split, y/Split.2, y/Split.3 = Split(b) num_outputs=3\ny/Add = Add(x, y/Split)\ny/Add.2 = Add(k, y/Split.2)\n"
      "y/Add.3 = Add(v, y/Split.3)\n"
      "y = Attention(y/Add, y/Add.2, y/Add.3, m) is_causal=0 kv_num_heads=2 q_num_heads=2 scale=0.5\nout y\n");
  EXPECT_THAT(one(13, "MultiHeadAttention", {"x"}, heads, ms).error(), HasSubstr("packed query, key and value"));
  EXPECT_THAT(one(13, "MultiHeadAttention", {"x", "k", "v", "", "p"}, heads, ms).error(),
              HasSubstr("key_padding_mask"));
}

}  // namespace
}  // namespace locution::frontend

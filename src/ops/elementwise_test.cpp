#include <gtest/gtest.h>

#include "ops/node_case.h"
#include "ops/one_node.h"

namespace locution::ops {
namespace {

// op(x) on a float32 vector.
std::vector<double> unary(const std::string& op, const std::vector<float>& x, const graph::Attrs& attrs = {}) {
  OneNode node(op);
  for (const auto& [k, v] : attrs) node.attr(k, v);
  auto got = node.in(f32({static_cast<int64_t>(x.size())}, x)).run();
  EXPECT_TRUE(got.isOk()) << op << ": " << got.status().message();
  std::vector<double> out;
  for (size_t i = 0; got.isOk() && i < x.size(); ++i)
    out.push_back(got->front().elementAsDouble(static_cast<int64_t>(i)));
  return out;
}
void expectNear(const std::vector<double>& got, const std::vector<double>& want, double relative = 1e-6) {
  Tensor t = ofType(DType::F64, {static_cast<int64_t>(got.size())}, got);
  expectTensor(t, {static_cast<int64_t>(want.size())}, want, relative);
}

TEST(Unary, KeepsNaNAndSigns) {
  expectNear(unary("Relu", {-1, 2, kNaN, -kInf}), {0, 2, kNaN, 0});
  expectNear(unary("Sign", {-3, 0, 5, kNaN}), {-1, 0, 1, kNaN});
  expectNear(unary("Abs", {-3, kNaN, -kInf}), {3, kNaN, kInf});
  EXPECT_TRUE(std::signbit(unary("Neg", {0})[0]));
  expectNear(unary("Round", {0.5F, 1.5F, -2.5F, 2.4F}), {0, 2, -2, 2});
  expectNear(unary("IsInf", {kInf, -kInf, 1, kNaN}), {1, 1, 0, 0});
  expectNear(unary("IsInf", {kInf, -kInf}, {{"detect_negative", int64_t{0}}}), {1, 0});
  expectNear(unary("IsInf", {kInf, -kInf}, {{"detect_positive", int64_t{0}}}), {0, 1});
  expectNear(unary("IsNaN", {kInf, kNaN}), {0, 1});
}

TEST(Unary, Integers) {
  OneNode abs("Abs");
  expectRun(abs.in(ofType(DType::I8, {3}, {-128, -3, 4})), {3}, {-128, 3, 4});
  OneNode neg("Neg");
  expectRun(neg.in(i32({2}, {std::numeric_limits<int32_t>::min(), 7})), {2}, {-2147483648.0, -7});
  OneNode sign("Sign");
  expectRun(sign.in(ofType(DType::U8, {2}, {0, 200})), {2}, {0, 1});
  OneNode flip("BitwiseNot");
  expectRun(flip.in(ofType(DType::U8, {2}, {0, 0x0f})), {2}, {255, 240});
}

TEST(Activation, AgainstNumpy) {
  const std::vector<float> x{-4, -0.5F, 0, 0.5F, 4};
  expectNear(unary("LeakyRelu", x, {{"alpha", 0.1}}), {-0.4, -0.05, 0, 0.5, 4});
  expectNear(unary("Elu", x, {{"alpha", 2.0}}), {-1.9633687222225316, -0.78693868057473315, 0, 0.5, 4});
  expectNear(unary("Celu", x, {{"alpha", 2.0}}), {-1.7293294335267746, -0.44239843385719024, 0, 0.5, 4});
  expectNear(unary("Selu", x), {-1.72589863, -0.69175819, 0, 0.52535051, 4.20280409});
  expectNear(unary("HardSigmoid", x), {0, 0.4, 0.5, 0.6, 1});
  expectNear(unary("HardSwish", x), {0, -0.2083333, 0, 0.2916667, 4});
  expectNear(unary("Softplus", x),
             {0.01814992791780978, 0.4740769841801067, 0.6931471805599453, 0.9740769841801067, 4.01814992791781});
  expectNear(unary("Softsign", x), {-0.8, -0.3333333, 0, 0.3333333, 0.8});
  expectNear(unary("Mish", x), {-0.07259174, -0.22074377, 0, 0.37524521, 3.99741281});
  expectNear(unary("Gelu", x), {-0.00012668496, -0.15426877, 0, 0.34573123, 3.9998733});
  expectNear(unary("Gelu", x, {{"approximate", std::string("tanh")}}),
             {-7.0245948e-05, -0.15428599, 0, 0.345714, 3.9999297});
  expectNear(unary("Swish", x, {{"alpha", 2.0}}), {-0.00134140, -0.13447071, 0, 0.36552929, 3.9986586});
  expectNear(unary("ThresholdedRelu", x, {{"alpha", 0.5}}), {0, 0, 0, 0, 4});
  expectNear(unary("Shrink", x, {{"lambd", 0.5}, {"bias", 1.0}}), {-3, 0, 0, 0, 3});
}

TEST(Activation, ShrinkOfIntegersIsOfNumbers) {
  auto expectShrunk = [](const Tensor& x, const std::vector<double>& want) {
    OneNode shrink("Shrink");
    expectRun(shrink.attr("lambd", 1.5).attr("bias", 0.75).in(x), {x.elements()}, want);
  };
  expectShrunk(i32({6}, {-8, -2, -1, 1, 2, 8}), {-7, -1, 0, 0, 1, 7});
  expectShrunk(ofType(DType::U64, {4}, {0, 1, 2, 8}), {0, 0, 1, 7});
}

TEST(Activation, Extremes) {
  expectNear(unary("Softplus", {-100, 100, kInf, -kInf, kNaN}), {0, 100, kInf, 0, kNaN});
  EXPECT_NEAR(unary("Softplus", {-20})[0] / 2.0611536e-9, 1, 1e-5);  // small values keep their digits
  expectNear(unary("Mish", {50, kInf, -100, kNaN}), {50, kInf, 0, kNaN});
  expectNear(unary("Sigmoid", {-kInf, kInf, kNaN}), {0, 1, kNaN});
}

TEST(Activation, SlopesBroadcastToTheInputAlone) {
  auto f = [](const Shape& s) { return typeOf(DType::F32, s); };
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(inferredText(NodeCase("PRelu", {f({2, 3}), f({3})})), "float32[2x3]");
  EXPECT_EQ(inferredText(NodeCase("PRelu", {f({n, 3}), f({5, 1})})), "float32[nx3]");
  EXPECT_EQ(inferredText(NodeCase("PRelu", {f({1, 3}), f({2, 3})})),
            "error: the slope of shape 2x3 can't be broadcast to 1x3");
  EXPECT_EQ(inferredText(NodeCase("PRelu", {f({n, 3}), f({n, 4})})),
            "error: the slope of shape nx4 can't be broadcast to nx3");
  EXPECT_EQ(inferredText(NodeCase("PRelu", {f({3}), f({1, 3})})),
            "error: the slope of shape 1x3 can't be broadcast to 3");
}

TEST(Activation, Clip) {
  OneNode constants("Clip");
  expectRun(constants.in(f32({4}, {-2, 0.5F, 9, kNaN})).constant(f32({}, {-1})).constant(f32({}, {3})), {4},
            {-1, 0.5, 3, kNaN});
  OneNode data("Clip");
  expectRun(data.in(f32({3}, {-2, 9, kNaN})).in(f32({}, {-1})).in(f32({}, {3})), {3}, {-1, 3, kNaN});
  OneNode upper("Clip");
  expectRun(upper.in(f32({2}, {-2, 9})).absent().constant(f32({}, {3})), {2}, {-2, 3});
  OneNode crossed("Clip");  // the upper bound wins
  expectRun(crossed.in(f32({2}, {-2, 9})).constant(f32({}, {5})).constant(f32({}, {3})), {2}, {3, 3});
  OneNode wide("Clip");
  expectRun(wide.in(i64({2}, {std::numeric_limits<int64_t>::min(), 4}))
                .constant(i64({}, {std::numeric_limits<int64_t>::min() + 1})),
            {2}, {-9223372036854775807.0, 4});
}

TEST(Binary, Broadcasts) {
  OneNode add("Add");
  expectRun(add.in(f32({2, 1}, {1, 2})).in(f32({3}, {10, 20, 30})), {2, 3}, {11, 21, 31, 12, 22, 32});
  OneNode empty("Mul");
  expectRun(empty.in(f32({0, 3}, {})).in(f32({3}, {1, 2, 3})), {0, 3}, {});
  OneNode scalars("Sub");
  expectRun(scalars.in(f32({}, {5})).constant(f32({}, {3})), {}, {2});
  OneNode mean("Mean");
  expectRun(mean.in(f32({2}, {1, 2})).in(f32({1}, {3})).in(f32({2}, {5, 10})), {2}, {3, 5});
  EXPECT_EQ(OneNode("Add").type({DType::F32, {2}}).type({DType::F32, {3}}).inferred(),
            "shapes 2, 3 don't broadcast: 2 against 3");
  EXPECT_EQ(OneNode("Add").type({DType::F32, {2}}).type({DType::I64, {2}}).inferred(),
            "inputs 0 and 1 differ in type: float32 and int64");
  EXPECT_EQ(OneNode("And").type({DType::F32, {2}}).type({DType::F32, {2}}).inferred(),
            "input 0: expected bool, got float32");
  EXPECT_EQ(OneNode("Add").type({DType::F32, {2}}).inferred(), "input 1 is missing (at least 2 expected)");
}

TEST(Binary, HalvesComputeInFloat) {
  OneNode add("Add");  // 2048 + 1 isn't a float16: nearest even
  expectRun(add.in(ofType(DType::F16, {2}, {2048, 1})).in(ofType(DType::F16, {2}, {1, 2})), {2}, {2048, 3});
  OneNode exp("Exp");
  expectRun(exp.in(ofType(DType::BF16, {1}, {1})), {1}, {2.71875});
}

TEST(Binary, IntegerDivisionAndRemainder) {
  const int32_t low = std::numeric_limits<int32_t>::min();
  Tensor a = i32({6}, {7, -7, 7, -7, low, 5}), b = i32({6}, {3, 3, -3, -3, -1, 0});
  OneNode div("Div");
  expectRun(div.in(a).in(b), {6}, {2, -2, -2, 2, -2147483648.0, 0});
  OneNode mod("Mod");
  expectRun(mod.in(a).in(b), {6}, {1, 2, -2, -1, 0, 0});
  OneNode fmod("Mod");
  expectRun(fmod.attr("fmod", int64_t{1}).in(f32({3}, {7.5F, -7.5F, 7.5F})).in(f32({3}, {2, 2, -2})), {3},
            {1.5, -1.5, 1.5});
  OneNode wrap("Add");
  expectRun(wrap.in(ofType(DType::U8, {1}, {250})).in(ofType(DType::U8, {1}, {10})), {1}, {4});
  EXPECT_EQ(OneNode("Mod").type({DType::F32, {2}}).type({DType::F32, {2}}).inferred(),
            "attribute 'fmod': expected 1 for float32, got 0");
}

TEST(Binary, NaNTakesPartInExtrema) {
  OneNode max("Max");
  expectRun(max.in(f32({3}, {1, kNaN, 3})).in(f32({3}, {kNaN, 1, 2})), {3}, {kNaN, kNaN, 3});
  OneNode min("Min");
  expectRun(min.in(f32({2}, {1, 2})).in(f32({2}, {3, kNaN})), {2}, {1, kNaN});
  OneNode single("Min");
  expectRun(single.in(f32({2}, {1, 2})), {2}, {1, 2});
}

TEST(Binary, Shifts) {
  OneNode left("BitShift");
  expectRun(left.attr("direction", std::string("LEFT"))
                .in(ofType(DType::U8, {3}, {16, 4, 1}))
                .in(ofType(DType::U8, {3}, {1, 2, 8})),
            {3}, {32, 16, 0});
  EXPECT_EQ(OneNode("BitShift").type({DType::U8, {2}}).type({DType::U8, {2}}).inferred(),
            "attribute 'direction': expected one of LEFT, RIGHT, got \"\"");
}

TEST(Power, Floats) {
  for (float e : {0.F, 1.F, 2.F, 3.F, 4.F, -1.F, -2.F, 0.5F, -0.5F, 0.75F, 1.5F, 2.5F}) {
    const std::vector<float> x{0, -0.F, 0.25F, 3, -2, kInf, -kInf, kNaN};
    std::vector<double> want;
    for (float v : x) want.push_back(std::pow(v, e));
    OneNode constant("Pow"), data("Pow");
    SCOPED_TRACE(e);
    expectRun(constant.in(f32({8}, x)).constant(f32({}, {e})), {8}, want);
    expectRun(data.in(f32({8}, x)).in(f32({}, {e})), {8}, want);
  }
}

TEST(Power, Integers) {
  OneNode data("Pow");
  expectRun(data.in(i64({8}, {2, 3, -3, -1, 0, 1, 5, -1})).in(i64({8}, {62, 4, 3, 101, 0, -9, -2, -2})), {8},
            {4611686018427387904.0, 81, -27, -1, 1, 1, 0, 1});
  OneNode real("Pow");
  expectRun(real.in(i32({2}, {4, 9})).in(f32({}, {0.5F})), {2}, {2, 3});
  OneNode mixed("Pow");
  expectRun(mixed.in(f32({2}, {2, -3})).in(i64({2}, {-1, 3})), {2}, {0.5, -27});
}

TEST(Where, PicksEitherSide) {
  OneNode node("Where");
  expectRun(node.in(ofType(DType::Bool, {2, 1}, {1, 0})).in(f32({2}, {1, 2})).in(f32({}, {9})), {2, 2}, {1, 2, 9, 9});
}

TEST(Comparison, NaNIsNeverOrdered) {
  Tensor a = f32({4}, {1, 2, kNaN, 3}), b = f32({4}, {1, 3, 1, kNaN});
  const std::vector<std::pair<std::string, std::vector<double>>> cases{{"Equal", {1, 0, 0, 0}},
                                                                       {"Less", {0, 1, 0, 0}},
                                                                       {"LessOrEqual", {1, 1, 0, 0}},
                                                                       {"Greater", {0, 0, 0, 0}},
                                                                       {"GreaterOrEqual", {1, 0, 0, 0}}};
  for (const auto& [op, want] : cases) {
    OneNode node(op);
    SCOPED_TRACE(op);
    expectRun(node.in(a).in(b), {4}, want);
  }
  OneNode big("Less");
  expectRun(big.in(ofType(DType::U64, {1}, {1.8e19})).in(ofType(DType::U64, {1}, {1})), {1}, {0});
}

TEST(Cast, BetweenTypes) {
  auto cast = [](const Tensor& x, DType to) {
    OneNode node("Cast");
    auto got = node.attr("to", std::string(dtypeName(to))).in(x).run();
    EXPECT_TRUE(got.isOk()) << got.status().message();
    std::vector<double> out;
    for (int64_t i = 0; i < x.elements(); ++i) out.push_back(got->front().elementAsDouble(i));
    return out;
  };
  expectNear(cast(f32({5}, {1.9F, -1.9F, kNaN, 1e20F, 0}), DType::I32), {1, -1, 0, 2147483647, 0});
  expectNear(cast(f32({3}, {0, kNaN, -0.5F}), DType::Bool), {0, 1, 1});
  expectNear(cast(i32({2}, {200, -1}), DType::I8), {-56, -1});
  expectNear(cast(f32({2}, {1e6F, 2049}), DType::F16), {kInf, 2048});
  expectNear(cast(f32({2}, {7.6F, -9}), DType::I4), {7, 7});
  expectNear(cast(f32({3}, {500, -kInf, kNaN}), DType::F8E4M3FN), {448, -448, kNaN});
  expectNear(cast(f32({3}, {1, 3, kInf}), DType::F8E8M0), {1, 4, std::ldexp(1.0, 127)});
  OneNode wild("Cast");
  expectRun(wild.attr("to", int64_t{19}).attr("saturate", int64_t{0}).in(f32({4}, {1e6F, -61440, 57344, kNaN})), {4},
            {kInf, -kInf, 57344, kNaN});
  EXPECT_EQ(OneNode("Cast").attr("to", int64_t{99}).type({DType::F32, {2}}).inferred(),
            "attribute 'to': no element type has the number 99");
}

TEST(Cast, Bits) {
  OneNode node("BitCast");
  expectRun(node.attr("to", std::string("int32")).in(f32({2}, {1, -0.F})), {2}, {0x3f800000, -2147483648.0});
  EXPECT_EQ(OneNode("BitCast").attr("to", std::string("int64")).type({DType::F32, {2}}).inferred(),
            "attribute 'to': expected a type as wide as float32, got int64");
}

TEST(Quantise, RoundsToEvenAndSaturates) {
  OneNode tensor("QuantizeLinear");
  expectRun(tensor.in(f32({6}, {0, 1, 3, 1000, -254, -1000})).in(f32({}, {2})).in(ofType(DType::U8, {}, {128})), {6},
            {128, 128, 130, 255, 1, 0});
  OneNode axis("QuantizeLinear");
  expectRun(axis.attr("axis", int64_t{0})
                .in(f32({2, 2}, {1, -1, 1, -1}))
                .in(f32({2}, {0.5F, 0.01F}))
                .in(ofType(DType::I8, {2}, {1, 0})),
            {2, 2}, {3, -1, 100, -100});
  OneNode block("DequantizeLinear");
  expectRun(block.attr("axis", int64_t{1})
                .attr("block_size", int64_t{2})
                .in(ofType(DType::I4, {1, 3}, {-8, 7, 3}))
                .in(f32({1, 2}, {2, 10})),
            {1, 3}, {-16, 14, 30});
  OneNode zero("DequantizeLinear");
  expectRun(zero.in(ofType(DType::U8, {3}, {0, 128, 255})).in(f32({}, {0.5F})).in(ofType(DType::U8, {}, {128})), {3},
            {-64, 0, 63.5});
  EXPECT_EQ(OneNode("QuantizeLinear").type({DType::F32, {2, 3}}).type({DType::F32, {4}}).inferred(),
            "the scale's length and dimension 1 of the input: 4 and 3 differ");
}

TEST(Quantise, Dynamic) {
  OneNode node("DynamicQuantizeLinear");
  auto got = node.in(f32({6}, {0, 2, -3, -2.5F, 1.34F, 0.5F})).outputs(3).run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {6}, {153, 255, 0, 26, 221, 179});
  expectTensor((*got)[1], {}, {0.0196078438});
  expectTensor((*got)[2], {}, {153});
  EXPECT_EQ(OneNode("DynamicQuantizeLinear").type({DType::F64, {2}}).outputs(3).inferred(),
            "the input is float64, expected float32 or narrower");
  OneNode zeros("DynamicQuantizeLinear");
  expectRun(zeros.in(f32({2}, {0, 0})).outputs(3), {2}, {0, 0});
}

TEST(Dropout, IsIdentityInInference) {
  OneNode node("Dropout");
  auto got = node.in(f32({2}, {1, 2})).outputs(2).run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {2}, {1, 2});
  expectTensor((*got)[1], {2}, {1, 1});
  EXPECT_EQ(OneNode("Dropout").type({DType::F32, {2}}).absent().constant(ofType(DType::Bool, {}, {1})).inferred(),
            "input 2 (training_mode) is true: only inference is supported");
  OneNode nothing("Dropout");
  nothing.in(f32({2}, {1, 2})).constant(f32({}, {0})).constant(ofType(DType::Bool, {}, {1}));
  expectRun(nothing, {2}, {1, 2});
}

}  // namespace
}  // namespace locution::ops

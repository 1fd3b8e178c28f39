// The interpreter's semantics of every type and operator, its checks, and naive loops of small computations by hand.
#include "loop/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loop/build.h"
#include "loop/passes.h"
#include "loop/random_test.h"
#include "loop/scalar.h"

namespace locution::loop {
namespace {

/// The value of an expression without variables, by the interpreter: operands are loaded, so nothing folds before.
struct Evaluate {
  std::vector<BufferRef> inputs;
  std::vector<Tensor> tensors;

  Expr operand(DType type, double v) {
    Tensor t(type, {1});
    t.setElement(0, v);
    return operand(t);
  }
  Expr integer(DType type, int64_t v) {
    Tensor t(type, {1});
    t.setElementInt(0, v);
    return operand(t);
  }
  Expr operand(const Tensor& t) {
    inputs.push_back(makeBuffer("in" + std::to_string(inputs.size()), {t.dtype(), 1}, {1}));
    tensors.push_back(t);
    return load(inputs.back(), {index(0)});
  }
  Tensor result(const Expr& e, const InterpretOptions& options = {}) {
    Function f{"f", inputs, 1, nullptr};
    f.params.push_back(makeBuffer("out", e->type, {1}));
    f.body = store(f.params.back(), {index(0)}, e);
    std::vector<Tensor> all = tensors;
    all.emplace_back(e->type.dtype, std::vector<int64_t>{1});
    Status s = interpret(f, all, options);
    EXPECT_TRUE(s.isOk()) << s.message();
    return all.back();
  }
};

double floatOp(DType type, BinaryOp op, double a, double b) {
  Evaluate e;
  return e.result(binary(op, e.operand(type, a), e.operand(type, b))).elementAsDouble(0);
}
int64_t intOp(DType type, BinaryOp op, int64_t a, int64_t b) {
  Evaluate e;
  return e.result(binary(op, e.integer(type, a), e.integer(type, b))).elementAsInt(0);
}
double castOf(DType from, double v, DType to) {
  Evaluate e;
  return e.result(cast(to, e.operand(from, v))).elementAsDouble(0);
}

TEST(Interpreter, IntegersWrapAndDivisionNeverTraps) {
  EXPECT_EQ(intOp(DType::I8, BinaryOp::Add, 127, 1), -128);
  EXPECT_EQ(intOp(DType::U8, BinaryOp::Sub, 0, 1), 255);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Mul, 1 << 30, 4), 0);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::Add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Div, 7, 0), 0);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Mod, 7, 0), 0);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Div, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::FloorDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::FloorMod, INT64_MIN, -1), 0);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Div, -7, 2), -3);
  EXPECT_EQ(intOp(DType::I32, BinaryOp::Mod, -7, 2), -1);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::FloorDiv, -7, 2), -4);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::FloorMod, -7, 3), 2);
  EXPECT_EQ(intOp(DType::I64, BinaryOp::FloorMod, 7, -3), -2);
  EXPECT_EQ(intOp(DType::U64, BinaryOp::Div, -1, 2), INT64_MAX);
  EXPECT_EQ(intOp(DType::U64, BinaryOp::Max, -1, 2), -1);
  EXPECT_EQ(intOp(DType::I8, BinaryOp::Shl, 1, 7), -128);
  EXPECT_EQ(intOp(DType::I8, BinaryOp::Shl, 1, 8), 0);
  EXPECT_EQ(intOp(DType::I8, BinaryOp::Shr, -128, 100), -1);
  EXPECT_EQ(intOp(DType::U8, BinaryOp::Shr, 200, 8), 0);
  EXPECT_EQ(intOp(DType::U8, BinaryOp::Shr, 200, 3), 25);
}

TEST(Interpreter, FloatsRoundInTheirType) {
  EXPECT_EQ(floatOp(DType::F32, BinaryOp::Add, 16777216, 1), 16777216);
  EXPECT_EQ(floatOp(DType::F16, BinaryOp::Add, 2048, 1), 2048);
  EXPECT_EQ(floatOp(DType::F16, BinaryOp::Mul, 300, 300), INFINITY);
  EXPECT_EQ(floatOp(DType::BF16, BinaryOp::Add, 256, 1), 256);
  EXPECT_EQ(floatOp(DType::F64, BinaryOp::Add, 16777216, 1), 16777217);
  EXPECT_EQ(floatOp(DType::F8E4M3FN, BinaryOp::Mul, 400, 400), 448);
  EXPECT_EQ(floatOp(DType::F32, BinaryOp::Div, 1, 0), INFINITY);
  EXPECT_EQ(floatOp(DType::F32, BinaryOp::Mod, -7, 3), -1);
  EXPECT_EQ(floatOp(DType::F32, BinaryOp::FloorMod, -7, 3), 2);
  EXPECT_EQ(floatOp(DType::F32, BinaryOp::FloorDiv, -7, 2), -4);
  Evaluate e;
  EXPECT_EQ(
      e.result(call("fma", {e.operand(DType::F32, 1e8), e.operand(DType::F32, 1e8), e.operand(DType::F32, -1e16f)}))
          .elementAsDouble(0),
      std::fmaf(1e8f, 1e8f, -1e16f));
}

TEST(Interpreter, MinAndMaxHandNansOn) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (BinaryOp op : {BinaryOp::Min, BinaryOp::Max}) {
      EXPECT_TRUE(std::isnan(floatOp(type, op, NAN, 1)));
      EXPECT_TRUE(std::isnan(floatOp(type, op, 1, NAN)));
      EXPECT_EQ(floatOp(type, op, 1, 2), op == BinaryOp::Min ? 1 : 2);
    }
  Evaluate e;
  EXPECT_EQ(e.result(eq(e.operand(DType::F32, NAN), e.operand(DType::F32, NAN))).elementAsInt(0), 0);
  EXPECT_EQ(e.result(ne(e.operand(DType::F32, NAN), e.operand(DType::F32, NAN))).elementAsInt(0), 1);
  EXPECT_EQ(e.result(logicalNot(lt(e.operand(DType::F32, NAN), e.operand(DType::F32, 0)))).elementAsInt(0), 1);
}

TEST(Interpreter, CastsAreTotal) {
  EXPECT_EQ(castOf(DType::F32, 1e20, DType::I32), INT32_MAX);
  EXPECT_EQ(castOf(DType::F32, -1e20, DType::I8), -128);
  EXPECT_EQ(castOf(DType::F32, -3, DType::U8), 0);
  EXPECT_EQ(castOf(DType::F32, NAN, DType::I64), 0);
  EXPECT_EQ(castOf(DType::F32, -2.9, DType::I32), -2);
  EXPECT_EQ(castOf(DType::F32, 0.5, DType::Bool), 1);
  EXPECT_EQ(castOf(DType::F32, NAN, DType::Bool), 1);
  EXPECT_EQ(castOf(DType::I32, 300, DType::U8), 44);
  EXPECT_EQ(castOf(DType::I32, 256, DType::Bool), 1);
  EXPECT_EQ(castOf(DType::F32, 1e6, DType::F16), INFINITY);
  EXPECT_EQ(castOf(DType::U8, 200, DType::I8), -56);
  Evaluate e;
  EXPECT_EQ(e.result(cast(DType::F32, e.integer(DType::I64, (int64_t{1} << 24) + 1))).elementAsDouble(0), 16777216);
  // Just above the middle of two halves: rounding to float first would land on the middle.
  EXPECT_EQ(e.result(cast(DType::F16, e.operand(DType::F64, 1 + 0x1p-11 + 0x1p-40))).elementAsDouble(0), 1 + 0x1p-10);
  EXPECT_EQ(e.result(bitcast(DType::I32, e.operand(DType::F32, 1))).elementAsInt(0), 0x3f800000);
}

TEST(Interpreter, SubByteElementsArePacked) {
  BufferRef in = makeBuffer("in", {DType::I4, 1}, {5}), out = makeBuffer("out", {DType::U4, 1}, {5});
  VarRef i = makeVar("i");
  Function f{"f", {in, out}, 1, nullptr};
  f.body = forLoop(i, index(0), index(5), LoopKind::Serial,
                   store(out, {i}, cast(DType::U4, load(in, {i}) + constant(DType::I4, 1))));
  std::vector<Tensor> t{Tensor(DType::I4, {5}), Tensor(DType::U4, {5})};
  for (int k = 0; k < 5; ++k) t[0].setElementInt(k, k * 3 - 8);  // -8 -5 -2 1 4
  ASSERT_TRUE(interpret(f, t).isOk());
  EXPECT_EQ(t[1].toInts(), (std::vector<int64_t>{9, 12, 15, 2, 5}));
}

TEST(Interpreter, ScalarSelectIsLazyAndIndicesAreChecked) {
  BufferRef in = makeBuffer("in", {DType::F32, 1}, {4}), out = makeBuffer("out", {DType::F32, 1}, {6});
  VarRef i = makeVar("i");
  Expr I = i;
  auto run = [&](const Expr& value, int64_t maxSteps = -1) {
    Function f{"f", {in, out}, 1, forLoop(i, index(0), index(6), LoopKind::Serial, store(out, {I}, value))};
    std::vector<Tensor> t{Tensor::of<float>(DType::F32, {4}, {1, 2, 3, 4}), Tensor(DType::F32, {6})};
    Status s = interpret(f, t, {.maxSteps = maxSteps});
    return std::pair(s, t[1]);
  };
  auto [ok, padded] = run(select(lt(I, index(4)), load(in, {I}), constant(DType::F32, -1)));
  EXPECT_TRUE(ok.isOk()) << ok.message();
  EXPECT_TRUE(padded.identical(Tensor::of<float>(DType::F32, {6}, {1, 2, 3, 4, -1, -1})));
  EXPECT_EQ(run(load(in, {I})).first.message(), "function f: index 4 of dim 0 of buffer in is outside its extent 4");
  EXPECT_FALSE(run(load(in, {I - 1})).first.isOk());
  EXPECT_TRUE(run(constant(DType::F32, 1), 6).first.isOk());
  EXPECT_EQ(run(constant(DType::F32, 1), 5).first.message(), "function f: more stores than allowed");
}

TEST(Interpreter, ParametersMustFitTheirBuffers) {
  BufferRef out = makeBuffer("out", {DType::F32, 1}, {2, 3});
  Function f{"f", {out}, 1, block({})};
  std::vector<Tensor> none, wrongType{Tensor(DType::F64, {2, 3})}, wrongDims{Tensor(DType::F32, {3, 2})};
  EXPECT_FALSE(interpret(f, none).isOk());
  EXPECT_EQ(interpret(f, wrongType).message(), "tensor 0 is float64[2x3], but buffer out is float32[2x3]");
  EXPECT_FALSE(interpret(f, wrongDims).isOk());
}

TEST(Interpreter, VectorsMasksAndReductions) {
  BufferRef in = makeBuffer("in", {DType::F32, 1}, {4, 6}), out = makeBuffer("out", {DType::F32, 1}, {8});
  Expr lanes = ramp(index(0), index(1), 8);
  Expr column = load(in, {lanes, index(1)}, lt(lanes, broadcast(index(4), 8)));
  Function f{"f", {in, out}, 1, nullptr};
  f.body = block({store(out, {lanes}, column),
                  store(out, {ramp(index(7), index(-7), 2)}, broadcast(vectorReduce(BinaryOp::Add, column), 2),
                        ne(ramp(index(0), index(1), 2), broadcast(index(1), 2)))});
  std::vector<Tensor> t{Tensor(DType::F32, {4, 6}), Tensor(DType::F32, {8})};
  for (int k = 0; k < 24; ++k) t[0].setElement(k, k);
  ASSERT_TRUE(interpret(f, t).isOk()) << interpret(f, t).message();
  EXPECT_TRUE(t[1].identical(Tensor::of<float>(DType::F32, {8}, {1, 7, 13, 19, 0, 0, 0, 40})));
}

TEST(Interpreter, Float64KeepsTemporariesInDouble) {
  BufferRef out = makeBuffer("out", {DType::F32, 1}, {1}),
            acc = makeBuffer("acc", {DType::F32, 1}, {1}, Scope::Register);
  VarRef i = makeVar("i");
  std::vector<Expr> at{index(0)};
  Stmt sum =
      forLoop(i, index(0), index(1000), LoopKind::Serial, store(acc, at, load(acc, at) + constant(DType::F32, 1)));
  Function f{
      "f",
      {out},
      1,
      allocate(acc, block({store(acc, at, constant(DType::F32, 16777216)), sum, store(out, at, load(acc, at))}))};
  std::vector<Tensor> t{Tensor(DType::F32, {1})};
  ASSERT_TRUE(interpret(f, t).isOk());
  EXPECT_EQ(t[0].data<float>()[0], 16777216.0f);
  ASSERT_TRUE(interpret(f, t, {.float64 = true}).isOk());
  EXPECT_EQ(t[0].data<float>()[0], 16777216.0f + 1000);
}

// The makers fold by the same semantics that the interpreter runs.
TEST(Interpreter, FoldingAgreesWithRunning) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    testing::Random r(seed);
    DType type = r.pick<DType>({DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I32,
                                DType::U32, DType::I64, DType::U64});
    auto op = static_cast<BinaryOp>(r.in(0, static_cast<int64_t>(BinaryOp::Le)));
    bool bits = op >= BinaryOp::And && op <= BinaryOp::Shr;
    if (bits && isFloat(type)) continue;
    auto value = [&]() -> Expr {
      if (isFloat(type))
        return floatImm(type,
                        r.pick<double>({0.0, -0.0, 1, -1.5, 3, 1e30, 1e-30, INFINITY, NAN, double(r.in(-99, 99)) / 7}));
      return intImm(type, r.chance(50)
                              ? r.in(-3, 70)
                              : static_cast<int64_t>(static_cast<uint64_t>(r.in(INT64_MIN / 2, INT64_MAX / 2)) * 2));
    };
    Expr a = value(), b = value(), folded = binary(op, a, b);
    Evaluate e;
    auto loaded = [&](const Expr& c) {
      auto* i = as<IntImm>(c);
      return i ? e.integer(type, i->value) : e.operand(type, as<FloatImm>(c)->value);
    };
    Expr x = loaded(a), y = loaded(b);
    std::vector<Expr> forms{binary(op, x, y), binary(op, x, b), binary(op, a, y)};
    for (const Expr& form : forms) {
      Tensor t = e.result(form);
      if (auto* i = as<IntImm>(folded))
        ASSERT_EQ(t.elementAsInt(0), i->value) << print(a) << ' ' << print(b) << print(form);
      else
        ASSERT_TRUE(t.elementAsDouble(0) == as<FloatImm>(folded)->value || std::isnan(t.elementAsDouble(0)))
            << print(form);
    }
  }
}

}  // namespace
}  // namespace locution::loop

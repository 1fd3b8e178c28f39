// Properties of whole kernels: accuracy of vector functions, NaN in tails, determinism, in-place use, errors.
#include <bit>
#include <cmath>
#include <thread>

#include "codegen/expand_math.h"
#include "loop/passes.h"
#include "targets/cpu/blob.h"
#include "targets/cpu/kernel_test_util.h"

namespace locution::targets::cpu {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::LoopKind;

/// out[i] = make(in[i]) on vectors of the target's width.
loop::Function elementwise(const TargetSpec& target, DType type, int64_t count, const std::function<Expr(Expr)>& make) {
  VectorLoop l(count, target.lanes(dtypeBits(type) / 8));
  auto in = loop::makeBuffer("in", {type, 1}, {count});
  auto out = loop::makeBuffer("out", {type, 1}, {count});
  loop::Function f;
  f.name = "elementwise";
  f.params = {in, out};
  f.outputCount = 1;
  f.body = l.over(loop::store(out, {l.at}, make(loop::load(in, {l.at}, l.mask)), l.mask));
  return f;
}

double ulpsBetween(float actual, double exact) {
  if (std::isnan(exact) || std::isnan(actual)) return std::isnan(exact) == std::isnan(actual) ? 0 : INFINITY;
  auto rounded = static_cast<float>(exact);
  if (std::isinf(actual) || std::isinf(rounded)) return actual == rounded ? 0 : 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (exact == 0 || exponent < -125) exponent = -125;
  return std::fabs(actual - exact) / std::ldexp(1.0, exponent - 24);
}

TEST(Kernels, VectorFunctionsAreAccurate) {
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"exp", std::exp},
      {"log", std::log},
      {"tanh", std::tanh},
      {"erf", std::erf},
      {"sigmoid", [](double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }}};
  constexpr uint64_t kStride = 8209;
  constexpr auto kCount = static_cast<int64_t>((uint64_t{1} << 32) / kStride + 1);
  Tensor x(DType::F32, {kCount});
  for (int64_t i = 0; i < kCount; ++i)
    x.data<float>()[i] = std::bit_cast<float>(static_cast<uint32_t>(static_cast<uint64_t>(i) * kStride));
  const float special[] = {0.0F,    -0.0F,    INFINITY, -INFINITY,       NAN,   88.7228F, 88.73F,
                           -103.9F, -103.98F, 1e-45F,   1.17549435e-38F, 0.625F};
  std::copy(std::begin(special), std::end(special), x.data<float>());
  for (const TargetSpec& target : runnableTargets()) {
    for (const auto& [name, exact] : functions) {
      std::vector<Tensor> params = {x, Tensor(DType::F32, {kCount})};
      std::string function = name;
      ASSERT_TRUE(runKernel(
          target, elementwise(target, DType::F32, kCount, [&](Expr v) { return loop::call(function, {v}); }), params));
      double worst = 0;
      float where = 0;
      for (int64_t i = 0; i < kCount; ++i) {
        double gap = ulpsBetween(params[1].data<float>()[i], exact(static_cast<double>(x.data<float>()[i])));
        if (gap > worst) {
          worst = gap;
          where = x.data<float>()[i];
        }
      }
      EXPECT_LE(worst, function == "erf" ? 5 : 4) << target.cpu << " " << name << "(" << where << ")";
    }
  }
}

// The largest of the first `length` of 64 elements, by vectors with a masked tail.
loop::Function largest(const TargetSpec& target, int64_t length) {
  int lanes = target.lanes(4);
  auto in = loop::makeBuffer("in", {DType::F32, 1}, {64});
  auto out = loop::makeBuffer("out", {DType::F32, 1}, {1});
  auto acc = loop::makeBuffer("acc", {DType::F32, lanes}, {1}, loop::Scope::Register);
  VectorLoop l(length, lanes);
  Expr lowest = loop::broadcast(loop::floatImm(DType::F32, -INFINITY), lanes);
  Expr zero = loop::index(0);
  Expr value = loop::load(in, {l.at}, l.mask);
  if (l.mask) value = loop::select(l.mask, value, lowest);
  loop::Function f;
  f.name = "largest";
  f.params = {in, out};
  f.outputCount = 1;
  loop::Stmt loop = l.over(loop::store(acc, {zero}, loop::maxOf(loop::load(acc, {zero}), value)));
  loop::Stmt end = loop::store(out, {zero}, loop::vectorReduce(BinaryOp::Max, loop::load(acc, {zero})));
  f.body = loop::allocate(acc, loop::block({loop::store(acc, {zero}, lowest), loop, end}));
  return f;
}

TEST(Kernels, NanReachesTheMaximumAndTailsDont) {
  for (const TargetSpec& target : runnableTargets()) {
    for (int64_t length : {1, 3, 16, 17, 31, 40, 63}) {
      CompiledKernel kernel(target, largest(target, length));
      ASSERT_TRUE(kernel.isValid());
      for (int64_t nanAt = 0; nanAt < 64; nanAt += 5) {
        std::vector<Tensor> params = {Tensor(DType::F32, {64}), Tensor(DType::F32, {1})};
        for (int64_t i = 0; i < 64; ++i) params[0].data<float>()[i] = static_cast<float>(i);
        params[0].data<float>()[nanAt] = NAN;
        kernel.run(params);
        float result = params[1].data<float>()[0];
        if (nanAt < length) {
          EXPECT_TRUE(std::isnan(result)) << target.cpu << " " << length << " " << nanAt;
        } else {
          EXPECT_EQ(result, static_cast<float>(length - 1)) << target.cpu << " " << nanAt;
        }
      }
    }
  }
}

TEST(Kernels, LargestOfAnyNumberOfLanes) {
  for (const TargetSpec& target : runnableTargets()) {
    for (int lanes : {3, 5, 6, 7, 12}) {
      auto in = loop::makeBuffer("in", {DType::I32, 1}, {16}), out = loop::makeBuffer("out", {DType::I32, 1}, {1});
      Expr row = loop::load(in, {loop::ramp(loop::index(0), loop::index(1), lanes)});
      loop::Function f{
          "largest", {in, out}, 1, loop::store(out, {loop::index(0)}, loop::vectorReduce(BinaryOp::Max, row))};
      CompiledKernel kernel(target, f);
      ASSERT_TRUE(kernel.isValid());
      for (int at = 0; at < lanes; ++at) {
        std::vector<Tensor> params = {Tensor(DType::I32, {16}), Tensor(DType::I32, {1})};
        params[0].setElementInt(at, 9);
        params[0].setElementInt(lanes, 10);  // beyond the lanes
        kernel.run(params);
        EXPECT_EQ(params[1].elementAsInt(0), 9) << target.cpu << " " << lanes << " " << at;
      }
    }
  }
}

TEST(Kernels, ConstantInfinityOfAnEightBitFloat) {
  for (const TargetSpec& target : runnableTargets()) {
    auto out = loop::makeBuffer("out", {DType::F8E5M2, 1}, {1});
    Expr infinity = loop::bitcast(DType::F8E5M2, loop::intImm(DType::U8, 0x7c));
    loop::Function f{"infinity", {out}, 1, loop::store(out, {loop::index(0)}, infinity)};
    std::vector<Tensor> params = {Tensor(DType::F8E5M2, {1})};
    ASSERT_TRUE(runKernel(target, f, params));
    EXPECT_EQ(params[0].elementBits(0), 0x7cu) << target.cpu;
  }
}

TEST(Kernels, OutputMayLieOnAnInputOfItsSize) {
  for (const TargetSpec& target : runnableTargets()) {
    loop::Function f = elementwise(target, DType::F32, 100, [](Expr v) { return v * v + v; });
    Tensor both(DType::F32, {100});
    for (int64_t i = 0; i < 100; ++i) both.data<float>()[i] = static_cast<float>(i);
    std::vector<Tensor> params = {both, both};
    ASSERT_TRUE(runKernel(target, f, params));
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(both.data<float>()[i], static_cast<float>(i * i + i));
  }
}

TEST(Kernels, SameBytesOnEveryThread) {
  for (const TargetSpec& target : runnableTargets()) {
    auto compiler = makeKernelCompiler(target);
    loop::Function f =
        elementwise(target, DType::F32, 1000, [](Expr v) { return loop::call("exp", {v}) + loop::call("erf", {v}); });
    auto first = compiler->compile(f);
    ASSERT_TRUE(first);
    std::vector<std::vector<std::byte>> bytes(3);
    std::vector<std::thread> threads;
    for (auto& b : bytes) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i) b = compiler->compile(f)->bytes;
      });
    }
    for (auto& t : threads) t.join();
    for (const auto& b : bytes) EXPECT_EQ(b, first->bytes);
  }
}

TEST(Kernels, PackedInputs) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType type : {DType::I4, DType::U4, DType::I2, DType::U2}) {
      for (int lanes : {1, 8}) {
        constexpr int64_t kElements = 40;
        VectorLoop l(kElements, lanes);
        auto in = loop::makeBuffer("in", {type, 1}, {kElements});
        auto out = loop::makeBuffer("out", {DType::F32, 1}, {kElements});
        loop::Function f;
        f.name = "unpack";
        f.params = {in, out};
        f.outputCount = 1;
        f.body = l.over(loop::store(out, {l.at}, loop::cast(DType::F32, loop::load(in, {l.at}))));
        std::vector<Tensor> params = {Tensor(type, {kElements}), Tensor(DType::F32, {kElements})};
        for (int64_t i = 0; i < kElements; ++i) params[0].setElementInt(i, loop::wrapInt(type, i * 7));
        ASSERT_TRUE(runKernel(target, f, params));
        for (int64_t i = 0; i < kElements; ++i) {
          EXPECT_EQ(params[1].data<float>()[i], static_cast<float>(loop::wrapInt(type, i * 7)))
              << dtypeName(type) << " " << i;
        }
      }
    }
  }
}

// Lanes that a mask leaves out may lie outside the buffer.
TEST(Kernels, PackedInputsUnderAMask) {
  using namespace loop;  // NOLINT: about loop IR
  for (const TargetSpec& target : runnableTargets()) {
    auto in = makeBuffer("in", {DType::I4, 1}, {6}), out = makeBuffer("out", {DType::I8, 1}, {8});
    VarRef i = makeVar("i");
    Stmt body =
        forLoop(i, loop::index(0), loop::index(8), LoopKind::Vector,
                store(out, {i}, cast(DType::I8, select(lt(i, loop::index(6)), load(in, {i}), intImm(DType::I4, 0)))));
    Function f{"masked", {in, out}, 1, vectorise(body), 1};
    Tensor values(DType::I4, {6});
    for (int64_t k = 0; k < 6; ++k) values.setElementInt(k, k - 3);
    std::vector<Tensor> params{values, Tensor(DType::I8, {8})};
    ASSERT_TRUE(runKernel(target, f, params));
    for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(params[1].elementAsInt(k), k < 6 ? k - 3 : 0) << target.cpu;
  }
}

TEST(Kernels, RegisterBufferIndexedAtRunTime) {
  TargetSpec target = runnableTargets().front();
  auto out = loop::makeBuffer("out", {DType::I32, 1}, {10});
  auto acc = loop::makeBuffer("acc", {DType::I32, 1}, {10}, loop::Scope::Register);
  auto i = loop::makeVar("i");
  auto all = [&](loop::Stmt s) {
    return loop::forLoop(i, loop::index(0), loop::index(10), LoopKind::Serial, std::move(s));
  };
  loop::Function f;
  f.name = "spilled";
  f.params = {out};
  f.outputCount = 1;
  f.body = loop::allocate(acc, loop::block({all(loop::store(acc, {i}, loop::cast(DType::I32, i))),
                                            all(loop::store(out, {i}, loop::load(acc, {loop::index(9) - Expr(i)})))}));
  std::vector<Tensor> params = {Tensor(DType::I32, {10})};
  ASSERT_TRUE(runKernel(target, f, params));
  for (int64_t k = 0; k < 10; ++k) EXPECT_EQ(params[0].data<int32_t>()[k], 9 - k);
}

// out[a, b] = in[b, a] + row[b], square tiles in unrolled copies, which load and shuffle whole rows.
TEST(Kernels, TransposesInRegisters) {
  for (const TargetSpec& target : runnableTargets()) {
    for (int64_t side : {4, 8, 16}) {
      int lanes = target.lanes(4);
      int64_t width = 3 * lanes, height = 2 * side, stride = height + 5;
      for (DType type : {DType::F32, DType::I32, DType::F64}) {
        auto in = loop::makeBuffer("in", {type, 1}, {width, stride});
        auto row = loop::makeBuffer("row", {type, 1}, {width});
        auto out = loop::makeBuffer("out", {type, 1}, {height, width});
        auto a = loop::makeVar("a"), b = loop::makeVar("b"), k = loop::makeVar("k");
        Expr y = Expr(a) * side + Expr(k), x = loop::ramp(Expr(b) * lanes, loop::index(1), lanes);
        loop::Stmt body = loop::store(out, {y, x}, loop::load(in, {x, y + 2}) + loop::load(row, {x}));
        body = loop::forLoop(k, loop::index(0), loop::index(side), LoopKind::Unrolled, body);
        body = loop::forLoop(b, loop::index(0), loop::index(3), LoopKind::Serial, body);
        loop::Function f{
            "transposed", {in, row, out}, 1, loop::forLoop(a, loop::index(0), loop::index(2), LoopKind::Serial, body)};
        std::vector<Tensor> params = {Tensor(type, {width, stride}), Tensor(type, {width}),
                                      Tensor(type, {height, width})};
        for (int64_t i = 0; i < width * stride; ++i) params[0].setElement(i, static_cast<double>(i));
        for (int64_t i = 0; i < width; ++i) params[1].setElement(i, static_cast<double>(1000 * i));
        ASSERT_TRUE(runKernel(target, f, params));
        for (int64_t i = 0; i < height * width; ++i) {
          int64_t r = i / width, c = i % width;
          ASSERT_EQ(params[2].elementAsDouble(i), static_cast<double>(c * stride + r + 2 + 1000 * c))
              << target.cpu << " " << dtypeName(type) << " " << side << " at " << r << ", " << c;
        }
      }
    }
  }
}

TEST(Kernels, ErrorsNameKernelAndCause) {
  TargetSpec target = runnableTargets().front();
  auto compiler = makeKernelCompiler(target);
  auto out = loop::makeBuffer("out", {DType::F32, 1}, {10});
  auto i = loop::makeVar("i");
  loop::Function f;
  f.name = "conv_3";
  f.params = {out};
  f.outputCount = 1;
  f.body = loop::forLoop(i, loop::index(0), loop::index(10), LoopKind::Vector,
                         loop::store(out, {i}, loop::floatImm(DType::F32, 1)));
  EXPECT_EQ(compiler->compile(f).status().message(), "kernel conv_3: vector loop over i reached code generation");

  auto big = loop::makeBuffer("tmp", {DType::F32, 1}, {1 << 20}, loop::Scope::Stack);
  f.body = loop::allocate(big, loop::store(out, {loop::index(0)}, loop::load(big, {loop::index(0)})));
  EXPECT_EQ(compiler->compile(f).status().message(),
            "kernel conv_3: buffer tmp of 4194304 bytes does not fit on the stack");
  EXPECT_EQ(compiler->show(f, "ptx").status().message(), "no stage ptx of code generation; there are llvm and asm");
}

TEST(Kernels, ShowsIrAndAssembly) {
  TargetSpec target = runnableTargets().front();
  auto compiler = makeKernelCompiler(target);
  loop::Function f = elementwise(target, DType::F32, 64, [](Expr v) { return v * v; });
  auto ir = compiler->show(f, "llvm");
  auto text = compiler->show(f, "asm");
  ASSERT_TRUE(ir && text);
  EXPECT_NE(ir->find("define i32 @kernel"), std::string::npos);
  EXPECT_NE(text->find("mulps"), std::string::npos);
}

TEST(Kernels, TailsAreMaskedInstructions) {
  for (const auto& [cpu, instruction] : {std::pair("x86-64-v3", "vmaskmovps"), {"x86-64-v4", "{%k1} {z}"}}) {
    auto target = makeTarget("", cpu, 1);
    ASSERT_TRUE(target);
    auto text =
        makeKernelCompiler(*target)->show(elementwise(*target, DType::F32, 1003, [](Expr v) { return v + v; }), "asm");
    ASSERT_TRUE(text);
    EXPECT_NE(text->find(instruction), std::string::npos) << *text;
  }
}

TEST(Kernels, ConstantsAreMadeAheadOfLoops) {
  auto target = makeTarget("", "x86-64-v3", 1);
  ASSERT_TRUE(target);
  loop::Function f = elementwise(*target, DType::F32, 1024, [](Expr v) { return loop::call("erf", {v}); });
  auto text = makeKernelCompiler(*target)->show(f, "asm");
  ASSERT_TRUE(text);
  size_t inLoop = text->find("vdivps");
  ASSERT_NE(inLoop, std::string::npos) << *text;
  EXPECT_EQ(text->find("vbroadcastss", inLoop), std::string::npos) << *text;
}

TEST(Blob, RefusesWhatIsNoObject) {
  std::vector<std::byte> zeros(200);
  EXPECT_EQ(linkBlob(zeros, "kernel").status().message(), "not an ELF object");
  EXPECT_EQ(linkBlob({}, "kernel").status().message(), "not an ELF object");
}

}  // namespace
}  // namespace locution::targets::cpu

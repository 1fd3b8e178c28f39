// Random loop nests against the interpreter. Values are small integers, also in float32, so that results are exact whatever is
// contracted to multiply-adds.
#include <functional>

#include "loop/interpreter.h"
#include "loop/passes.h"
#include "targets/cpu/kernel_test_util.h"

namespace locution::targets::cpu {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::LoopKind;

Tensor smallIntegers(const loop::Buffer& buffer, std::mt19937_64& random, int64_t low, int64_t high) {
  Tensor t(buffer.element.dtype, loop::extents(buffer));
  for (int64_t i = 0; i < t.elements(); ++i)
    t.setElementInt(i, low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1)));
  return t;
}

/// out[i, j] = a random expression of inputs around (i, j), for i in parallel and j in vectors.
class RandomNest {
 public:
  RandomNest(uint64_t seed, DType type, int lanes) : random_(seed), type_(type), lanes_(lanes) {
    rows_ = 1 + pick(4);
    columns_ = pick(3) == 0 ? lanes * (1 + pick(3)) : 1 + pick(4 * lanes);
    steps_ = (columns_ + lanes - 1) / lanes;
    Expr start = Expr(j_) * lanes;
    at_ = lanes == 1 ? start : loop::ramp(start, loop::index(1), lanes);
    if (columns_ % lanes != 0 && lanes > 1) mask_ = loop::lt(at_, loop::broadcast(loop::index(columns_), lanes));
  }

  loop::Function make() {
    auto out = loop::makeBuffer("out", {type_, 1}, {rows_, columns_});
    auto wide = loop::makeBuffer("wide", {type_, 1}, {columns_ * 3, rows_});
    Expr value = expression(3);
    loop::Stmt first = pick(2) ? reduction(out, value) : loop::store(out, {i_, at_}, value, mask_);
    loop::Stmt second = loop::store(wide, {at_ * 3 + loop::index(pick(3)), i_}, expression(1), mask_);
    auto kind = pick(2) && steps_ < 6 ? LoopKind::Unrolled : LoopKind::Serial;
    loop::Stmt row = loop::forLoop(j_, loop::index(0), loop::index(steps_), kind, loop::block({first, second}));
    if (pick(3) == 0) row = loop::ifThen(loop::ne(i_, loop::index(1)), row, zeroRow(out));
    row = loop::letStmt(row_, Expr(i_) * 2 + 1, row);
    // The loop starts elsewhere than at 0; the caller's range is relative.
    int64_t start = pick(3);
    loop::Substitution shift = {{i_.get(), Expr(outer_) - start}};
    loop::Function f;
    f.name = "random";
    f.params = inputs_;
    f.params.push_back(out);
    f.params.push_back(wide);
    f.outputCount = 2;
    f.body =
        loop::forLoop(outer_, loop::index(start), loop::index(rows_), LoopKind::Parallel, loop::substitute(row, shift));
    f.parallelExtent = rows_;
    return f;
  }

  std::vector<Tensor> tensors(const loop::Function& f) {
    std::vector<Tensor> out;
    for (size_t i = 0; i < f.params.size(); ++i) {
      bool isIndex = f.params[i]->element.dtype == DType::I64 && f.params[i]->name == "where";
      out.push_back(isIndex ? smallIntegers(*f.params[i], random_, 0, columns_ - 1)
                            : smallIntegers(*f.params[i], random_, -4, 4));
    }
    return out;
  }

 private:
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Expr number(int64_t v) { return loop::broadcast(loop::constant(type_, static_cast<double>(v)), lanes_); }
  loop::BufferRef input(const char* name, DType type, const std::vector<int64_t>& dims) {
    inputs_.push_back(loop::makeBuffer(name, {type, 1}, dims));
    return inputs_.back();
  }

  Expr leaf() {
    switch (pick(10)) {
      case 0:
        return number(pick(5) - 2);
      case 1:
        return loop::load(input("rows", type_, {rows_, columns_}), {i_, at_}, mask_);
      case 2: {
        static constexpr int64_t kSteps[] = {2, 3, 4, 5, 9};
        int64_t step = kSteps[pick(5)];
        return loop::load(input("strided", type_, {rows_, columns_ * step}), {i_, at_ * step + pick(step)}, mask_);
      }
      case 3: {
        int64_t step = 1 + pick(5);
        Expr last = loop::broadcast(loop::index(columns_ * step - 1), lanes_);
        return loop::load(input("reversed", type_, {columns_ * step}), {last - at_ * step}, mask_);
      }
      case 4:
        return loop::load(input("transposed", type_, {columns_, rows_}), {at_, i_}, mask_);
      case 5: {
        Expr where = loop::load(input("where", DType::I64, {columns_}), {at_}, mask_);
        return loop::load(input("gathered", type_, {rows_, columns_}), {i_, where}, mask_);
      }
      case 6:
        return loop::load(input("repeated", type_, {columns_}),
                          {loop::floorDiv(at_, loop::broadcast(loop::index(3), lanes_))}, mask_);
      case 7:
        return loop::broadcast(loop::load(input("scalar", type_, {rows_}), {i_}), lanes_);
      case 8:
        return loop::cast(type_, loop::cast(DType::I32, at_ - loop::broadcast(row_, lanes_)));
      default: {
        // Read only where it exists.
        auto edge = input("edge", type_, {rows_});
        Expr before = Expr(i_) - 1;
        Expr guarded =
            loop::select(loop::le(loop::index(0), before), loop::load(edge, {before}), loop::constant(type_, 2));
        return loop::broadcast(guarded, lanes_);
      }
    }
  }

  Expr expression(int depth) {
    if (depth == 0) return leaf();
    Expr a = expression(depth - 1);
    switch (pick(8)) {
      case 0:
        return a + expression(depth - 1);
      case 1:
        return a - expression(depth - 1);
      case 2:
        return loop::minOf(a, number(9)) * loop::maxOf(expression(depth - 1), number(-9));
      case 3:
        return loop::maxOf(a, expression(depth - 1));
      case 4:
        return loop::select(loop::lt(a, expression(depth - 1)), a, number(pick(7)));
      case 5: {
        auto twice = loop::makeVar("twice", a->type);
        return loop::let(twice, a + a, loop::minOf(twice, number(8)) - Expr(twice));
      }
      case 6:
        return loop::cast(type_, loop::cast(DType::I16, a));
      default: {
        Expr inBounds = loop::le(loop::broadcast(loop::index(2), lanes_), at_);
        return loop::select(loop::logicalAnd(inBounds, loop::ne(a, number(0))), a, expression(depth - 1));
      }
    }
  }

  /// A register tile summed over k, through a stack buffer, into out.
  loop::Stmt reduction(const loop::BufferRef& out, const Expr& value) {
    auto acc = loop::makeBuffer("acc", {type_, lanes_}, {2}, loop::Scope::Register);
    auto stack = loop::makeBuffer("stack", {type_, lanes_}, {2}, loop::Scope::Stack);
    auto k = loop::makeVar("k");
    auto t = loop::makeVar("t");
    auto tile = [&](loop::Stmt s) {
      return loop::forLoop(t, loop::index(0), loop::index(2), LoopKind::Unrolled, std::move(s));
    };
    Expr weight = loop::broadcast(loop::load(input("weights", type_, {5, 2}), {k, t}), lanes_);
    loop::Stmt init = tile(loop::store(acc, {t}, number(1)));
    loop::Stmt step = tile(loop::store(acc, {t}, loop::load(acc, {t}) + weight * value));
    loop::Stmt sum = loop::forLoop(k, loop::index(0), loop::index(5), LoopKind::Serial, step);
    loop::Stmt spill = tile(loop::store(stack, {t}, loop::load(acc, {t})));
    Expr total = loop::load(stack, {loop::index(0)}) - loop::load(stack, {loop::index(1)});
    Expr lanesSum = loop::broadcast(loop::vectorReduce(BinaryOp::Max, loop::load(stack, {loop::index(1)})), lanes_);
    loop::Stmt end = loop::store(out, {i_, at_}, total + lanesSum, mask_);
    return loop::allocate(acc, loop::allocate(stack, loop::block({init, sum, spill, end})));
  }

  loop::Stmt zeroRow(const loop::BufferRef& out) {
    auto z = loop::makeVar("z");
    return loop::forLoop(z, loop::index(0), loop::index(columns_), LoopKind::Serial,
                         loop::store(out, {i_, z}, loop::constant(type_, 0)));
  }

  std::mt19937_64 random_;
  DType type_;
  int lanes_;
  int64_t rows_, columns_, steps_;
  loop::VarRef i_ = loop::makeVar("i"), j_ = loop::makeVar("j"), row_ = loop::makeVar("row"),
               outer_ = loop::makeVar("outer");
  Expr at_, mask_;
  std::vector<loop::BufferRef> inputs_;
};

TEST(Loops, RandomNests) {
  for (const TargetSpec& target : runnableTargets()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      static constexpr DType kTypes[] = {DType::F32, DType::I32, DType::F64, DType::I64,
                                         DType::I8,  DType::F16, DType::U16};
      DType type = kTypes[seed % 7];
      static constexpr int kDivisors[] = {1, 1, 2, 100};
      int lanes = std::max(1, std::min(16, target.lanes(dtypeBits(type) / 8)) / kDivisors[seed / 7 % 4]);
      RandomNest nest(seed, type, lanes);
      loop::Function f = nest.make();
      auto params = nest.tensors(f);
      auto expected = params;
      Status status = loop::interpret(f, expected);
      ASSERT_TRUE(status) << status.message() << "\n" << loop::print(f);
      if (!runKernel(target, f, params, 1 + static_cast<int64_t>(seed % 3))) {
        ADD_FAILURE() << loop::print(f);
        return;
      }
      for (size_t i = params.size() - 2; i < params.size(); ++i) {
        for (int64_t at = 0; at < params[i].elements(); ++at) {
          if (sameWord(type, wordAt(expected[i], at), wordAt(params[i], at), false)) continue;
          ADD_FAILURE() << target.cpu << " seed " << seed << ": " << f.params[i]->name << "[" << at << "] is "
                        << params[i].elementAsDouble(at) << ", not " << expected[i].elementAsDouble(at) << "\n"
                        << loop::print(f);
          return;
        }
      }
    }
  }
}

// Comparisons of ramps, which become masks of the first lanes, for every position of the edge.
TEST(Loops, RampComparisons) {
  for (const TargetSpec& target : runnableTargets()) {
    for (int lanes : {4, 16, 32}) {
      auto edge = loop::makeBuffer("edge", {DType::I64, 1}, {1});
      loop::Function f;
      f.name = "compare";
      f.params = {edge};
      std::vector<loop::Stmt> stores;
      std::vector<std::function<bool(int64_t, int64_t)>> expected;
      Expr at = loop::load(edge, {loop::index(0)});
      for (int64_t step : {1, -1, 0, 2}) {
        for (bool orEqual : {false, true}) {
          for (bool swapped : {false, true}) {
            // Hidden from the makers of expressions, which would fold or turn the comparison around.
            Expr ramp = std::make_shared<loop::Ramp>(loop::index(3), loop::index(step), lanes);
            Expr scalar = std::make_shared<loop::Broadcast>(at, lanes);
            auto op = orEqual ? BinaryOp::Le : BinaryOp::Lt;
            Expr mask = std::make_shared<loop::Binary>(op, loop::Type{DType::Bool, lanes}, swapped ? scalar : ramp,
                                                       swapped ? ramp : scalar);
            auto out = loop::makeBuffer("out", {DType::Bool, 1}, {lanes});
            stores.push_back(loop::store(out, {loop::ramp(loop::index(0), loop::index(1), lanes)}, mask));
            f.params.push_back(out);
            expected.push_back([=](int64_t lane, int64_t e) {
              int64_t a = 3 + lane * step, b = e;
              if (swapped) std::swap(a, b);
              return orEqual ? a <= b : a < b;
            });
          }
        }
      }
      f.outputCount = stores.size();
      f.body = loop::block(stores);
      CompiledKernel kernel(target, f);
      ASSERT_TRUE(kernel.isValid());
      for (int64_t e : {-100, -30, -14, -13, -12, 0, 1, 2, 3, 4, 5, 17, 18, 19, 20, 34, 35, 36, 100}) {
        std::vector<Tensor> params = {Tensor::vectorI64({e})};
        for (size_t k = 0; k < expected.size(); ++k) params.emplace_back(DType::Bool, std::vector<int64_t>{lanes});
        kernel.run(params);
        for (size_t k = 0; k < expected.size(); ++k) {
          for (int64_t lane = 0; lane < lanes; ++lane) {
            EXPECT_EQ(params[k + 1].elementAsInt(lane) != 0, expected[k](lane, e))
                << target.cpu << " case " << k << " lane " << lane << " edge " << e;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace locution::targets::cpu

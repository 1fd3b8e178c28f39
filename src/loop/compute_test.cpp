// naiveLoops and countFlops on small computations worked out by hand.
#include "loop/compute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loop/interpreter.h"
#include "loop/passes.h"

namespace locution::loop {
namespace {

Computation computation(const std::string& name, std::vector<BufferRef> inputs, BufferRef output,
                        std::vector<Stage> stages) {
  Computation c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.outputs = {std::move(output)};
  c.stages = std::move(stages);
  return c;
}

Tensor run(const Computation& c, std::vector<Tensor> inputs) {
  Function f = naiveLoops(c);
  EXPECT_TRUE(verify(f).isOk()) << verify(f).message() << print(f);
  inputs.emplace_back(c.outputs[0]->element.dtype, extents(*c.outputs[0]));
  Status s = interpret(f, inputs);
  EXPECT_TRUE(s.isOk()) << s.message() << print(f);
  return inputs.back();
}

TEST(Compute, MatmulWithBiasAndRelu) {
  BufferRef a = makeBuffer("A", {DType::F32, 1}, {2, 3}), b = makeBuffer("B", {DType::F32, 1}, {3, 2}),
            bias = makeBuffer("bias", {DType::F32, 1}, {2});
  BufferRef c = makeBuffer("C", {DType::F32, 1}, {2, 2});
  VarRef i = makeVar("i"), j = makeVar("j"), k = makeVar("k"), acc = makeVar("acc", {DType::F32, 1});
  Stage s{.out = c,
          .axes = {{i, 2}, {j, 2}},
          .reduce = {{k, 3}},
          .combiner = Combiner::Sum,
          .body = load(a, {i, k}) * load(b, {k, j}),
          .acc = acc,
          .epilogue = maxOf(Expr(acc) + load(bias, {j}), constant(DType::F32, 0))};
  Computation m = computation("matmul", {a, b, bias}, c, {s});
  Tensor out = run(m, {Tensor::of<float>(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                       Tensor::of<float>(DType::F32, {3, 2}, {1, -1, 2, -2, 3, -3}),
                       Tensor::of<float>(DType::F32, {2}, {0.5f, 20})});
  EXPECT_TRUE(out.identical(Tensor::of<float>(DType::F32, {2, 2}, {14.5f, 6, 32.5f, 0})));
  EXPECT_EQ(countFlops(m), 4 * (3 * 2 + 2));
  EXPECT_EQ(
      print(m),
      "computation matmul(A: float32[2, 3], B: float32[3, 2], bias: float32[2]) -> (C) {\n"
      "  C[i < 2, j < 2]: float32[2, 2] = max(acc + bias[j], 0.0) where acc = sum[k < 3](A[i, k] * B[k, j])\n}\n");
}

TEST(Compute, SoftmaxInFourStages) {
  const int64_t rows = 2, columns = 5;
  Type f32{DType::F32, 1};
  BufferRef x = makeBuffer("x", f32, {rows, columns}), highest = makeBuffer("highest", f32, {rows}),
            e = makeBuffer("e", f32, {rows, columns});
  BufferRef sum = makeBuffer("sum", f32, {rows}, Scope::Stack), y = makeBuffer("y", f32, {rows, columns});
  VarRef i = makeVar("i"), j = makeVar("j");
  Axis row{i, rows}, column{j, columns};
  Computation c = computation("softmax", {x}, y, {});
  c.stages.push_back({.out = highest,
                      .axes = {row},
                      .reduce = {column},
                      .combiner = Combiner::Max,
                      .body = load(x, {i, j}),
                      .acc = nullptr,
                      .epilogue = nullptr});
  c.stages.push_back({.out = e,
                      .axes = {row, column},
                      .reduce = {},
                      .body = call("exp", {load(x, {i, j}) - load(highest, {i})}),
                      .acc = nullptr,
                      .epilogue = nullptr});
  c.stages.push_back({.out = sum,
                      .axes = {row},
                      .reduce = {column},
                      .combiner = Combiner::Sum,
                      .body = load(e, {i, j}),
                      .acc = nullptr,
                      .epilogue = nullptr});
  c.stages.push_back({.out = y,
                      .axes = {row, column},
                      .reduce = {},
                      .body = load(e, {i, j}) / load(sum, {i}),
                      .acc = nullptr,
                      .epilogue = nullptr});
  std::vector<float> values{1, 2, 3, 4, 5, -1, 0, 1, 100, 2};
  Tensor out = run(c, {Tensor::of<float>(DType::F32, {rows, columns}, values)});
  for (int64_t r = 0; r < rows; ++r) {
    double m = -INFINITY, total = 0;
    for (int64_t k = 0; k < columns; ++k) m = std::max(m, double(values[static_cast<size_t>(r * columns + k)]));
    for (int64_t k = 0; k < columns; ++k) total += std::exp(values[static_cast<size_t>(r * columns + k)] - m);
    for (int64_t k = 0; k < columns; ++k)
      EXPECT_NEAR(out.data<float>()[r * columns + k],
                  std::exp(values[static_cast<size_t>(r * columns + k)] - m) / total, 1e-7);
  }
  // max, subtract and exp, sum, divide
  EXPECT_EQ(countFlops(c), rows * columns * (1 + 2 + 1 + 1));
  Computation renamed = c;
  renamed.name = "other";
  EXPECT_EQ(hash(renamed), hash(c));
  renamed.stages[0].combiner = Combiner::Min;
  EXPECT_NE(hash(renamed), hash(c));
}

TEST(Compute, ScansInEveryDirection) {
  BufferRef x = makeBuffer("x", {DType::I32, 1}, {1, 4}), y = makeBuffer("y", {DType::I32, 1}, {1, 4});
  VarRef i = makeVar("i"), j = makeVar("j");
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      Stage s{.out = y,
              .axes = {{i, 1}, {j, 4}},
              .reduce = {},
              .combiner = Combiner::Sum,
              .body = load(x, {i, j}),
              .acc = nullptr,
              .epilogue = nullptr,
              .scan = true,
              .scanExclusive = exclusive,
              .scanReverse = reverse};
      Tensor out = run(computation("cumsum", {x}, y, {s}), {Tensor::of<int32_t>(DType::I32, {1, 4}, {1, 2, 3, 4})});
      std::vector<int64_t> wanted =
          reverse ? (exclusive ? std::vector<int64_t>{9, 7, 4, 0} : std::vector<int64_t>{10, 9, 7, 4})
                  : (exclusive ? std::vector<int64_t>{0, 1, 3, 6} : std::vector<int64_t>{1, 3, 6, 10});
      EXPECT_EQ(out.toInts(), wanted);
    }
}

TEST(Compute, EmptyReductionsGiveTheIdentity) {
  for (auto [combiner, wanted] : {std::pair{Combiner::Sum, 0.0},
                                  {Combiner::Product, 1.0},
                                  {Combiner::Max, -INFINITY},
                                  {Combiner::Min, INFINITY}}) {
    BufferRef x = makeBuffer("x", {DType::F32, 1}, {0}), y = makeBuffer("y", {DType::F32, 1}, {});
    VarRef k = makeVar("k");
    Stage s{.out = y,
            .axes = {},
            .reduce = {{k, 0}},
            .combiner = combiner,
            .body = load(x, {k}),
            .acc = nullptr,
            .epilogue = nullptr};
    EXPECT_EQ(run(computation("r", {x}, y, {s}), {Tensor(DType::F32, {0})}).elementAsDouble(0), wanted);
  }
  EXPECT_EQ(print(identity(Combiner::Max, DType::I8)), "-128_int8");
  EXPECT_EQ(print(identity(Combiner::Min, DType::U64)), "18446744073709551615_uint64");
  EXPECT_EQ(print(identity(Combiner::And, DType::Bool)), "true");
}

TEST(Compute, WhatHasNoElementsHasNoLoops) {
  const int64_t many = int64_t{1} << 40;
  BufferRef none = makeBuffer("none", {DType::F32, 1}, {many, 0}), one = makeBuffer("one", {DType::F32, 1}, {1});
  VarRef i = makeVar("i"), j = makeVar("j");
  Stage copy, running, sum;
  copy.out = none;
  copy.axes = {{i, many}, {j, 0}};
  copy.body = constant(DType::F32, 1);
  EXPECT_EQ(run(computation("copy", {}, none, {copy}), {}).elements(), 0);
  running = copy;
  running.combiner = Combiner::Sum;
  running.scan = true;
  EXPECT_EQ(run(computation("running", {}, none, {running}), {}).elements(), 0);
  sum.out = one;
  sum.axes = {{makeVar("k"), 1}};
  sum.reduce = copy.axes;
  sum.combiner = Combiner::Sum;
  sum.body = load(none, {i, j});
  EXPECT_EQ(run(computation("sum", {none}, one, {sum}), {Tensor(DType::F32, {many, 0})}).elementAsDouble(0), 0);
}

TEST(Inlining, SharedLoadsAreMadeOnce) {
  BufferRef t = makeBuffer("t", {DType::F32, 1}, {8}), x = makeBuffer("x", {DType::F32, 1}, {8});
  VarRef i = makeVar("i");
  // Each stage reads the one before it four times: as a tree this would have 4^20 leaves.
  Expr body = load(t, {i});
  for (int depth = 0; depth < 20; ++depth) {
    Expr twice = load(t, {i}) * load(t, {i}) + load(t, {i}) * load(t, {Expr(i)});
    body = replaceLoads(twice, t.get(), [&](const Load&) { return body; });
  }
  int nodes = 0;
  visit(body, [&](const Expr&) { return ++nodes, true; });
  EXPECT_LT(nodes, 100);
  Function f{"f", {x, makeBuffer("y", {DType::F32, 1}, {8})}, 1, nullptr};
  f.body =
      forLoop(i, index(0), index(8), LoopKind::Serial,
              store(f.params[1], {i}, replaceLoads(body, t.get(), [&](const Load& l) { return load(x, l.indices); })));
  EXPECT_TRUE(verify(f).isOk());
  EXPECT_NE(hash(f), 0u);
  f.body = vectorise(simplify(forLoop(i, index(0), index(8), LoopKind::Vector, as<For>(f.body)->body)));
  std::vector<Tensor> tensors{Tensor(DType::F32, {8}), Tensor(DType::F32, {8})};
  EXPECT_TRUE(interpret(f, tensors).isOk());
}

}  // namespace
}  // namespace locution::loop

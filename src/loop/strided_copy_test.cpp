// Copies by strides against the interpreter, on every shape of copy that packing makes, and on what is none.
#include "loop/strided_copy.h"

#include <gtest/gtest.h>

#include <random>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"

namespace locution::loop {
namespace {

Computation copyOf(const BufferRef& in, const std::vector<Axis>& axes, Expr body) {
  std::vector<int64_t> dims;
  for (const Axis& a : axes) dims.push_back(a.extent);
  Computation c;
  c.name = "copy";
  c.inputs = {in};
  Stage s;
  s.out = makeBuffer("out", in->element, dims);
  s.axes = axes;
  s.body = std::move(body);
  c.outputs = {s.out};
  c.stages = {s};
  return c;
}

Tensor numbered(DType dtype, const std::vector<int64_t>& dims) {
  Tensor t(dtype, dims);
  for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, static_cast<double>(i % 251 + 1));
  return t;
}

void expectSame(const Computation& c) {
  std::optional<StridedCopy> copy = asStridedCopy(c);
  ASSERT_TRUE(copy.has_value()) << print(c);
  const BufferRef &in = c.inputs[0], &out = c.outputs[0];
  Tensor input = numbered(in->element.dtype, extents(*in));
  std::vector<Tensor> params = {input, Tensor(out->element.dtype, extents(*out))};
  ASSERT_TRUE(interpret(naiveLoops(c), params).isOk());
  Tensor got(out->element.dtype, extents(*out));
  runStridedCopy(*copy, input, &got);
  EXPECT_TRUE(got.identical(params[1])) << print(c);
}

Type type(DType dtype) { return {dtype, 1}; }

TEST(StridedCopy, Transposes) {
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::I8})
    for (int64_t rows : {1, 3, 16, 37}) {
      BufferRef in = makeBuffer("in", type(dtype), {rows, 5, 19});
      VarRef i = makeVar("i"), j = makeVar("j"), k = makeVar("k");
      const std::vector<Axis> axes = {{i, rows}, {j, 5}, {k, 19}};
      std::vector<size_t> order = {0, 1, 2};
      do {
        std::vector<Axis> permuted;
        for (size_t o : order) permuted.push_back(axes[o]);
        expectSame(copyOf(in, permuted, load(in, {i, j, k})));
      } while (std::next_permutation(order.begin(), order.end()));
    }
}

// W[K, N] -> [N / 16][K][16], the last panel filled up with zeros.
TEST(StridedCopy, PanelsWithARest) {
  for (int64_t n : {16, 40, 5, 129})
    for (int64_t tile : {16, 24}) {
      const int64_t depth = 21, panels = (n + tile - 1) / tile;
      BufferRef in = makeBuffer("in", type(DType::F32), {depth, n}),
                turned = makeBuffer("in", type(DType::F32), {n, depth});
      VarRef o = makeVar("o"), k = makeVar("k"), i = makeVar("i");
      const std::vector<Axis> axes = {{o, panels}, {k, depth}, {i, tile}};
      Expr column = Expr(o) * tile + i, zero = floatImm(DType::F32, 0);
      Expr isInside = binary(BinaryOp::Lt, column, intImm(DType::I64, n));
      expectSame(copyOf(in, axes, select(isInside, load(in, {k, column}), zero)));
      expectSame(copyOf(turned, axes, select(isInside, load(turned, {column, k}), zero)));
    }
}

TEST(StridedCopy, TwoGuardsAndAnOffset) {
  BufferRef in = makeBuffer("in", type(DType::F32), {10, 50});
  VarRef i = makeVar("i"), j = makeVar("j");
  Expr row = Expr(i) * 2 + intImm(DType::I64, 1), column = Expr(j) + intImm(DType::I64, 3);
  Expr zero = floatImm(DType::F32, 0);
  Expr both = select(binary(BinaryOp::Lt, row, intImm(DType::I64, 10)),
                     select(binary(BinaryOp::Le, column, intImm(DType::I64, 49)), load(in, {row, column}), zero), zero);
  expectSame(copyOf(in, {{i, 8}, {j, 60}}, both));
}

TEST(StridedCopy, WhatIsNone) {
  BufferRef in = makeBuffer("in", type(DType::F32), {8, 8});
  VarRef i = makeVar("i"), j = makeVar("j");
  const std::vector<Axis> axes = {{i, 8}, {j, 8}};
  Expr x = load(in, {i, j}), one = floatImm(DType::F32, 1);
  EXPECT_FALSE(asStridedCopy(copyOf(in, axes, x + one)));
  Expr isInside = binary(BinaryOp::Lt, Expr(i), intImm(DType::I64, 5));
  EXPECT_FALSE(asStridedCopy(copyOf(in, axes, select(isInside, x, one))));
  EXPECT_FALSE(
      asStridedCopy(copyOf(in, axes, load(in, {binary(BinaryOp::FloorDiv, Expr(i), intImm(DType::I64, 2)), j}))));
  EXPECT_FALSE(asStridedCopy(copyOf(in, axes, select(binary(BinaryOp::Lt, x, one), x, floatImm(DType::F32, 0)))));
}

}  // namespace
}  // namespace locution::loop

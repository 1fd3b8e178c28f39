// Copies by strides against the interpreter, on every shape of copy that packing makes, and on what is none.
#include "driver/strided_copy.h"

#include <gtest/gtest.h>

#include <random>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"

namespace locution::driver {
namespace {

using loop::Axis;
using loop::BufferRef;
using loop::Expr;
using loop::load;
using loop::makeBuffer;
using loop::makeVar;

loop::Computation copyOf(const BufferRef& in, const std::vector<Axis>& axes, Expr body) {
  std::vector<int64_t> dims;
  for (const Axis& a : axes) dims.push_back(a.extent);
  loop::Computation c;
  c.name = "copy";
  c.inputs = {in};
  loop::Stage s;
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

void expectSame(const loop::Computation& c) {
  std::optional<StridedCopy> copy = asStridedCopy(c);
  ASSERT_TRUE(copy.has_value()) << loop::print(c);
  const BufferRef &in = c.inputs[0], &out = c.outputs[0];
  Tensor input = numbered(in->element.dtype, loop::extents(*in));
  std::vector<Tensor> params = {input, Tensor(out->element.dtype, loop::extents(*out))};
  ASSERT_TRUE(loop::interpret(loop::naiveLoops(c), params).isOk());
  Tensor got(out->element.dtype, loop::extents(*out));
  runStridedCopy(*copy, input, &got);
  EXPECT_TRUE(got.identical(params[1])) << loop::print(c);
}

loop::Type type(DType dtype) { return {dtype, 1}; }

TEST(StridedCopy, Transposes) {
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::I8})
    for (int64_t rows : {1, 3, 16, 37}) {
      BufferRef in = makeBuffer("in", type(dtype), {rows, 5, 19});
      loop::VarRef i = makeVar("i"), j = makeVar("j"), k = makeVar("k");
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
      loop::VarRef o = makeVar("o"), k = makeVar("k"), i = makeVar("i");
      const std::vector<Axis> axes = {{o, panels}, {k, depth}, {i, tile}};
      Expr column = Expr(o) * tile + i, zero = loop::floatImm(DType::F32, 0);
      Expr isInside = loop::binary(loop::BinaryOp::Lt, column, loop::intImm(DType::I64, n));
      expectSame(copyOf(in, axes, loop::select(isInside, load(in, {k, column}), zero)));
      expectSame(copyOf(turned, axes, loop::select(isInside, load(turned, {column, k}), zero)));
    }
}

TEST(StridedCopy, TwoGuardsAndAnOffset) {
  BufferRef in = makeBuffer("in", type(DType::F32), {10, 50});
  loop::VarRef i = makeVar("i"), j = makeVar("j");
  Expr row = Expr(i) * 2 + loop::intImm(DType::I64, 1), column = Expr(j) + loop::intImm(DType::I64, 3);
  Expr zero = loop::floatImm(DType::F32, 0);
  Expr both = loop::select(loop::binary(loop::BinaryOp::Lt, row, loop::intImm(DType::I64, 10)),
                           loop::select(loop::binary(loop::BinaryOp::Le, column, loop::intImm(DType::I64, 49)),
                                        load(in, {row, column}), zero),
                           zero);
  expectSame(copyOf(in, {{i, 8}, {j, 60}}, both));
}

TEST(StridedCopy, WhatIsNone) {
  BufferRef in = makeBuffer("in", type(DType::F32), {8, 8});
  loop::VarRef i = makeVar("i"), j = makeVar("j");
  const std::vector<Axis> axes = {{i, 8}, {j, 8}};
  Expr x = load(in, {i, j}), one = loop::floatImm(DType::F32, 1);
  EXPECT_FALSE(asStridedCopy(copyOf(in, axes, x + one)));
  Expr isInside = loop::binary(loop::BinaryOp::Lt, Expr(i), loop::intImm(DType::I64, 5));
  EXPECT_FALSE(asStridedCopy(copyOf(in, axes, loop::select(isInside, x, one))));
  EXPECT_FALSE(asStridedCopy(
      copyOf(in, axes, load(in, {loop::binary(loop::BinaryOp::FloorDiv, Expr(i), loop::intImm(DType::I64, 2)), j}))));
  EXPECT_FALSE(asStridedCopy(
      copyOf(in, axes, loop::select(loop::binary(loop::BinaryOp::Lt, x, one), x, loop::floatImm(DType::F32, 0)))));
}

}  // namespace
}  // namespace locution::driver

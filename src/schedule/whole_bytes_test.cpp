#include "schedule/whole_bytes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "loop/interpreter.h"
#include "loop/passes.h"

namespace locution::schedule {
namespace {

using loop::BufferRef;
using loop::Expr;

Tensor runLoops(const loop::Computation& c, const Tensor& input) {
  std::vector<Tensor> params = {input};
  for (const BufferRef& b : c.outputs) params.emplace_back(b->element.dtype, loop::extents(*b));
  Status s = loop::interpret(loop::naiveLoops(c), params);
  EXPECT_TRUE(s.isOk()) << s.message();
  return params[1];
}

// out = cast(in), and a later stage reads it.
TEST(WholeBytes, SameBytesAsWrittenElementByElement) {
  for (DType type : {DType::I4, DType::U4, DType::I2, DType::U2, DType::F4E2M1}) {
    for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {1}, {3}, {4}, {3, 5}, {2, 4}}) {
      BufferRef in = loop::makeBuffer("in", {DType::F32, 1}, dims), out = loop::makeBuffer("out", {type, 1}, dims);
      loop::Computation c;
      c.inputs = {in};
      c.outputs = {out};
      loop::Stage s;
      s.out = out;
      std::vector<Expr> at;
      for (int64_t d : dims) {
        s.axes.push_back({loop::makeVar("i"), d});
        at.push_back(s.axes.back().var);
      }
      Expr x = loop::load(in, at);
      s.body = loop::cast(type, isFloat(type) ? x : loop::cast(DType::I32, x));
      c.stages = {s};
      Tensor input(DType::F32, dims);
      for (int64_t i = 0; i < input.elements(); ++i) input.setElement(i, static_cast<double>(i % 7) - 3);
      Tensor want = runLoops(c, input);
      std::vector<WholeBytes> changes = writeWholeBytes(&c);
      ASSERT_EQ(changes.size(), 1u);
      EXPECT_EQ(changes[0].from, out);
      ASSERT_EQ(c.outputs, std::vector<BufferRef>{changes[0].to});
      Tensor got = runLoops(c, input);
      EXPECT_EQ(got.dtype(), DType::U8);
      ASSERT_EQ(got.bytes(), want.bytes());
      EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.bytes()), 0) << dtypeName(type) << " " << want.shape().str();
    }
  }
}

TEST(WholeBytes, LaterStagesReadTheElements) {
  BufferRef in = loop::makeBuffer("in", {DType::F32, 1}, {4}), small = loop::makeBuffer("small", {DType::I4, 1}, {4}),
            out = loop::makeBuffer("out", {DType::I32, 1}, {4});
  loop::Computation c;
  c.inputs = {in};
  c.outputs = {out};
  for (const BufferRef& b : {small, out}) {
    loop::Stage s;
    s.out = b;
    s.axes = {{loop::makeVar("i"), 4}};
    Expr i = s.axes[0].var;
    s.body = b == small ? loop::cast(DType::I4, loop::load(in, {i})) : loop::cast(DType::I32, loop::load(small, {i}));
    c.stages.push_back(s);
  }
  EXPECT_TRUE(writeWholeBytes(&c).empty());
  Tensor got = runLoops(c, Tensor::of<float>(DType::F32, {4}, {-8, -1, 0, 7}));
  EXPECT_TRUE(got.identical(Tensor::of<int32_t>(DType::I32, {4}, {-8, -1, 0, 7})));
}

}  // namespace
}  // namespace locution::schedule

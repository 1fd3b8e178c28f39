// What is part of a workload and what is not.
#include <gtest/gtest.h>

#include <string>

#include "loop/build.h"
#include "loop/computation_text.h"
#include "loop/passes.h"
#include "space/workload.h"

namespace locution::space {
namespace {

std::string canonicalText(const std::string& kernel) {
  auto w = parseWorkload(kernel);
  EXPECT_TRUE(w.isOk()) << w.status().message();
  return w.isOk() ? w->text : "";
}

const std::string kDense =
    R"(computation "net/dense:1"(image: float32[4, 8], constant weight: float32[8, 6], constant offset: float32[6]) -> (logits) {
  logits[row < 4, column < 6]: float32[4, 6] = max(sum_ + offset[column], 0.1) where sum_ = sum[depth < 8](image[row, depth] * weight[depth, column])
}
)";

TEST(Workload, IsFreeOfNames) {
  EXPECT_EQ(canonicalText(kDense),
            R"(computation kernel(b0: float32[4, 8], constant b1: float32[8, 6], constant b2: float32[6]) -> (b3) {
  b3[i0 < 4, i1 < 6]: float32[4, 6] = max(acc + b2[i1], 0.1) where acc = sum[r0 < 8](b0[i0, r0] * b1[r0, i1])
}
)");
  auto w = parseWorkload(kDense);
  EXPECT_EQ(w->kernel.name, "kernel");
  // What records are kept under: whoever changes the text form makes them strangers.
  EXPECT_EQ(w->id(), "254e2700daee7003");
  EXPECT_EQ(parseWorkload(w->text)->hash, w->hash);
}

TEST(Workload, OrderOfParametersAndUnreadOnesDontCount) {
  EXPECT_EQ(
      canonicalText(
          R"(computation f(constant bias: float32[6], nobody: int8[3], a: float32[4, 8], constant w: float32[8, 6]) -> (o) {
  o[i < 4, j < 6]: float32[4, 6] = max(t + bias[j], 0.1) where t = sum[k < 8](a[i, k] * w[k, j])
}
)"),
      canonicalText(kDense));
  const std::string head = "computation f(a: float32[4]) -> ", two = R"( {
  p[i < 4]: float32[4] = exp(a[i])
  q[i < 4]: float32[4] = p[i] * 2.0
}
)";
  EXPECT_EQ(canonicalText(head + "(p, q)" + two), canonicalText(head + "(q, p)" + two));
  EXPECT_NE(canonicalText(head + "(q)" + two), canonicalText(head + "(q, p)" + two));
}

TEST(Workload, WhatPlansDependOnCounts) {
  for (auto [from, to] : {std::pair{"constant weight", "weight"}, std::pair{"0.1", "0.2"},
                          std::pair{"weight[depth, column]", "weight[column, depth]"},
                          std::pair{"max(sum_", "min(sum_"}, std::pair{"= sum[", "= max["}}) {
    std::string text = kDense;
    text.replace(text.find(from), std::string(from).size(), to);
    EXPECT_NE(parseWorkload(text)->hash, parseWorkload(kDense)->hash) << text;
  }
}

TEST(Workload, DeepNestingIsBeyondTheTextButNoCrash) {
  loop::Stage s;
  loop::BufferRef in = loop::makeBuffer("in", {DType::F32, 1}, {4});
  s.out = loop::makeBuffer("out", {DType::F32, 1}, {4});
  s.axes = {{loop::makeVar("i"), 4}};
  s.body = loop::load(in, {s.axes[0].var});
  for (int n = 0; n < 600; ++n) s.body = loop::maxOf(loop::constant(DType::F32, n), s.body);
  Workload w = canonical({"deep", {in}, {}, {s.out}, {s}, nullptr});
  EXPECT_EQ(loop::printNameFree(w.kernel), w.text);
  EXPECT_EQ(parseWorkload(w.text).isOk() ? "" : parseWorkload(w.text).status().message(), "line 2: too deeply nested");
}

TEST(Workload, BadTextIsAnError) {
  auto w = parseWorkload("computation kernel(b0: float32[4]) -> (b1) {\n  b1[i0 < 4]: float32[4] = b2[i0]\n}\n");
  EXPECT_EQ(w.isOk() ? "" : w.status().message(), "line 2: no buffer b2");
}

}  // namespace
}  // namespace locution::space

// The rules of kernel_kinds.inc, each on the smallest kernel that it is about and on one that it is nearly about.
#include <gtest/gtest.h>

#include <set>

#include "loop/computation_text.h"
#include "space/kernel_kind.h"

namespace locution::space {
namespace {

struct Case {
  const char *kind, *text;
  double multiplyAdds;
};

const Case kCases[] = {
    {"raw", "(b0: float32[4]) -> (b1: float32[4]) {\n for i0 in 0..4 {\n b1[i0] = b0[i0] * 2.0\n }\n}", 2},
    {"contraction",
     "(b0: float32[4, 8], b1: float32[8, 6]) -> (b2) {\n"
     " b2[i0 < 4, i1 < 6]: float32[4, 6] = sum[r0 < 8](b0[i0, r0] * b1[r0, i1])\n}",
     192},
    // Integers with a zero point; every head's own.
    {"contraction",
     "(b0: uint8[3, 4, 8], b1: int8[3, 8, 6]) -> (b2) {\n b2[i0 < 3, i1 < 4, i2 < 6]: int32[3, 4, 6] = "
     "sum[r0 < 8]((int32(b0[i0, i1, r0]) - 3_int32) * int32(b1[i0, r0, i2]))\n}",
     576},
    // A convolution of one by one, and one whose windows lie side by side: the same loops as a matrix product.
    {"contraction",
     "(b0: float32[4, 4, 8], b1: float32[6, 8, 1]) -> (b2) {\n b2[i0 < 4, i1 < 4, i2 < 6]: float32[4, 4, 6] = "
     "sum[r0 < 1, r1 < 8](b0[i0 + r0, i1, r1] * b1[i2, r1, r0])\n}",
     768},
    {"contraction",
     "(b0: float32[16, 8], b1: float32[6, 8, 4]) -> (b2) {\n b2[i0 < 4, i1 < 6]: float32[4, 6] = "
     "sum[r0 < 4, r1 < 8](b0[i0 * 4 + r0, r1] * b1[i1, r1, r0])\n}",
     768},
    {"convolution",
     "(b0: float32[16, 8], b1: float32[6, 8, 3]) -> (b2) {\n b2[i0 < 7, i1 < 6]: float32[7, 6] = "
     "sum[r0 < 3, r1 < 8](b0[i0 * 2 + r0, r1] * b1[i1, r1, r0])\n}",
     1008},
    {"depthwise",
     "(b0: float32[16, 8], b1: float32[8, 3]) -> (b2) {\n b2[i0 < 14, i1 < 8]: float32[14, 8] = "
     "sum[r0 < 3](b0[i0 + r0, i1] * b1[i1, r0])\n}",
     336},
    {"gemv",
     "(b0: float32[1, 8], b1: float32[8, 6]) -> (b2) {\n"
     " b2[i0 < 1, i1 < 6]: float32[1, 6] = tanh(acc) where acc = sum[r0 < 8](b0[i0, r0] * b1[r0, i1])\n}",
     48},
    {"gemv",
     "(b0: float32[4, 8], b1: float32[4, 8]) -> (b2) {\n b2[i0 < 4]: float32[4] = sum[r0 < 8](b0[i0, r0] * b1[i0, "
     "r0])\n}",
     32},
    {"attention",
     "(b0: float32[4, 8], b1: float32[5, 8], b2: float32[5, 8]) -> (b3) {\n"
     " b4[i0 < 4, i1 < 5]: float32[4, 5] = sum[r0 < 8](b0[i0, r0] * b1[i1, r0])\n"
     " b5[i0 < 4, i1 < 5]: float32[4, 5] = exp(b4[i0, i1])\n"
     " b3[i0 < 4, i1 < 8]: float32[4, 8] = sum[r0 < 5](b5[i0, r0] * b2[r0, i1])\n}",
     320},
    {"chain",
     "(b0: float32[4, 8], b1: float32[5, 8], b2: float32[5, 8]) -> (b3) {\n"
     " b4[i0 < 4, i1 < 5]: float32[4, 5] = max(acc, 0.0) where acc = sum[r0 < 8](b0[i0, r0] * b1[i1, r0])\n"
     " b3[i0 < 4, i1 < 8]: float32[4, 8] = exp(acc) where acc = sum[r0 < 5](b4[i0, r0] * b2[r0, i1])\n}",
     320},
    {"scan", "(b0: float32[4]) -> (b1) {\n b1[i0 < 4]: float32[4] = scan sum(b0[i0])\n}", 0},
    {"normalisation",
     "(b0: float32[4, 8]) -> (b1) {\n b2[i0 < 4]: float32[4] = max[r0 < 8](b0[i0, r0])\n"
     " b1[i0 < 4, i1 < 8]: float32[4, 8] = b0[i0, i1] - b2[i0]\n}",
     0},
    {"reduction", "(b0: float32[4, 8]) -> (b1) {\n b1[i0 < 4]: float32[4] = max[r0 < 8](b0[i0, r0])\n}", 0},
    // Squares, and a factor that is the same for the whole sum.
    {"reduction", "(b0: float32[4, 8]) -> (b1) {\n b1[i0 < 4]: float32[4] = sum[r0 < 8](b0[i0, r0] * b0[i0, r0])\n}",
     0},
    {"reduction",
     "(b0: float32[4, 8], b1: float32[4]) -> (b2) {\n"
     " b2[i0 < 4]: float32[4] = sum[r0 < 8](b0[i0, r0] * b1[i0])\n}",
     0},
    {"movement",
     "(b0: float32[4, 8]) -> (b1) {\n b1[i0 < 8, i1 < 6]: float32[8, 6] = select(i1 < 4, b0[i1, i0], 0.0)\n}", 0},
    {"movement", "(b0: float32[9, 8], b1: int64[4]) -> (b2) {\n b2[i0 < 4, i1 < 8]: float32[4, 8] = b0[b1[i0], i1]\n}",
     0},
    {"points",
     "(b0: float32[4], b1: float32[4]) -> (b2) {\n b2[i0 < 4]: float32[4] = select(b0[i0] < 0.0, b1[i0], b0[i0])\n}",
     0},
    {"points", "(b0: float32[4]) -> (b1) {\n b1[i0 < 4]: float16[4] = float16(b0[i0])\n}", 0},
};

TEST(KernelKind, FollowsTheRules) {
  std::set<std::string> seen;
  for (const Case& c : kCases) {
    auto kernel = loop::parseComputation(std::string("computation kernel") + c.text);
    ASSERT_TRUE(kernel.isOk()) << kernel.status().message() << "\n" << c.text;
    EXPECT_EQ(kindText(kindOf(*kernel)), c.kind) << c.text;
    EXPECT_EQ(multiplyAdds(*kernel), c.multiplyAdds) << c.text;
    seen.insert(c.kind);
  }
#define KERNEL_KIND(Name, text, rule) EXPECT_TRUE(seen.count(text)) << text;
#include "space/kernel_kinds.inc"
#undef KERNEL_KIND
}

}  // namespace
}  // namespace locution::space

#include <gtest/gtest.h>

#include "runtime/cpu_features.h"
#include "targets/cpu/cpu_target.h"

namespace locution::targets::cpu {
namespace {

TEST(Target, KnownLevels) {
  auto v2 = makeTarget("", "x86-64-v2", 1);
  ASSERT_TRUE(v2);
  EXPECT_EQ(v2->features, "+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3");
  EXPECT_EQ(v2->vectorBytes, 16);
  EXPECT_FALSE(v2->hasFma || v2->hasMask || v2->hasF16c || v2->hasVnni);

  auto v3 = makeTarget("x86_64-linux-gnu", "x86-64-v3", 4);
  ASSERT_TRUE(v3);
  EXPECT_EQ(v3->features, "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3");
  EXPECT_EQ(v3->vectorBytes, 32);
  EXPECT_EQ(v3->vectorRegisters, 16);
  EXPECT_EQ(v3->threads, 4);
  EXPECT_TRUE(v3->hasFma && v3->hasF16c && !v3->hasMask);
  EXPECT_EQ(v3->triple, "x86_64-unknown-linux-gnu");

  auto v4 = makeTarget("", "x86-64-v4", 1);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->vectorBytes, 64);
  EXPECT_EQ(v4->vectorRegisters, 32);
  EXPECT_TRUE(v4->hasMask && !v4->hasVnni);
  auto lake = makeTarget("", "icelake-server", 1);
  ASSERT_TRUE(lake);
  EXPECT_TRUE(lake->hasVnni);
}

TEST(Target, Aarch64) {
  auto generic = makeTarget("aarch64-linux-gnu", "", 2);
  ASSERT_TRUE(generic) << generic.status().message();
  EXPECT_EQ(generic->triple, "aarch64-unknown-linux-gnu");
  EXPECT_EQ(generic->cpu, "generic");
  EXPECT_EQ(generic->features, "+fp-armv8,+neon");
  EXPECT_EQ(generic->vectorBytes, 16);
  EXPECT_EQ(generic->vectorRegisters, 32);
  EXPECT_TRUE(generic->hasFma && generic->hasF16c && !generic->hasMask && !generic->hasVnni);
  auto parsed = parseTarget(generic->str());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, *generic);

  auto android = makeTarget("arm64-linux-android", "cortex-a76", 1);
  ASSERT_TRUE(android) << android.status().message();
  EXPECT_EQ(android->triple, "aarch64-unknown-linux-android");
  EXPECT_EQ(android->features, "+dotprod,+fp-armv8,+fullfp16,+neon,+rdm");
  // SVE is never used.
  auto neoverse = makeTarget("aarch64-linux-gnu", "neoverse-v2", 1);
  ASSERT_TRUE(neoverse);
  EXPECT_EQ(neoverse->features.find("sve"), std::string::npos);
  EXPECT_EQ(neoverse->vectorBytes, 16);

  EXPECT_EQ(makeTarget("aarch64-linux-gnu", "cortex-a777", 1).status().message().substr(0, 72),
            "unknown CPU \"cortex-a777\" for aarch64; close names: native, cortex-a77, ");
  EXPECT_EQ(makeTarget("aarch64_be-linux-gnu", "", 1).status().message(),
            "target \"aarch64_be-unknown-linux-gnu\": architecture aarch64_be is not supported; there are x86_64 and "
            "aarch64");
  if (runtime::hostArchitecture() == "x86_64") {
    EXPECT_EQ(makeTarget("aarch64-linux-gnu", "native", 1).status().message(),
              "CPU native: this machine is x86_64, the target is aarch64-unknown-linux-gnu");
  }
}

TEST(Target, NativeRunsHereAndRoundTrips) {
  auto native = makeTarget("", "native", 2);
  ASSERT_TRUE(native) << native.status().message();
  EXPECT_TRUE(runtime::missingFeatures(native->features).empty());
  auto parsed = parseTarget(native->str());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, *native);
}

TEST(Target, Errors) {
  EXPECT_EQ(makeTarget("", "skylake-avx51", 1).status().message().substr(0, 71),
            "unknown CPU \"skylake-avx51\" for x86_64; close names: native, skylake-av");
  EXPECT_EQ(makeTarget("", "x86-64", 1).status().message(),
            "CPU \"x86-64\" lacks SSE4.1; x86-64-v2 is the least that is supported");
  EXPECT_EQ(
      makeTarget("riscv64-unknown-linux-gnu", "native", 1).status().message(),
      "target \"riscv64-unknown-linux-gnu\": architecture riscv64 is not supported; there are x86_64 and aarch64");
  EXPECT_EQ(makeTarget("x86_64-pc-windows-msvc", "x86-64-v3", 1).status().message(),
            "target \"x86_64-pc-windows-msvc\": operating system windows is not supported; there is linux");
  EXPECT_EQ(makeTarget("", "x86-64-v3", 0).status().message(), "a target needs 1 thread or more, not 0");
}

TEST(Target, MeasuresWithinReason) {
  auto native = makeTarget("", "native", 1);
  ASSERT_TRUE(native);
  auto measured = measureMachine(*native);
  ASSERT_TRUE(measured) << measured.status().message();
  EXPECT_GT(measured->peakGflops, 1);
  EXPECT_LT(measured->peakGflops, 5000);
  EXPECT_GT(measured->readGbs, 0.1);
  EXPECT_LT(measured->readGbs, 2000);
  EXPECT_EQ(measured->features, native->features);
}

}  // namespace
}  // namespace locution::targets::cpu

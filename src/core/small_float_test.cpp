#include "core/small_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace locution {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr DType kTypes[] = {DType::F16,    DType::BF16,       DType::F8E4M3FN, DType::F8E4M3FNUZ,
                            DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0,   DType::F4E2M1};

TEST(SmallFloat, EveryValueSurvivesTheRoundTrip) {
  for (DType type : kTypes)
    for (uint32_t bits = 0; bits < 1u << dtypeBits(type); ++bits) {
      float value = smallFloatToFloat(type, static_cast<uint16_t>(bits));
      for (bool saturate : {false, true}) {
        uint16_t back = floatToSmallFloat(type, value, saturate);
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(smallFloatToFloat(type, back))) << dtypeName(type) << " " << bits;
        } else if (!std::isinf(value) || !saturate || dtypeBits(type) == 16) {
          ASSERT_EQ(back, bits) << dtypeName(type);
        }
      }
    }
}

// Between any two neighbours: what lies nearer wins, halfway the even one.
TEST(SmallFloat, RoundsToNearestEven) {
  for (DType type : kTypes) {
    if (type == DType::F8E8M0) continue;
    for (uint32_t bits = 0; bits + 1 < 1u << (dtypeBits(type) - 1); ++bits) {
      auto low = smallFloatToFloat(type, static_cast<uint16_t>(bits));
      auto high = smallFloatToFloat(type, static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) break;
      float middle = low + (high - low) / 2;
      uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      // bfloat16's smallest steps are halved exactly by subnormal floats, so `middle` is exact for all types.
      ASSERT_EQ(floatToSmallFloat(type, middle, false), even) << dtypeName(type) << " " << middle;
      ASSERT_EQ(floatToSmallFloat(type, std::nextafter(middle, -kInf), false), bits) << dtypeName(type);
      ASSERT_EQ(floatToSmallFloat(type, std::nextafter(middle, kInf), false), bits + 1) << dtypeName(type);
    }
  }
}

TEST(SmallFloat, SpecialValuesAsOnnxCastSays) {
  struct Row {
    DType type;
    float max;
    uint16_t maxBits, minusMaxBits, nan, minusZero;
    uint16_t overflow, minusOverflow;  // without saturation
  };
  const Row rows[] = {
      {DType::F8E4M3FN, 448, 0x7e, 0xfe, 0x7f, 0x80, 0x7f, 0xff},
      {DType::F8E4M3FNUZ, 240, 0x7f, 0xff, 0x80, 0, 0x80, 0x80},
      {DType::F8E5M2, 57344, 0x7b, 0xfb, 0x7e, 0x80, 0x7c, 0xfc},
      {DType::F8E5M2FNUZ, 57344, 0x7f, 0xff, 0x80, 0, 0x80, 0x80},
  };
  for (const Row& r : rows) {
    SCOPED_TRACE(std::string(dtypeName(r.type)));
    EXPECT_EQ(smallFloatToFloat(r.type, r.maxBits), r.max);
    for (float big : {kInf, r.max * 2, 1e38f}) {
      EXPECT_EQ(floatToSmallFloat(r.type, big, true), r.maxBits);
      EXPECT_EQ(floatToSmallFloat(r.type, -big, true), r.minusMaxBits);
      EXPECT_EQ(floatToSmallFloat(r.type, big, false), r.overflow);
      EXPECT_EQ(floatToSmallFloat(r.type, -big, false), r.minusOverflow);
    }
    for (bool saturate : {false, true}) {
      EXPECT_EQ(floatToSmallFloat(r.type, kNan, saturate), r.nan);
      EXPECT_EQ(floatToSmallFloat(r.type, -0.0f, saturate), r.minusZero);
      EXPECT_EQ(floatToSmallFloat(r.type, 0, saturate), 0);
      EXPECT_EQ(floatToSmallFloat(r.type, -1e-40f, saturate), r.minusZero);
    }
  }
  EXPECT_EQ(floatToHalf(65520), 0x7c00);
  EXPECT_EQ(floatToHalf(65519), 0x7bff);
  EXPECT_EQ(floatToSmallFloat(DType::F16, kInf, true), 0x7c00);
  EXPECT_EQ(floatToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16ToFloat(floatToBfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(floatToSmallFloat(DType::F4E2M1, kInf, false), 7);
  EXPECT_EQ(floatToSmallFloat(DType::F4E2M1, -100, false), 15);
}

// Digests of conversions that were compared with ml_dtypes bit by bit (all but NaN payloads and what saturates): every upper
// half of a float's bits with eight lower halves.
TEST(SmallFloat, AgreesWithMlDtypes) {
  const std::pair<DType, uint64_t> digests[] = {
      {DType::F16, 0x29a12020d0fc3180},      {DType::BF16, 0x68b7646361b8d980},
      {DType::F8E4M3FN, 0xf4a83fbf4998ee40}, {DType::F8E4M3FNUZ, 0x2f849cebded86900},
      {DType::F8E5M2, 0x5e76b1c353320e80},   {DType::F8E5M2FNUZ, 0xc5441601fc71ef00},
      {DType::F4E2M1, 0xa28220cf44d44ee8},
  };
  const uint32_t lows[] = {0, 1, 0x1000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (const auto& [type, expected] : digests) {
    uint64_t digest = 0, i = 0;
    for (uint32_t high = 0; high < 65536; ++high)
      for (uint32_t low : lows) {
        uint64_t bits = floatToSmallFloat(type, std::bit_cast<float>(high << 16 | low), false);
        digest += (bits + 1) * (i++ * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u);
      }
    EXPECT_EQ(digest, expected) << dtypeName(type);
  }
}

TEST(SmallFloat, PowersOfTwo) {
  using enum ScaleRounding;
  EXPECT_EQ(floatToE8M0(1, Up, true), 127);
  EXPECT_EQ(floatToE8M0(1.25f, Up, true), 128);
  EXPECT_EQ(floatToE8M0(1.25f, Down, true), 127);
  EXPECT_EQ(floatToE8M0(1.25f, Nearest, true), 127);
  EXPECT_EQ(floatToE8M0(1.5f, Nearest, true), 128);  // ties up
  EXPECT_EQ(floatToE8M0(0, Up, true), 0);
  EXPECT_EQ(floatToE8M0(0, Nearest, false), 0xff);
  EXPECT_EQ(floatToE8M0(kInf, Up, true), 0xfe);
  EXPECT_EQ(floatToE8M0(kInf, Nearest, false), 0xff);
  EXPECT_EQ(floatToE8M0(3e38f, Up, true), 0xfe);
  EXPECT_EQ(floatToE8M0(3e38f, Nearest, false), 0xff);
  EXPECT_EQ(floatToE8M0(1e-45f, Down, true), 0);
  EXPECT_EQ(floatToE8M0(1e-45f, Nearest, false), 0xff);
  EXPECT_EQ(floatToE8M0(kNan, Up, true), 0xff);
  EXPECT_EQ(smallFloatToFloat(DType::F8E8M0, 0), 0x1p-127f);
}

}  // namespace
}  // namespace locution

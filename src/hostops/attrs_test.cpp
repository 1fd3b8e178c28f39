#include "hostops/attrs.h"

#include <gtest/gtest.h>

#include <random>

#include "hostops/test_calls.h"

namespace locution::hostops {
namespace {

Attrs everything() {
  return {{"d", 0.25},
          {"ds", std::vector<double>{1, -2.5}},
          {"i", int64_t{-3}},
          {"is", std::vector<int64_t>{1, 2, 3}},
          {"s", std::string("text\0with zero", 14)},
          {"ss", std::vector<std::string>{"a", "", "ü"}},
          {"t", f32({2, 1}, {1, 2})},
          {"ts", text({2}, {"x", "yz"})}};
}

TEST(Attrs, RoundTrip) {
  std::string bytes = serialiseAttrs(everything());
  auto read = parseAttrs(bytes);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(serialiseAttrs(*read), bytes);
  EXPECT_EQ(intAttr(*read, "i", 0), -3);
  EXPECT_EQ(floatAttr(*read, "d", 0), 0.25);
  EXPECT_EQ(textAttr(*read, "s", "").size(), 14U);
  EXPECT_EQ(textsAttr(*read, "ss"), (std::vector<std::string>{"a", "", "ü"}));
  expectTensor(std::get<Tensor>(read->at("t")), f32({2, 1}, {1, 2}));
  EXPECT_TRUE(parseAttrs(serialiseAttrs({})).isOk());
}

TEST(Attrs, DamageIsAnError) {
  const std::string bytes = serialiseAttrs(everything());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(parseAttrs(bytes.substr(0, n)).isOk()) << n;
  EXPECT_FALSE(parseAttrs(bytes + "x").isOk());
  std::mt19937 random(3);
  for (int round = 0; round < 50000; ++round) {
    std::string bad = bytes;
    for (int n = 0; n < 3; ++n) bad[random() % bad.size()] = static_cast<char>(random());
    (void)parseAttrs(bad).isOk();  // an error or not, never a crash
  }
}

TEST(Attrs, DataTypes) {
  EXPECT_EQ(*dtypeAttr({{"to", std::string("float16")}}, "to", DType::F32), DType::F16);
  EXPECT_EQ(*dtypeAttr({{"to", int64_t{7}}}, "to", DType::F32), DType::I64);
  EXPECT_EQ(*dtypeAttr({}, "to", DType::F32), DType::F32);
  EXPECT_FALSE(dtypeAttr({{"to", std::string("flat32")}}, "to", DType::F32).isOk());
  EXPECT_FALSE(dtypeAttr({{"to", int64_t{99}}}, "to", DType::F32).isOk());
}

}  // namespace
}  // namespace locution::hostops

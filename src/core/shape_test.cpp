#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/target.h"
#include "core/type_text.h"

namespace locution {
namespace {

TEST(Shape, Text) {
  EXPECT_EQ(Shape::of({1, 3, 224, 224}).str(), "1x3x224x224");
  EXPECT_EQ(Shape().str(), "scalar");
  EXPECT_EQ(Shape::unranked().str(), "?");
  EXPECT_EQ((Shape{Dim::symbol("batch"), Dim(3)}).str(), "batchx3");
  EXPECT_EQ((Shape{Dim::symbol("max_len"), Dim::symbol("h") * Dim(2), Dim::symbol("scalar")}).str(),
            "(max_len)x(2*h)x\"scalar\"");
  EXPECT_EQ((Shape{Dim::symbol("a x b") + Dim::symbol("c d")}).str(), "(\"a x b\" + \"c d\")");
}

TEST(Shape, TextReadsBack) {
  for (const char* text : {"1x3x224x224", "scalar", "?", "batchx3", "(max_len)x(2*h + 1)x\"odd name\"", "0", "-1x2",
                           "(\"a x b\" + \"c d\")"}) {
    auto shape = parseShape(text);
    ASSERT_TRUE(shape.isOk()) << text << ": " << shape.status().message();
    EXPECT_EQ(shape->str(), text);
  }
  EXPECT_EQ(parseShape("\"x\"x(x)")->str(), "(x)x(x)");
  for (const char* text : {"", "x", "1x", "1 3", "1x?"}) EXPECT_FALSE(parseShape(text).isOk()) << text;
}

TEST(Shape, ElementsSaturate) {
  EXPECT_EQ(Shape::of({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape::of({int64_t{1} << 40, int64_t{1} << 40}).elements(), INT64_MAX);
  EXPECT_EQ(Shape::of({int64_t{1} << 40, int64_t{1} << 40, 0}).elements(), 0);
  EXPECT_EQ(dtypeBytes(DType::F64, INT64_MAX), INT64_MAX);
  EXPECT_EQ(dtypeBytes(DType::I4, 3), 2);
  EXPECT_EQ(dtypeBytes(DType::U2, 5), 2);
}

TEST(ValueType, TextReadsBack) {
  ValueType t{DType::I8, Shape::of({1, 64, 7, 7}), Layout{{0, 2, 3, 1}, 1, 16}, Quantisation{"s \"1", "z", 1, 32}};
  EXPECT_EQ(t.str(),
            "int8[1x64x7x7] layout(order 0,2,3,1 block 1/16) quant(scale \"s \\\"1\" zero \"z\" axis 1 block 32)");
  for (const char* text : {"float32[1x3]", "seq(float32[?])", "opt(string[scalar])", "float32[8] layout(block 0/8)",
                           "uint4[8] quant(scale \"s\")", "bfloat16[n] layout(order 0)"}) {
    auto type = parseValueType(text);
    ASSERT_TRUE(type.isOk()) << text << ": " << type.status().message();
    EXPECT_EQ(type->str(), text);
  }
  EXPECT_EQ(*parseValueType(t.str()), t);
  for (const char* text : {"float33[1]", "float32", "float32[1", "seq(float32[1]", "float32[1] quant()"})
    EXPECT_FALSE(parseValueType(text).isOk()) << text;
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::U2); ++i)
    EXPECT_EQ(parseDType(dtypeName(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_FALSE(parseDType("float").has_value());
}

TEST(TargetSpec, TextReadsBack) {
  TargetSpec spec;
  spec.cpu = "znver5";
  spec.features = "+avx2,+fma";
  spec.hasMask = true;
  spec.peakGflops = 123.4567890123;
  EXPECT_EQ(*parseTarget(spec.str()), spec);
  EXPECT_EQ(*parseTarget(""), TargetSpec());
  EXPECT_EQ(parseTarget("# measured\n threads=4 \n")->threads, 4);
  EXPECT_EQ(parseTarget("threads = 4\nspeed = 3").status().message(), "line 2: unknown field \"speed\"");
  EXPECT_EQ(parseTarget("threads = -1").status().message(), "line 1: \"-1\" is no value for the field threads");
  for (const char* text : {"threads", "threads = 1\nthreads = 1", "peakGflops = nan", "hasFma = yes", "l1Bytes = 1e3"})
    EXPECT_FALSE(parseTarget(text).isOk()) << text;
}

}  // namespace
}  // namespace locution

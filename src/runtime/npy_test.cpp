#include "runtime/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/test_model.h"

namespace locution::runtime {
namespace {

using testing::HasSubstr;

std::shared_ptr<Storage> storageOf(const std::string& bytes) { return storageFromString(bytes); }
std::string file(const std::string& dict, const std::string& data) {
  std::string head = "\x93NUMPY";
  head += {'\1', '\0', static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)};
  return head + dict + data;
}
std::string errorOf(const std::string& bytes) { return parseNpy(storageOf(bytes)).status().message(); }

TEST(Npy, EveryTypeRoundTrips) {
  TestFolder folder;
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8,
                      DType::U16, DType::U32, DType::U64, DType::Bool}) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}}) {
      Tensor t(dtype, dims);
      for (int64_t i = 0; i < t.elements(); ++i) t.setElementInt(i, dtype == DType::Bool ? i % 2 : i + 1);
      ASSERT_TRUE(writeNpy(folder / "t.npy", t).isOk());
      EXPECT_EQ(readFile(folder / "t.npy").find('\n') % 64, 63U);
      auto read = readNpy(folder / "t.npy");
      ASSERT_TRUE(read.isOk()) << read.status().message();
      EXPECT_TRUE(read->identical(t)) << dtypeName(dtype);
    }
  }
}

TEST(Npy, LargeFilesAreMapped) {
  TestFolder folder;
  Tensor t(DType::F32, {1 << 20});
  t.data<float>()[12345] = 7;
  ASSERT_TRUE(writeNpy(folder / "t.npy", t).isOk());
  auto read = readNpy(folder / "t.npy");
  ASSERT_TRUE(read.isOk());
  EXPECT_TRUE(read->identical(t));
}

TEST(Npy, WiderTypesAndStrings) {
  TestFolder folder;
  Tensor t(DType::BF16, {2});
  t.setElement(0, 1.5);
  ASSERT_TRUE(writeNpy(folder / "t.npy", t).isOk());
  EXPECT_EQ(readNpy(folder / "t.npy")->dtype(), DType::F32);
  EXPECT_EQ(readNpy(folder / "t.npy")->data<float>()[0], 1.5F);
  Tensor packed(DType::I4, {3});
  packed.setElementInt(2, -5);
  ASSERT_TRUE(writeNpy(folder / "t.npy", packed).isOk());
  EXPECT_EQ(readNpy(folder / "t.npy")->toInts(), (std::vector<int64_t>{0, 0, -5}));
  Tensor words = Tensor::ofStrings({2, 1}, {"häuser", ""});
  ASSERT_TRUE(writeNpy(folder / "t.npy", words).isOk());
  EXPECT_TRUE(readNpy(folder / "t.npy")->identical(words));
}

TEST(Npy, OtherOrders) {
  std::string big = file("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", std::string("\0\1\2\0", 4));
  EXPECT_EQ(parseNpy(storageOf(big))->toInts(), (std::vector<int64_t>{1, 512}));
  std::string fortran = file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "\1\2\3\4\5\6");
  auto t = parseNpy(storageOf(fortran));
  EXPECT_EQ(t->dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(t->toInts(), (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
  std::string strings =
      file("{'descr': '|S2', 'fortran_order': True, 'shape': (2, 2)}", std::string("a\0b\0cd\0\0", 8));
  EXPECT_EQ(parseNpy(storageOf(strings))->strings(), (std::vector<std::string>{"a", "cd", "b", ""}));
}

TEST(Npy, Errors) {
  EXPECT_EQ(errorOf("hello, world"), "is not an .npy file");
  EXPECT_EQ(errorOf(file("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "")), "has the unknown type \"|O\"");
  EXPECT_EQ(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234")),
            "is cut off: it holds 4 bytes of data, and its header says 8");
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "")),
              HasSubstr("more than fits"));
  EXPECT_THAT(errorOf(file("{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,)}", "")),
              HasSubstr("cut off"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'shape': (2,)}", "")), HasSubstr("has a header that can't be read"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "")),
              HasSubstr("can't be read"));
  EXPECT_EQ(errorOf(file("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\7")),
            "has a boolean that is neither 0 nor 1");
  EXPECT_THAT(readNpy("/nowhere/x.npy").status().message(), HasSubstr("cannot open /nowhere/x.npy"));
  EXPECT_FALSE(writeNpy("/nowhere/x.npy", Tensor::scalarF32(1)).isOk());
}

TEST(Npy, DamageNeverCrashes) {
  const std::string good = file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", std::string(24, 'x'));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parseNpy(storageOf(good.substr(0, n))).isOk()) << n;
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[6 + random() % (bad.size() - 6)] = static_cast<char>(random());
    (void)parseNpy(storageOf(bad)).isOk();
  }
}

}  // namespace
}  // namespace locution::runtime

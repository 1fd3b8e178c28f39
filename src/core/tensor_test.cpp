#include "core/tensor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>

namespace locution {
namespace {

std::string temporaryFile(const std::string& bytes) {
  std::string path = testing::TempDir() + "/locution_tensor_test." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(Storage, IsZeroedAlignedAndReadablePastItsEnd) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 22) + 5}) {
    auto storage = allocateStorage(size);
    EXPECT_EQ(storage->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u);
    for (size_t i = 0; i < size + 64; ++i) ASSERT_EQ(storage->data()[i], std::byte{0});
  }
}

TEST(Storage, UntouchedMemoryIsNotResident) {
  auto resident = [] {
    std::ifstream in("/proc/self/statm");
    int64_t total = 0, pages = 0;
    in >> total >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  int64_t before = resident();
  auto storage = allocateStorage(size_t{1} << 30);
  EXPECT_LT(resident() - before, 64 << 20);
}

TEST(Storage, MapsFiles) {
  std::string bytes(10000, 'a');
  bytes[5000] = 'b';
  std::string path = temporaryFile(bytes);
  auto mapped = mapFile(path, 5000, 5000);
  ASSERT_TRUE(mapped.isOk()) << mapped.status().message();
  EXPECT_EQ((*mapped)->data()[0], std::byte{'b'});
  (*mapped)->data()[0] = std::byte{'c'};  // ours only
  EXPECT_EQ((*mapFile(path, 5000, 1))->data()[0], std::byte{'b'});
  EXPECT_TRUE(mapFile(path, 10000, 0).isOk());
  EXPECT_EQ(mapFile(path, 9999, 2).status().message(),
            "'" + path + "' has 10000 bytes; 2 bytes from 9999 on are past its end");
  EXPECT_FALSE(mapFile(path, SIZE_MAX, 2).isOk());
  EXPECT_FALSE(mapFile(path, 1, SIZE_MAX).isOk());
  EXPECT_FALSE(mapFile(testing::TempDir(), 0, 0).isOk());
  std::remove(path.c_str());
  EXPECT_EQ(mapFile(path, 0, 1).status().message(), "can't open '" + path + "': No such file or directory");
}

TEST(Tensor, ViewsAndReshapes) {
  auto storage = storageFromString(std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12));
  Tensor t(DType::I32, {2}, storage, 4);
  EXPECT_EQ(t.toInts(), (std::vector<int64_t>{2, 3}));
  Tensor r = t.reshaped({2, 1});
  EXPECT_EQ(r.raw(), t.raw());
  EXPECT_FALSE(r.identical(t));
  EXPECT_TRUE(r.reshaped({2}).identical(Tensor::of<int32_t>(DType::I32, {2}, {2, 3})));
  EXPECT_NE(r.hash(), t.hash());
  EXPECT_EQ(t.hash(), Tensor::of<int32_t>(DType::I32, {2}, {2, 3}).hash());
  EXPECT_EQ(Tensor(DType::F32, {0, 3}).elements(), 0);
  EXPECT_TRUE(Tensor(DType::F32, {0, 3}).identical(Tensor(DType::F32, {0, 3})));
  EXPECT_FALSE(Tensor().identical(Tensor(DType::F32, {})));
}

TEST(Tensor, StringsCompareAndHash) {
  Tensor a = Tensor::ofStrings({2}, {"ab", "c"}), b = Tensor::ofStrings({2}, {"a", "bc"});
  EXPECT_FALSE(a.identical(b));
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_TRUE(a.identical(Tensor::ofStrings({2}, {"ab", "c"})));
}

TEST(Tensor, ElementsOfEveryType) {
  for (int i = 0; i <= static_cast<int>(DType::U2); ++i) {
    auto type = static_cast<DType>(i);
    if (type == DType::String || type == DType::F8E8M0) continue;
    SCOPED_TRACE(std::string(dtypeName(type)));
    Tensor t(type, {5});
    t.setElement(3, 1);
    t.setElementInt(1, 1);
    for (int64_t k = 0; k < 5; ++k) {
      EXPECT_EQ(t.elementAsDouble(k), k % 2);
      EXPECT_EQ(t.elementAsInt(k), k % 2);
    }
  }
  Tensor t(DType::I4, {3});
  t.setElementInt(1, -8);
  EXPECT_EQ(t.toInts(), (std::vector<int64_t>{0, -8, 0}));
  EXPECT_EQ(t.raw()[0], std::byte{0x80});
}

TEST(Tensor, ConversionsClamp) {
  Tensor t(DType::I8, {1}), u(DType::U64, {1}), w(DType::I64, {1});
  t.setElement(0, 1e30);
  EXPECT_EQ(t.elementAsInt(0), 127);
  t.setElement(0, -128.9);
  EXPECT_EQ(t.elementAsInt(0), -128);
  t.setElement(0, NAN);
  EXPECT_EQ(t.elementAsInt(0), 0);
  t.setElementInt(0, 200);
  EXPECT_EQ(t.elementAsInt(0), -56);
  u.setElement(0, 1e30);
  EXPECT_EQ(u.elementBits(0), UINT64_MAX);
  w.setElement(0, 1e30);
  EXPECT_EQ(w.elementAsInt(0), INT64_MAX);
  EXPECT_EQ(Tensor::scalarF32(-INFINITY).elementAsInt(0), INT64_MIN);
}

// Against the definition, element by element.
void checkPermuted(const Tensor& in, const std::vector<int64_t>& perm) {
  Tensor out = permuted(in, perm);
  auto rank = static_cast<size_t>(in.rank());
  std::vector<int64_t> index(rank, 0);
  for (int64_t o = 0; o < out.elements(); ++o) {
    int64_t rest = o, offset = 0;
    for (size_t i = rank; i-- > 0; rest /= out.dims()[i]) index[i] = rest % out.dims()[i];
    std::vector<int64_t> from(rank);
    for (size_t i = 0; i < rank; ++i) from[static_cast<size_t>(perm[i])] = index[i];
    for (size_t i = 0; i < rank; ++i) offset = offset * in.dims()[i] + from[i];
    ASSERT_EQ(out.elementBits(o), in.elementBits(offset)) << o;
  }
}

TEST(Tensor, Permuted) {
  std::mt19937 random(7);
  for (DType type : {DType::U8, DType::F16, DType::F32, DType::F64, DType::U4, DType::I2})
    for (int round = 0; round < 60; ++round) {
      std::vector<int64_t> dims(random() % 5), perm(dims.size());
      for (int64_t& d : dims) d = static_cast<int64_t>(random() % (round % 7 == 0 ? 40 : 6));
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), random);
      Tensor in(type, dims);
      for (int64_t i = 0; i < in.elements(); ++i) in.setElementBits(i, random());
      checkPermuted(in, perm);
    }
  Tensor strings = permuted(Tensor::ofStrings({2, 2}, {"a", "b", "c", "d"}), {1, 0});
  EXPECT_EQ(strings.strings(), (std::vector<std::string>{"a", "c", "b", "d"}));
  Tensor wide = permuted(Tensor::of<int64_t>(DType::I64, {1, 2}, {1, 2}), {1, 0});
  EXPECT_EQ(wide.dims(), (std::vector<int64_t>{2, 1}));
}

}  // namespace
}  // namespace locution

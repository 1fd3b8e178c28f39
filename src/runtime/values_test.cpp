#include "runtime/values.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace locution::runtime {
namespace {

using hostops::HostValue;

TEST(Values, ComeBackAsTheyWere) {
  const std::string path = testing::TempDir() + "/values" + std::to_string(getpid());
  Tensor half(DType::F16, {2, 1});
  half.setElement(0, 1.5);
  half.setElement(1, -0.25);
  std::vector<HostValue> values = {half,
                                   Tensor::ofStrings({2}, {"", "a\nb"}),
                                   HostValue::ofSequence(DType::I64, {Tensor::scalarI64(3), Tensor(DType::I64, {0})}),
                                   HostValue::ofSequence(DType::F32, {}),
                                   HostValue::emptyOptional(),
                                   HostValue()};
  ASSERT_TRUE(writeValues(path, values).isOk());
  auto back = readValues(path);
  ASSERT_TRUE(back.isOk()) << back.status().message();
  ASSERT_EQ(back->size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ((*back)[i].form, values[i].form) << i;
  EXPECT_EQ((*back)[0].tensor.dtype(), DType::F16);
  EXPECT_EQ((*back)[0].tensor.elementAsDouble(1), -0.25);
  EXPECT_EQ((*back)[1].tensor.strings()[1], "a\nb");
  EXPECT_EQ((*back)[2].sequence[0].elementAsDouble(0), 3);
  EXPECT_EQ((*back)[2].sequence[1].dims(), std::vector<int64_t>{0});
  EXPECT_EQ((*back)[3].dtype, DType::F32);

  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(n));
    EXPECT_FALSE(readValues(path).isOk()) << n << " bytes";
  }
  std::remove(path.c_str());
  EXPECT_EQ(readValues(path).status().message(), "cannot open " + path);
}

}  // namespace
}  // namespace locution::runtime

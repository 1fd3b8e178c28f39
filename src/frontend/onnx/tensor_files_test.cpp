#include "frontend/onnx/tensor_files.h"

#include <gmock/gmock.h>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using hostops::HostValue;
using ::testing::HasSubstr;

TEST(TensorFiles, Tensors) {
  testing::TemporaryFolder folder;
  Tensor t = Tensor::of<float>(DType::F32, {2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(writeTensorProto(folder.file("t.pb"), "t", t).isOk());
  auto back = readTensorProto(folder.file("t.pb"));
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->name, "t");
  EXPECT_TRUE(back->tensor.identical(t));
  EXPECT_TRUE(readValueProto(folder.file("t.pb"), ValueKind::Tensor)->tensor.identical(t));
}

TEST(TensorFiles, SequencesAndOptionals) {
  testing::TemporaryFolder folder;
  std::string path = folder.file("v.pb");
  Tensor a = Tensor::scalarI64(1), b = Tensor::vectorI64({2, 3});
  HostValue sequence = HostValue::ofSequence(DType::I64, {a, b});
  ASSERT_TRUE(writeValueProto(path, "s", sequence, ValueKind::Sequence).isOk());
  auto back = readValueProto(path, ValueKind::Sequence);
  ASSERT_TRUE(back.isOk()) << back.status().message();
  ASSERT_TRUE(back->isSequence());
  ASSERT_EQ(back->sequence.size(), 2u);
  EXPECT_EQ(back->dtype, DType::I64);
  EXPECT_TRUE(back->sequence[1].identical(b));

  for (const HostValue& value :
       {HostValue(a), sequence, HostValue::emptyOptional(), HostValue::ofSequence(DType::F32, {})}) {
    ASSERT_TRUE(writeValueProto(path, "o", value, ValueKind::Optional).isOk());
    auto optional = readValueProto(path, ValueKind::Optional);
    ASSERT_TRUE(optional.isOk()) << optional.status().message();
    EXPECT_EQ(optional->form, value.form);
    EXPECT_EQ(optional->sequence.size(), value.sequence.size());
  }
  EXPECT_FALSE(writeValueProto(path, "n", HostValue(), ValueKind::Tensor).isOk());
}

TEST(TensorFiles, Errors) {
  testing::TemporaryFolder folder;
  EXPECT_THAT(readTensorProto(folder.file("no.pb")).status().message(), HasSubstr("can't open"));
  folder.write("bad.pb", "\x08");
  EXPECT_EQ(readTensorProto(folder.file("bad.pb")).status().message(),
            folder.file("bad.pb") + ": not a TensorProto: damaged or truncated protobuf");
  folder.write("bad.pb", "");
  EXPECT_EQ(readTensorProto(folder.file("bad.pb")).status().message(),
            folder.file("bad.pb") + ": tensor '': unknown data type 0");
  EXPECT_FALSE(writeTensorProto(folder.file("no/t.pb"), "t", Tensor::scalarI64(1)).isOk());
}

}  // namespace
}  // namespace locution::frontend

#include "frontend/onnx/tensor_proto.h"

#include <gmock/gmock.h>

#include <cstring>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

Result<Tensor> take(TensorProto proto) { return TensorReader(std::nullopt, 1 << 20).take(proto); }
std::string errorOf(const TensorProto& proto) {
  auto tensor = take(proto);
  return tensor ? "no error" : tensor.status().message();
}

TensorProto protoOf(int32_t type, std::vector<int64_t> dims) {
  TensorProto p;
  p.set_name("w");
  p.set_data_type(type);
  for (int64_t d : dims) p.add_dims(d);
  return p;
}

TEST(TensorProto, KnowsEveryDataType) {
  for (int number = TensorProto::DataType_MIN + 1; number <= TensorProto::DataType_MAX; ++number) {
    auto dtype = dtypeOfProto(number);
    ASSERT_TRUE(dtype.has_value()) << number;
    EXPECT_EQ(protoOfDType(*dtype), number);
  }
  EXPECT_FALSE(dtypeOfProto(0).has_value());
  EXPECT_FALSE(dtypeOfProto(TensorProto::DataType_MAX + 1).has_value());
}

TEST(TensorProto, RoundTripOfEveryDataType) {
  for (int number = 1; number <= TensorProto::DataType_MAX; ++number) {
    DType dtype = *dtypeOfProto(number);
    for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {7}, {0, 3}, {2, 3}}) {
      Tensor tensor(dtype, dims);
      if (dtype == DType::String) {
        for (auto& s : tensor.strings()) s = std::string("a\0b", 3);
      } else {
        for (size_t i = 0; i < tensor.bytes(); ++i)
          tensor.raw()[i] = static_cast<std::byte>(dtype == DType::Bool ? i % 2 : 17 * i + 3);
        int used = static_cast<int>(tensor.elements() * dtypeBits(dtype) % 8);
        if (used != 0 && isSubByte(dtype)) tensor.raw()[tensor.bytes() - 1] &= static_cast<std::byte>((1 << used) - 1);
      }
      auto back = take(tensorToProto("w", tensor));
      ASSERT_TRUE(back.isOk()) << back.status().message();
      EXPECT_TRUE(back->identical(tensor)) << dtypeName(dtype) << " " << tensor.shape().str();
    }
  }
}

TEST(TensorProto, TypedFields) {
  TensorProto p = protoOf(TensorProto::INT8, {3});
  for (int v : {-128, 5, 127}) p.add_int32_data(v);
  EXPECT_EQ(take(p)->toInts(), (std::vector<int64_t>{-128, 5, 127}));

  p = protoOf(TensorProto::UINT32, {2});
  p.add_uint64_data(1);
  p.add_uint64_data(0xffffffffu);
  EXPECT_EQ(take(p)->toInts(), (std::vector<int64_t>{1, 0xffffffff}));

  p = protoOf(TensorProto::FLOAT16, {2});
  p.add_int32_data(0x3c00);
  p.add_int32_data(0xc000);
  EXPECT_EQ(take(p)->elementAsDouble(0), 1.0);
  EXPECT_EQ(take(p)->elementAsDouble(1), -2.0);

  p = protoOf(TensorProto::BFLOAT16, {1});
  p.add_int32_data(0x4040);
  EXPECT_EQ(take(p)->elementAsDouble(0), 3.0);

  p = protoOf(TensorProto::INT4, {3});
  p.add_int32_data(0x8f);
  p.add_int32_data(0xf7);  // the upper half is padding
  EXPECT_EQ(take(p)->toInts(), (std::vector<int64_t>{-1, -8, 7}));
  EXPECT_EQ(static_cast<int>(take(p)->raw()[1]), 0x07);

  p = protoOf(TensorProto::UINT2, {5});
  p.add_int32_data(0b11100100);
  p.add_int32_data(0b00000001);
  EXPECT_EQ(take(p)->toInts(), (std::vector<int64_t>{0, 1, 2, 3, 1}));

  p = protoOf(TensorProto::COMPLEX64, {2});
  for (float v : {1.f, 2.f, 3.f, 4.f}) p.add_float_data(v);
  EXPECT_EQ(take(p)->data<float>()[3], 4.f);

  p = protoOf(TensorProto::BOOL, {2});
  p.add_int32_data(2);
  p.add_int32_data(0);
  EXPECT_EQ(static_cast<int>(take(p)->raw()[0]), 1);

  p = protoOf(TensorProto::STRING, {2});
  p.add_string_data("a");
  p.add_string_data("");
  EXPECT_EQ(take(p)->strings(), (std::vector<std::string>{"a", ""}));
}

TEST(TensorProto, RawBytesAreMovedNotCopied) {
  TensorProto p = protoOf(TensorProto::FLOAT, {1000});
  p.set_raw_data(std::string(4000, 'a'));
  const void* bytes = p.raw_data().data();
  TensorReader reader(std::nullopt, 0);
  auto tensor = reader.take(p);
  ASSERT_TRUE(tensor.isOk());
  EXPECT_EQ(tensor->raw(), bytes);
  EXPECT_FALSE(p.has_raw_data());
  EXPECT_EQ(p.name(), "w");
}

TEST(TensorProto, SizesMustFit) {
  TensorProto p = protoOf(TensorProto::FLOAT, {2, 3});
  p.set_raw_data(std::string(23, 'a'));
  EXPECT_EQ(errorOf(p), "tensor 'w': float32[2x3] takes 24 bytes, raw_data has 23");
  p.clear_raw_data();
  p.add_float_data(1);
  EXPECT_EQ(errorOf(p), "tensor 'w': float32[2x3] needs 6 entries in float_data, has 1");
  p = protoOf(TensorProto::STRING, {2});
  EXPECT_THAT(errorOf(p), HasSubstr("needs 2 entries in string_data"));
  p.set_raw_data("ab");
  EXPECT_THAT(errorOf(p), HasSubstr("strings can't be raw data"));
}

TEST(TensorProto, HostileDims) {
  for (int type : {TensorProto::FLOAT, TensorProto::INT4, TensorProto::STRING}) {
    EXPECT_THAT(errorOf(protoOf(type, {-1})), HasSubstr("an extent is negative"));
    EXPECT_THAT(errorOf(protoOf(type, {int64_t{1} << 62, 4})), HasSubstr("too large"));
    EXPECT_THAT(errorOf(protoOf(type, {int64_t{1} << 32, int64_t{1} << 32})), HasSubstr("too large"));
    EXPECT_NE(errorOf(protoOf(type, {int64_t{1} << 40})), "no error");
    EXPECT_EQ(errorOf(protoOf(type, {int64_t{1} << 62, int64_t{1} << 62, 0})), "no error");
  }
  EXPECT_EQ(errorOf(protoOf(99, {1})), "tensor 'w': unknown data type 99");
  EXPECT_EQ(errorOf(protoOf(0, {1})), "tensor 'w': unknown data type 0");
}

onnx::SparseTensorProto sparse(std::vector<int64_t> indices, std::vector<int64_t> indexDims,
                               std::vector<int64_t> dims) {
  onnx::SparseTensorProto p;
  *p.mutable_values() = tensorToProto("w", Tensor::of<float>(DType::F32, {2}, {5, 6}));
  *p.mutable_indices() = tensorToProto("", Tensor::of<int64_t>(DType::I64, std::move(indexDims), indices));
  for (int64_t d : dims) p.add_dims(d);
  return p;
}
std::string sparseError(onnx::SparseTensorProto p) {
  auto tensor = TensorReader(std::nullopt, 1000).takeSparse(p);
  return tensor ? "no error" : tensor.status().message();
}

TEST(TensorProto, SparseBecomesDense) {
  for (auto proto : {sparse({1, 5}, {2}, {2, 3}), sparse({0, 1, 1, 2}, {2, 2}, {2, 3})}) {
    auto tensor = TensorReader(std::nullopt, 1000).takeSparse(proto);
    ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
    EXPECT_TRUE(tensor->identical(Tensor::of<float>(DType::F32, {2, 3}, {0, 5, 0, 0, 0, 6})));
  }
}

TEST(TensorProto, HostileSparse) {
  EXPECT_EQ(sparseError(sparse({1, 6}, {2}, {2, 3})), "sparse tensor 'w': index 6 is outside 2x3");
  EXPECT_EQ(sparseError(sparse({1, -1}, {2}, {2, 3})), "sparse tensor 'w': index -1 is outside 2x3");
  EXPECT_EQ(sparseError(sparse({0, 1, 2, 0}, {2, 2}, {2, 3})), "sparse tensor 'w': index 2 is outside 2x3");
  EXPECT_THAT(sparseError(sparse({1, 2, 3}, {3}, {2, 3})), HasSubstr("indices 3 don't fit 2 values of rank 2"));
  EXPECT_THAT(sparseError(sparse({1, 2}, {2}, {1000, 1000})), HasSubstr("would take 4000000 bytes"));
  EXPECT_THAT(sparseError(sparse({1, 2}, {2}, {0, 1000})), HasSubstr("an empty tensor with 2 values"));
  EXPECT_THAT(sparseError(onnx::SparseTensorProto()), HasSubstr("unknown data type 0"));
}

}  // namespace
}  // namespace locution::frontend

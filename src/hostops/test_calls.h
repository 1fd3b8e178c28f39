// For tests: an operator called by name, with its result or its message.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hostops/host_op.h"

namespace locution::hostops {

struct CallResult {
  Status status;
  std::vector<HostValue> outputs;
  const Tensor& tensor(size_t i = 0) const { return outputs.at(i).tensor; }
  const std::string& message() const { return status.message(); }
};

inline CallResult call(const std::string& name, const std::vector<HostValue>& inputs, const Attrs& attrs = {},
                       size_t outputCount = 1) {
  CallResult result;
  const HostOp* op = findHostOp(name);
  if (op == nullptr) {
    result.status = Status::error("no operator " + name);
    return result;
  }
  // As the runtime does: attributes go through their bytes.
  auto parsed = parseAttrs(serialiseAttrs(attrs));
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  result.status = runHostOp(*op, HostCall{inputs, *parsed, outputCount, 7}, result.outputs);
  if (!result.status.isOk()) result.outputs.assign(outputCount, HostValue());
  return result;
}

inline Tensor f32(std::vector<int64_t> dims, const std::vector<float>& values) {
  return Tensor::of<float>(DType::F32, std::move(dims), values);
}
inline Tensor i64(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(DType::I64, std::move(dims), values);
}
inline Tensor boolean(std::vector<int64_t> dims, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(DType::Bool, std::move(dims), values);
}
inline Tensor text(std::vector<int64_t> dims, std::vector<std::string> values) {
  return Tensor::ofStrings(std::move(dims), std::move(values));
}
inline Attr ints(std::vector<int64_t> values) { return values; }

/// Same dtype, dims and elements (floats by value: NaN equals NaN).
inline void expectTensor(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(got.isValid());
  ASSERT_EQ(dtypeName(got.dtype()), dtypeName(wanted.dtype()));
  ASSERT_EQ(got.dims(), wanted.dims());
  if (got.dtype() == DType::String) {
    EXPECT_EQ(got.strings(), wanted.strings());
    return;
  }
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (isFloat(got.dtype())) {
      double g = got.elementAsDouble(i), w = wanted.elementAsDouble(i);
      if (g != g && w != w) continue;
      EXPECT_EQ(g, w) << "element " << i;
    } else {
      EXPECT_EQ(got.elementAsInt(i), wanted.elementAsInt(i)) << "element " << i;
    }
  }
}

}  // namespace locution::hostops

// Attributes of a host operator, and their bytes in an executable. The variant is graph::Attr's: a node's attributes are
// handed over as they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "hostops/byte_stream.h"
#include "support/status.h"

namespace locution::hostops {

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor>;
using Attrs = std::map<std::string, Attr, std::less<>>;

/// Equal attributes give equal bytes.
std::string serialiseAttrs(const Attrs& attrs);
/// Errors: bytes that `serialiseAttrs` can't have written.
Result<Attrs> parseAttrs(std::string_view bytes);

/// A whole tensor, its elements included.
void writeTensor(ByteWriter& out, const Tensor& tensor);
/// An invalid tensor, and `in` failed, where the bytes make no sense.
Tensor readTensor(ByteReader& in);
/// Bytes of `dims` elements; -1 when a dim is negative or the product (or its bytes) does not fit in 2^62.
int64_t checkedBytes(DType dtype, const std::vector<int64_t>& dims);

bool hasAttr(const Attrs& attrs, std::string_view key);
/// The value, or `fallback` when absent or of another type.
int64_t intAttr(const Attrs& attrs, std::string_view key, int64_t fallback);
double floatAttr(const Attrs& attrs, std::string_view key, double fallback);
std::string textAttr(const Attrs& attrs, std::string_view key, std::string_view fallback);
/// Empty when absent.
std::vector<int64_t> intsAttr(const Attrs& attrs, std::string_view key);
std::vector<double> floatsAttr(const Attrs& attrs, std::string_view key);
std::vector<std::string> textsAttr(const Attrs& attrs, std::string_view key);
/// A data type by its name ("float32") or by ONNX's TensorProto.DataType number.
Result<DType> dtypeAttr(const Attrs& attrs, std::string_view key, DType fallback);

}  // namespace locution::hostops

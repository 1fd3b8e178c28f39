// TypeProto to ValueType.
#pragma once

#include <set>
#include <string>

#include "core/shape.h"
#include "onnx.pb.h"
#include "support/status.h"

namespace locution::frontend {

/// Converts types; a dim without a number or a name gets a symbol of its own, "<value>.<index>".
class TypeReader {
 public:
  /// `symbols`: names that the file uses, which new ones avoid.
  explicit TypeReader(std::set<std::string> symbols = {}) : symbols_(std::move(symbols)) {}

  /// Errors: no type, an element type nobody knows, kinds that ValueType can't hold (maps, sequences of sequences).
  Result<ValueType> read(const onnx::TypeProto& proto, const std::string& valueName);

 private:
  Result<ValueType> readTensor(int32_t elemType, bool hasShape, const onnx::TensorShapeProto& shape,
                               const std::string& valueName);

  std::set<std::string> symbols_;
};

/// Every dim_param of the graph's inputs, outputs and value_info.
std::set<std::string> dimParamsOf(const onnx::GraphProto& graph);

}  // namespace locution::frontend

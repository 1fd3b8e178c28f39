// TensorProto and SparseTensorProto to Tensor, and back. Sizes are checked against dims before anything is allocated.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/tensor.h"
#include "onnx.pb.h"
#include "support/status.h"

namespace locution::frontend {

/// The DType of a TensorProto.DataType number; nullopt for UNDEFINED and what nobody knows.
std::optional<DType> dtypeOfProto(int64_t number);
int32_t protoOfDType(DType dtype);

/// Makes tensors of one model's protos.
class TensorReader {
 public:
  /// Without a folder, external data is an error. `maxDenseBytes`: budget for all sparse tensors together.
  TensorReader(std::optional<std::string> folder, int64_t maxDenseBytes)
      : folder_(std::move(folder)), denseBudget_(maxDenseBytes) {}

  /// Takes the proto's bytes: the proto is left empty but for its name. Errors name the tensor.
  Result<Tensor> take(onnx::TensorProto& proto);
  Result<Tensor> takeSparse(onnx::SparseTensorProto& proto);
  /// The files of external data read so far, as the protos name them.
  const std::set<std::string>& externalFiles() const { return externalFiles_; }

 private:
  Result<Tensor> takeExternal(const onnx::TensorProto& proto, DType dtype, std::vector<int64_t> dims);

  std::optional<std::string> folder_;
  int64_t denseBudget_;
  std::set<std::string> externalFiles_;
};

/// Elements as raw_data (strings as string_data).
onnx::TensorProto tensorToProto(const std::string& name, const Tensor& tensor);

}  // namespace locution::frontend

// From an ONNX file to a Graph in internal form: names and meaning of the newest ai.onnx opset, whatever opset the file is in.
// Invariant: nothing of the protobuf survives the import; weights are moved out of it, or mapped where they are external data.
// Files are not trusted: every index, size, name and path in them is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "frontend/onnx/tensor_files.h"
#include "graph/graph.h"
#include "support/status.h"

namespace locution::frontend {

struct ImportOptions {
  /// An operator that ops.inc doesn't have is an error; off: it is imported all the same (to look at a graph, or to test).
  bool requireKnownOps = true;
  /// Bytes that sparse tensors may take all together once they are dense.
  int64_t maxDenseBytes = int64_t{2} << 30;
  /// Nodes that inlining the model's functions may make.
  int64_t maxInlinedNodes = 1'000'000;
};

struct ImportedModel {
  graph::Graph graph;
  /// What is odd about the file but does no harm; each without the file's name.
  std::vector<std::string> warnings;
  /// Types that the file declares for values that are not graph inputs, by the value's name. Not to be trusted: nothing was
  /// inferred from them.
  std::map<std::string, ValueType> hints;
  /// What the file declares for each output, in order.
  std::vector<std::optional<ValueType>> declaredOutputs;
  /// Files of external data that were read, relative to the model's folder.
  std::vector<std::string> externalFiles;
  int64_t opset = 0;  ///< of ai.onnx
  std::string producer;
};

/// Imports the model at `path`; external data is looked for in its folder. Errors name the file, and node or tensor.
Result<ImportedModel> importModel(const std::string& path, const ImportOptions& options = {});
/// The same from memory. `name` stands for the file in messages; without a `folder`, external data is an error.
Result<ImportedModel> importModel(std::span<const std::byte> bytes, const std::string& name, const std::string& folder,
                                  const ImportOptions& options = {});

}  // namespace locution::frontend

// From a graph of fused kernels to an ordered list of steps over numbered buffers: what runs, on what, before any schedule.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::driver {

using BufferIndex = size_t;

/// Memory that steps read and write: a graph value (with all its aliases), or a temporary between the kernels of one group.
struct StepBuffer {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> dims;        ///< -1: known at run time only
  Tensor constant;                  ///< valid: a constant
  int32_t input = -1, output = -1;  ///< index of the model input it is, of the model output it is written to
  bool dynamic = false;             ///< allocated by the host operator that writes it
  int64_t bytes() const;
};

struct KernelStep {
  loop::Computation computation;
  std::vector<BufferIndex> inputs, outputs;  ///< of computation.inputs and .outputs
  std::string op;                            ///< the anchor's op type
};
struct HostStep {
  std::string op, node, attrs;
  /// Buffers with the dims under which this step sees them; -1: left out.
  struct Operand {
    int64_t buffer = -1;
    std::vector<int64_t> dims;
  };
  std::vector<Operand> inputs, outputs;
};
struct CheckStep {
  BufferIndex buffer;
  int64_t low, high;
  std::string node;
};
struct CopyStep {
  BufferIndex from;
  int32_t output;
};
using Step = std::variant<KernelStep, HostStep, CheckStep, CopyStep>;

struct PortInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> dims;
  ValueKind kind;
  BufferIndex buffer;
  bool copied = false;  ///< an output that a CopyStep fills
};

struct Lowered {
  std::vector<StepBuffer> buffers;
  std::vector<Step> steps;
  std::vector<PortInfo> inputs, outputs;
};

/// Errors: what can't be compiled (listed all at once), with the node.
Result<Lowered> lowerGraph(const graph::Graph& graph);

}  // namespace locution::driver

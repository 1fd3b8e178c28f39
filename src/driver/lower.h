// From a graph of fused kernels to an ordered list of steps over numbered buffers: what runs, on what, before any schedule.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "loop/compute.h"
#include "runtime/executable.h"
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
  std::vector<std::string> ops = {};         ///< of the nodes that it computes, in the graph's order
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
struct RegionStep {
  runtime::RegionKind kind = runtime::RegionKind::Call;
  std::string node, attrs;
  std::vector<HostStep::Operand> inputs, captured, outputs;
  std::vector<size_t> regions;  ///< into Lowered::regions
};
using Step = std::variant<KernelStep, HostStep, CheckStep, CopyStep, RegionStep>;

/// All of a host or region step's operands.
std::vector<HostStep::Operand> operandsOf(const Step& step);

/// A region with its code, or with what will make it.
struct RegionCode : runtime::Region {
  std::shared_ptr<const graph::Graph> graph = nullptr;  ///< for `verify`, else null; shared with the compiler
};
/// Given a region as a graph: its own inputs, then the captured ones. Fills all but `captures`.
using MakeRegion = std::function<Result<RegionCode>(graph::Graph, const std::string& name)>;

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
  std::vector<RegionCode> regions;
};

/// Nodes whose shapes, or the values that they are compiled for, are computed by others become one region at the end, together with all
/// that depends on them: compiled when a run comes there, by the same steps, what was open being known then.
/// Errors: what can't be compiled (listed all at once), with the node.
/// `target`: where to cut fused nodes into kernels depends on its caches.
/// `openInputs`: shapes of main inputs may be unknown, which counts like shapes that nodes compute: host operators take them as they come.
Result<Lowered> lowerGraph(const graph::Graph& graph, const MakeRegion& makeRegion, const TargetSpec& target,
                           bool openInputs = false);

}  // namespace locution::driver

// What If, Loop and Scan mean, whoever runs their regions: the runtime, or `verify` kernel by kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hostops/host_op.h"
#include "support/status.h"

namespace locution::runtime {

enum class RegionKind : uint8_t {
  Call,  ///< its one region, once
  If,    ///< input: condition; regions: then, else
  Loop,  ///< inputs: trip count, condition (either may be left out), state...; region: (iteration, condition, state...) to
         ///< (condition, state..., scanned...)
  Scan,  ///< inputs: state..., scanned...; region: (state..., slice...) to (state..., slice...)
};

/// An output of the node, with what it is when nothing was computed for it: a loop of no iterations.
struct OutputInfo {
  DType dtype = DType::F32;
  std::vector<int64_t> dims = {};  ///< of the stacked output; -1: not known
  bool isWanted = true;
};

/// Runs region `which` on its own inputs; what it captures is the callee's matter.
using RegionRunner =
    std::function<Result<std::vector<hostops::HostValue>>(size_t which, std::vector<hostops::HostValue> inputs)>;

struct ControlCall {
  RegionKind kind = RegionKind::Call;
  const hostops::Attrs& attrs;
  std::vector<hostops::HostValue> inputs;
  std::vector<OutputInfo> outputs;
};

/// The node's outputs. Errors: what a region says (with the iteration), outputs of one scan that differ in shape.
Result<std::vector<hostops::HostValue>> runControl(ControlCall call, const RegionRunner& run);

/// The slice at `index` of `axis`, which goes; a view where the bytes lie together.
Tensor sliceOf(const Tensor& tensor, int64_t axis, int64_t index);
/// Puts equal tensors side by side along a new axis.
Tensor stackOf(const std::vector<Tensor>& tensors, int64_t axis);

}  // namespace locution::runtime

// Holds every kernel of a model against the reference interpreter, and the executable against its kernels.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "support/status.h"

namespace locution::driver {

struct KernelVerdict {
  std::string kernel, op, plan;
  double share = 1;        ///< of the kernel's rows that the interpreter computed
  std::string difference;  ///< empty: equal
};

struct VerifyReport {
  std::vector<KernelVerdict> kernels;  ///< in order of execution
  std::vector<std::string>
      outputProblems;  ///< where the executable's outputs differ from what its kernels gave one by one
};

/// Values of all inputs, by name; the callback makes those that are not in `inputs`.
using MakeInput = std::function<Result<Tensor>(const std::string& name, DType dtype, const std::vector<int64_t>& dims)>;

/// `onKernel` is told each verdict as it comes. Host operators run as they are.
Result<VerifyReport> verifyModel(const std::string& path, const CompileOptions& options,
                                 const std::map<std::string, Tensor>& inputs, const MakeInput& makeInput, uint64_t seed,
                                 const std::function<void(const KernelVerdict&)>& onKernel);
/// The same for a graph from elsewhere.
Result<VerifyReport> verifyGraph(graph::Graph graph, const CompileOptions& options,
                                 const std::map<std::string, Tensor>& inputs, const MakeInput& makeInput, uint64_t seed,
                                 const std::function<void(const KernelVerdict&)>& onKernel);

}  // namespace locution::driver

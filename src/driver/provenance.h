// Which nodes of the graph each kernel computes, after fusion has inlined stages and cutting has shared them out.
#pragma once

#include <string>
#include <vector>

#include "loop/compute.h"

namespace locution::driver {

/// A node's stages, before fusion.
struct NodeStages {
  std::string op;
  std::vector<loop::Stage> stages;
};

/// For each kernel the op types of the nodes whose work it does, in the order of `nodes`. A stage that is stored belongs to the kernel
/// that stores it; one that was inlined belongs to all that read it.
std::vector<std::vector<std::string>> opsOfKernels(const std::vector<NodeStages>& nodes,
                                                   const std::vector<loop::Computation>& kernels);

}  // namespace locution::driver

// For tests: for each operator of gradients.inc the nodes that its gradient is checked on.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"

namespace locution::train {

struct GradientCase {
  std::vector<Tensor> inputs;  ///< float64 ones are differentiated; an invalid one is left out
  graph::Attrs attrs = {};
  std::set<size_t> constants = {};
  size_t outputs = 1;
};

/// float64 in [low, high], from a seed.
Tensor numbers(std::vector<int64_t> dims, double low, double high, uint64_t seed = 1);
const std::multimap<std::string, GradientCase>& gradientCases();

}  // namespace locution::train

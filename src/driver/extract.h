// Makes a graph of its own out of a part of another: a region, or some nodes of the main region.
#pragma once

#include <set>
#include <vector>

#include "graph/graph.h"

namespace locution::driver {

struct Extracted {
  graph::Graph graph;
  /// Values of the outer graph that the part reads: the new graph's last main inputs, in this order.
  std::vector<graph::ValueId> captures;
};

/// Main inputs: the region's, then the captures. Main outputs: the region's. Kernels become the nodes that they are made of, constants
/// share their bytes, shapes of computed values are forgotten: what holds for all runs may be less than what holds for one.
Extracted extractRegion(const graph::Graph& graph, graph::RegionId region);
/// The same of nodes of the main region, in order; `outputs` are values that they make.
Extracted extractNodes(const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
                       const std::vector<graph::ValueId>& outputs);

/// Values from outside of a node that its regions read, constants left out.
std::set<graph::ValueId> capturesOf(const graph::Graph& graph, graph::NodeId node);

}  // namespace locution::driver

// The order in which a graph's nodes can be imported, and what makes a graph no graph: dangling names, duplicates, cycles.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "onnx.pb.h"
#include "support/status.h"

namespace locution::frontend {

struct NodeOrder {
  std::vector<int> nodes;
  bool wasSorted = true;  ///< as the specification demands; otherwise sorted here, first come first served
};

/// `local`: inputs and initializers of the graph. `outside`: is it a name of a graph around? `describe` names a node.
Result<NodeOrder> orderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                             const std::unordered_set<std::string>& local,
                             const std::function<bool(const std::string&)>& outside,
                             const std::function<std::string(int)>& describe);

}  // namespace locution::frontend

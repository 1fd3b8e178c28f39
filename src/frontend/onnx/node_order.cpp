#include "frontend/onnx/node_order.h"

#include <queue>
#include <unordered_map>

#include "frontend/onnx/messages.h"

namespace locution::frontend {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Visit = std::function<void(const std::string&)>;

/// Names that the node's graphs read from around them.
void forEachCapture(const onnx::NodeProto& node, const Visit& visit);

void forEachFreeName(const onnx::GraphProto& graph, const Visit& visit) {
  std::unordered_set<std::string> defined;
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) defined.insert(tensor.values().name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output()) defined.insert(output);
  auto visitFree = [&](const std::string& name) {
    if (!name.empty() && !defined.contains(name)) visit(name);
  };
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) visitFree(input);
    forEachCapture(node, visitFree);
  }
  for (const auto& output : graph.output()) visitFree(output.name());
}

void forEachCapture(const onnx::NodeProto& node, const Visit& visit) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) forEachFreeName(attribute.g(), visit);
    for (const auto& graph : attribute.graphs()) forEachFreeName(graph, visit);
  }
}

/// Some nodes wait for each other: follows one chain of waiting until it closes.
Status cycleError(const Nodes& nodes, const std::unordered_map<std::string, int>& producer,
                  const std::vector<int>& waiting, const std::function<std::string(int)>& describe) {
  int at = 0;
  while (waiting[static_cast<size_t>(at)] == 0) ++at;
  std::vector<bool> seen(waiting.size());
  std::string tensor;
  while (!seen[static_cast<size_t>(at)]) {
    seen[static_cast<size_t>(at)] = true;
    int next = -1;
    auto consider = [&](const std::string& name) {
      auto from = producer.find(name);
      if (next >= 0 || from == producer.end() || waiting[static_cast<size_t>(from->second)] == 0) return;
      next = from->second;
      tensor = name;
    };
    for (const std::string& name : nodes.Get(at).input()) consider(name);
    forEachCapture(nodes.Get(at), consider);
    at = next;
  }
  return Status::error(describe(at) + ": its output " + named(tensor) + " depends on itself: the graph has a cycle");
}

}  // namespace

Result<NodeOrder> orderNodes(const Nodes& nodes, const std::unordered_set<std::string>& local,
                             const std::function<bool(const std::string&)>& outside,
                             const std::function<std::string(int)>& describe) {
  int count = nodes.size();
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < count; ++i) {
    for (const std::string& name : nodes.Get(i).output()) {
      if (name.empty()) continue;
      if (local.contains(name))
        return Status::error(describe(i) + ": output " + named(name) +
                             " is already an input or initializer of the graph");
      if (auto [at, fresh] = producer.emplace(name, i); !fresh)
        return Status::error(describe(i) + ": output " + named(name) + " is already an output of " +
                             describe(at->second));
    }
  }

  NodeOrder order;
  std::vector<int> waiting(static_cast<size_t>(count));  // producers that a node waits for
  std::vector<std::vector<int>> consumers(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto depend = [&](const std::string& name) {
      auto from = producer.find(name);
      if (from == producer.end()) return false;
      // A name of a graph around, read before a node of this graph takes it over, is left to mean what it meant.
      if (from->second >= i && outside(name)) return true;
      ++waiting[static_cast<size_t>(i)];
      consumers[static_cast<size_t>(from->second)].push_back(i);
      if (from->second >= i) order.wasSorted = false;
      return true;
    };
    for (int k = 0; k < nodes.Get(i).input_size(); ++k) {
      const std::string& name = nodes.Get(i).input(k);
      if (!name.empty() && !local.contains(name) && !depend(name) && !outside(name))
        return Status::error(describe(i) + ": input " + std::to_string(k) + " " + named(name) +
                             " is no input, initializer or output of another node");
    }
    forEachCapture(nodes.Get(i), [&](const std::string& name) { depend(name); });
  }

  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < count; ++i)
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order.nodes.push_back(i);
    for (int next : consumers[static_cast<size_t>(i)])
      if (--waiting[static_cast<size_t>(next)] == 0) ready.push(next);
  }
  if (static_cast<int>(order.nodes.size()) < count) return cycleError(nodes, producer, waiting, describe);
  return order;
}

}  // namespace locution::frontend

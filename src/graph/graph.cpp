#include "graph/graph.h"

#include <algorithm>

#include "support/check.h"

namespace locution::graph {
namespace {

template <typename T>
const T* attrAs(const Node& node, std::string_view key) {
  auto at = node.attrs.find(key);
  return at == node.attrs.end() ? nullptr : std::get_if<T>(&at->second);
}

}  // namespace

int64_t Node::intAttr(std::string_view key, int64_t fallback) const {
  const auto* value = attrAs<int64_t>(*this, key);
  return value ? *value : fallback;
}
double Node::floatAttr(std::string_view key, double fallback) const {
  if (const auto* value = attrAs<double>(*this, key)) return *value;
  const auto* integer = attrAs<int64_t>(*this, key);
  return integer ? static_cast<double>(*integer) : fallback;
}
std::string Node::stringAttr(std::string_view key, std::string_view fallback) const {
  const auto* value = attrAs<std::string>(*this, key);
  return value ? *value : std::string(fallback);
}
std::vector<int64_t> Node::intsAttr(std::string_view key) const {
  if (const auto* value = attrAs<std::vector<int64_t>>(*this, key)) return *value;
  const auto* single = attrAs<int64_t>(*this, key);
  return single ? std::vector<int64_t>{*single} : std::vector<int64_t>{};
}
std::vector<double> Node::floatsAttr(std::string_view key) const {
  if (const auto* value = attrAs<std::vector<double>>(*this, key)) return *value;
  const auto* single = attrAs<double>(*this, key);
  return single ? std::vector<double>{*single} : std::vector<double>{};
}

Graph::Graph() { regions_.emplace_back(); }

ValueId Graph::findValue(std::string_view valueName) const {
  auto at = byName_.find(valueName);
  return at == byName_.end() ? ValueId{} : at->second;
}

const Tensor* Graph::constant(ValueId id) const {
  return id.isValid() && value(id).isConstant() ? &value(id).constant : nullptr;
}

bool Graph::isDefined(ValueId id) const {
  const Value& v = value(id);
  if (v.isConstant()) return true;
  if (v.producer.isValid()) return !node(v.producer).dead;
  const Region& home = region(v.region);
  return !home.dead && std::find(home.inputs.begin(), home.inputs.end(), id) != home.inputs.end();
}

bool Graph::isMainInput(ValueId id) const {
  return std::find(main().inputs.begin(), main().inputs.end(), id) != main().inputs.end();
}

bool Graph::isMainOutput(ValueId id) const {
  const auto& regions = outputRegions_[static_cast<size_t>(id.index)];
  return std::find(regions.begin(), regions.end(), mainRegion()) != regions.end();
}

bool Graph::isBefore(NodeId a, NodeId b) const {
  auto ownerOf = [&](NodeId id) { return region(node(id).parent).owner; };
  if (node(a).parent != node(b).parent) {
    auto depthOf = [&](NodeId id) {
      int depth = 0;
      while ((id = ownerOf(id)).isValid()) ++depth;
      return depth;
    };
    int depthA = depthOf(a), depthB = depthOf(b);
    bool aIsDeeper = depthA > depthB;
    for (; depthA > depthB; --depthA) a = ownerOf(a);
    for (; depthB > depthA; --depthB) b = ownerOf(b);
    if (a == b) return !aIsDeeper;
    while (node(a).parent != node(b).parent) {
      if (ownerOf(a) == ownerOf(b)) {
        for (RegionId r : node(ownerOf(a)).regions)
          if (r == node(a).parent || r == node(b).parent) return r == node(a).parent;
        LOCUTION_CHECK(false) << "a region that its owner doesn't list";
      }
      a = ownerOf(a);
      b = ownerOf(b);
    }
  }
  return order_[static_cast<size_t>(a.index)] < order_[static_cast<size_t>(b.index)];
}

bool Graph::encloses(RegionId outer, RegionId inner) const {
  while (inner != outer) {
    NodeId owner = region(inner).owner;
    if (!owner.isValid()) return false;
    inner = node(owner).parent;
  }
  return true;
}

void Graph::visitRegion(RegionId id, const std::function<void(NodeId)>& visit) const {
  const std::vector<NodeId> nodes = region(id).nodes;  // a copy: `visit` may edit
  for (NodeId n : nodes) {
    if (node(n).dead) continue;
    visit(n);
    if (node(n).dead) continue;
    const std::vector<RegionId> inner = node(n).regions;
    for (RegionId r : inner)
      if (!region(r).dead) visitRegion(r, visit);
  }
}

void Graph::forEachNode(const std::function<void(NodeId)>& visit) const { visitRegion(mainRegion(), visit); }

std::string describe(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string out = "node";
  if (node.sourceIndex >= 0) out += " " + std::to_string(node.sourceIndex);
  if (!node.name.empty())
    out += " '" + node.name + "'";
  else if (node.sourceIndex < 0 && !node.outputs.empty() && node.outputs[0].isValid())
    out += " making '" + graph.value(node.outputs[0]).name + "'";
  // A kernel is known by the operator it was built around.
  out += " (" + (node.op == "Kernel" ? node.stringAttr("anchor", node.op) : node.op);
  if (graph.opset > 0) out += ", opset " + std::to_string(graph.opset);
  out += ")";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    out += i == 0 ? ": inputs " : ", ";
    if (!node.inputs[i].isValid()) {
      out += "(none)";
      continue;
    }
    const Value& value = graph.value(node.inputs[i]);
    out += value.name + " " + value.type.str();
  }
  return out;
}

}  // namespace locution::graph

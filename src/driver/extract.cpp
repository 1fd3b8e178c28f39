#include "driver/extract.h"

#include <functional>
#include <map>

#include "graph/patch.h"

namespace locution::driver {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::RegionId;
using graph::ValueId;

namespace {

class Extractor {
 public:
  explicit Extractor(const Graph& from) : from_(from), patch_(out_.graph) {
    out_.graph.name = from.name;
    out_.graph.opset = from.opset;
  }

  Extracted run(const std::vector<ValueId>& inputs, const std::vector<NodeId>& nodes,
                const std::vector<ValueId>& outputs) {
    const RegionId main = out_.graph.mainRegion();
    for (ValueId v : inputs) map_[v] = patch_.addInput(main, from_.value(v).name, from_.type(v));
    copyNodes(nodes, main);
    patch_.setRegionOutputs(main, mapped(outputs));
    return std::move(out_);
  }

 private:
  ValueId mapped(ValueId v) {
    if (!v.isValid()) return v;
    auto at = map_.find(v);
    if (at != map_.end()) return at->second;
    const graph::Value& value = from_.value(v);
    ValueId made;
    if (value.isConstant()) {
      made = patch_.addConstant(value.name, value.constant);
      if (value.type.quantisation) patch_.setType(made, value.type);
    } else {
      made = patch_.addInput(out_.graph.mainRegion(), value.name, value.type);
      out_.captures.push_back(v);
    }
    map_[v] = made;
    return made;
  }
  std::vector<ValueId> mapped(const std::vector<ValueId>& list) {
    std::vector<ValueId> out;
    out.reserve(list.size());
    for (ValueId v : list) out.push_back(mapped(v));
    return out;
  }

  void copyNodes(const std::vector<NodeId>& nodes, RegionId into) {
    for (NodeId id : nodes) {
      const Node& node = from_.node(id);
      if (node.op == "Kernel")
        copyKernel(node, into);
      else
        copyNode(node, into);
    }
  }

  // Its nodes, its results under the names that the outer graph knows.
  void copyKernel(const Node& node, RegionId into) {
    const graph::Region& inner = from_.region(node.regions[0]);
    copyNodes(inner.nodes, into);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].isValid()) continue;
      ValueId made = mapped(inner.outputs[i]);
      map_[node.outputs[i]] = made;
      patch_.rename(made, from_.value(node.outputs[i]).name);
    }
  }

  void copyNode(const Node& node, RegionId into) {
    graph::Patch::NewNode fields{node.op, mapped(node.inputs), node.attrs, {}, {}, node.name, node.sourceIndex};
    for (ValueId v : node.outputs) {
      ValueType type = v.isValid() ? from_.type(v) : ValueType{};
      type.shape = Shape::unranked();
      fields.types.push_back(std::move(type));
      fields.names.push_back(v.isValid() ? from_.value(v).name : "");
    }
    const NodeId made = patch_.append(into, std::move(fields));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].isValid())
        map_[node.outputs[i]] = patch_.output(made, i);
      else
        patch_.dropOutput(made, i);
    }
    for (RegionId r : node.regions) {
      const graph::Region& region = from_.region(r);
      const RegionId body = patch_.addRegion(made);
      for (ValueId v : region.inputs) map_[v] = patch_.addInput(body, from_.value(v).name, from_.type(v));
      copyNodes(region.nodes, body);
      patch_.setRegionOutputs(body, mapped(region.outputs));
    }
  }

  const Graph& from_;
  Extracted out_;
  graph::Patch patch_;
  std::map<ValueId, ValueId> map_;
};

}  // namespace

Extracted extractRegion(const Graph& graph, RegionId region) {
  const graph::Region& r = graph.region(region);
  return Extractor(graph).run(r.inputs, r.nodes, r.outputs);
}

Extracted extractNodes(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs) {
  return Extractor(graph).run({}, nodes, outputs);
}

std::set<ValueId> capturesOf(const Graph& graph, NodeId id) {
  std::set<ValueId> out;
  std::vector<RegionId> own;
  auto isInside = [&](ValueId v) {
    for (RegionId r : own)
      if (graph.encloses(r, graph.value(v).region)) return true;
    return false;
  };
  auto read = [&](ValueId v) {
    if (v.isValid() && !graph.value(v).isConstant() && !isInside(v)) out.insert(v);
  };
  std::function<void(RegionId)> walk = [&](RegionId r) {
    for (NodeId n : graph.region(r).nodes) {
      for (ValueId v : graph.node(n).inputs) read(v);
      for (RegionId inner : graph.node(n).regions) walk(inner);
    }
    for (ValueId v : graph.region(r).outputs) read(v);
  };
  own = graph.node(id).regions;
  for (RegionId r : own) walk(r);
  return out;
}

}  // namespace locution::driver

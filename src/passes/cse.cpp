// cse: equal nodes become one, so do equal constants of up to 64 KiB.
// Needs: nothing. Gives: in each region, no two nodes with the same op, attributes and inputs (random ones excepted).
//     %a = Relu(%x); %b = Relu(%x); %y = Add(%a, %b)   ->   %a = Relu(%x); %y = Add(%a, %a)
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

/// Larger ones are rarely equal, and reading them all would page in the whole model.
constexpr size_t kMaxConstantBytes = 64 << 10;

template <typename T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put(std::string& key, const std::string& text) {
  put(key, text.size());
  key += text;
}
void put(std::string& key, const Tensor& t) {
  put(key, t.dtype());
  put(key, t.rank());
  for (int64_t d : t.dims()) put(key, d);
  put(key, t.hash());
}
template <typename T>
void put(std::string& key, const std::vector<T>& list) {
  put(key, list.size());
  for (const T& v : list) put(key, v);
}

/// Equal keys: equal results.
std::string keyOf(const Node& node) {
  std::string key;
  put(key, node.op);
  for (const auto& [name, attr] : node.attrs) {
    put(key, name);
    put(key, attr.index());
    std::visit([&](const auto& value) { put(key, value); }, attr);
  }
  put(key, node.inputs.size());
  for (ValueId v : node.inputs) put(key, v.index);
  put(key, node.outputs.size());
  for (ValueId v : node.outputs) put(key, v.isValid());
  return key;
}

void mergeConstants(Patch& patch) {
  const Graph& graph = patch.graph();
  std::unordered_map<std::string, ValueId> seen;
  for (int32_t i = 0; i < graph.valueCount(); ++i) {
    ValueId id{i};
    const graph::Value& value = graph.value(id);
    if (!value.isConstant() || !graph.isUsed(id) || value.type.dtype == DType::String) continue;
    if (value.constant.bytes() > kMaxConstantBytes || value.type.quantisation || !value.type.layout.isRowMajor())
      continue;
    std::string key;
    put(key, value.region.index);
    put(key, value.constant);
    auto [at, isNew] = seen.try_emplace(key, id);
    if (!isNew && graph.value(at->second).constant.identical(value.constant)) patch.replaceUses(id, at->second);
  }
  patch.releaseDeadConstants();
}

void mergeNodes(Patch& patch, RegionId region, std::vector<std::unordered_map<std::string, NodeId>>& scopes) {
  const Graph& graph = patch.graph();
  scopes.emplace_back();
  const std::vector<NodeId> nodes = graph.region(region).nodes;
  for (NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (!node.regions.empty()) {
      const std::vector<RegionId> inner = node.regions;
      for (RegionId r : inner) mergeNodes(patch, r, scopes);
      continue;
    }
    // An Identity stands where a model output needs a name of its own.
    if (isRandom(graph, node) || node.op == "Identity") continue;
    std::string key = keyOf(node);
    NodeId earlier;
    for (const auto& scope : scopes)
      if (auto at = scope.find(key); at != scope.end()) earlier = at->second;
    if (!earlier.isValid()) {
      scopes.back().emplace(std::move(key), id);
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i].isValid()) patch.replaceUses(node.outputs[i], graph.node(earlier).outputs[i]);
    // An output of the model that keeps its own name still hangs on an Identity of its own.
    bool used = false;
    for (ValueId v : node.outputs) used = used || (v.isValid() && graph.isUsed(v));
    if (!used) patch.remove(id);
  }
  scopes.pop_back();
}

}  // namespace

Status eliminateCommonSubexpressions(Patch& patch, PassContext&) {
  mergeConstants(patch);
  std::vector<std::unordered_map<std::string, NodeId>> scopes;
  mergeNodes(patch, patch.graph().mainRegion(), scopes);
  return Status::ok();
}

}  // namespace locution::passes

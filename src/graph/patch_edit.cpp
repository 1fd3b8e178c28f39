// The rest of Patch: fields of nodes and values, constants, moving and removing.
#include <algorithm>
#include <set>

#include "graph/patch.h"
#include "support/check.h"

namespace locution::graph {

void Patch::setAttr(NodeId id, const std::string& key, Attr value) {
  ++edits_;
  node(id).attrs.insert_or_assign(key, std::move(value));
}

void Patch::eraseAttr(NodeId id, const std::string& key) {
  if (node(id).attrs.erase(key) > 0) ++edits_;
}

void Patch::setOp(NodeId id, const std::string& op) {
  if (node(id).op == op) return;
  ++edits_;
  node(id).op = op;
}

void Patch::setNodeName(NodeId id, const std::string& name) { node(id).name = name; }
void Patch::setSourceIndex(NodeId id, int32_t index) { node(id).sourceIndex = index; }

void Patch::setType(ValueId id, ValueType type) {
  if (value(id).type == type) return;
  ++edits_;
  value(id).type = std::move(type);
  noteQuantisation(id);
}

void Patch::rename(ValueId id, const std::string& name) {
  const std::string old = value(id).name;
  if (old == name && graph_.findValue(name) == id) return;
  ++edits_;
  freeName(id);
  claimName(id, freshName(name));
  for (ValueId q : graph_.quantised_) {
    Quantisation& quantisation = *value(q).type.quantisation;
    if (quantisation.scale == old) quantisation.scale = value(id).name;
    if (quantisation.zeroPoint == old) quantisation.zeroPoint = value(id).name;
  }
}

void Patch::makeConstant(ValueId id, Tensor tensor) {
  LOCUTION_CHECK(tensor.isValid());
  Value& changed = value(id);
  LOCUTION_CHECK(changed.producer.isValid() || changed.isConstant()) << "%" << changed.name << " is an input";
  ++edits_;
  if (changed.producer.isValid()) node(changed.producer).outputs[static_cast<size_t>(changed.producerOutput)] = {};
  changed.producer = {};
  changed.producerOutput = -1;
  changed.type.dtype = tensor.dtype();
  // In any other layout the tensor's dims are physical ones.
  if (changed.type.layout.isRowMajor()) changed.type.shape = tensor.shape();
  changed.constant = std::move(tensor);
  noteConstant(id);
}

void Patch::releaseConstant(ValueId id) {
  LOCUTION_CHECK(!graph_.isUsed(id)) << "the constant %" << value(id).name << " is in use";
  if (!value(id).isConstant()) return;
  ++edits_;
  value(id).constant = {};
  freeName(id);
}

int Patch::releaseDeadConstants() {
  std::set<std::string_view> named;
  for (ValueId q : graph_.quantised_) {
    if (!graph_.isDefined(q)) continue;
    named.insert(value(q).type.quantisation->scale);
    named.insert(value(q).type.quantisation->zeroPoint);
  }
  int count = 0;
  for (int32_t i = 0; i < graph_.valueCount(); ++i) {
    ValueId id{i};
    if (!value(id).isConstant() || graph_.isUsed(id) || named.contains(value(id).name)) continue;
    releaseConstant(id);
    ++count;
  }
  return count;
}

std::vector<NodeId> Patch::subtree(NodeId id) const {
  std::vector<NodeId> out = {id};
  for (size_t i = 0; i < out.size(); ++i)
    for (RegionId r : graph_.node(out[i]).regions) {
      const auto& nodes = graph_.region(r).nodes;
      out.insert(out.end(), nodes.begin(), nodes.end());
    }
  return out;
}

void Patch::moveToEnd(NodeId id, RegionId target) {
  for (RegionId r : node(id).regions) LOCUTION_CHECK(!graph_.encloses(r, target)) << "a node moved into its own region";
  ++edits_;
  const std::vector<NodeId> moved = subtree(id);
  for (NodeId n : moved)
    for (ValueId v : node(n).inputs) unlink(n, v);
  auto& old = region(node(id).parent).nodes;
  old.erase(old.begin() + positionOf(id));
  auto& nodes = region(target).nodes;
  order(id) = orderAt(target, static_cast<std::ptrdiff_t>(nodes.size()));
  nodes.push_back(id);
  node(id).parent = target;
  for (ValueId out : node(id).outputs)
    if (out.isValid()) value(out).region = target;
  for (NodeId n : moved)
    for (ValueId v : node(n).inputs) {
      link(n, v);
      if (v.isValid() && value(v).isConstant() && !graph_.encloses(value(v).region, node(n).parent)) {
        value(v).region = target;
        noteConstant(v);
      }
    }
}

void Patch::reorder(RegionId id, std::vector<NodeId> nodes) {
  auto& current = region(id).nodes;
  if (current == nodes) return;
  auto sorted = [](std::vector<NodeId> list) {
    std::sort(list.begin(), list.end());
    return list;
  };
  LOCUTION_CHECK(sorted(current) == sorted(nodes)) << "the new order isn't a permutation of the region's nodes";
  ++edits_;
  for (size_t i = 0; i < nodes.size(); ++i) order(nodes[i]) = static_cast<int64_t>(i) << 32;
  current = std::move(nodes);
  std::vector<ValueId> read;
  for (NodeId root : current)
    for (NodeId n : subtree(root)) read.insert(read.end(), node(n).inputs.begin(), node(n).inputs.end());
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  for (ValueId v : read)
    if (v.isValid())
      std::sort(users(v).begin(), users(v).end(), [&](NodeId a, NodeId b) { return graph_.isBefore(a, b); });
}

bool Patch::hasUsedOutput(NodeId id) const {
  const auto& outputs = graph_.node(id).outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return v.isValid() && graph_.isUsed(v); });
}

// Marks the node and all in its regions dead and lets go of what they read, which is added to `released`. The node stays in its
// region's list: the caller takes it out.
void Patch::kill(NodeId id, std::vector<ValueId>& released) {
  ++edits_;
  const std::vector<NodeId> dying = subtree(id);
  for (NodeId n : dying) {
    for (ValueId v : node(n).inputs) {
      unlink(n, v);
      if (v.isValid()) released.push_back(v);
    }
    for (RegionId r : node(n).regions)
      for (ValueId v : region(r).outputs) {
        unlinkOutput(r, v);
        released.push_back(v);
      }
  }
  for (NodeId n : dying) {
    Node& dead = node(n);
    dead.dead = true;
    dead.inputs.clear();
    for (ValueId v : dead.outputs)
      if (v.isValid()) freeName(v);
    for (RegionId r : dead.regions) {
      for (ValueId v : region(r).inputs) freeName(v);
      for (ValueId v : graph_.innerConstants_[r])
        if (value(v).region == r && !graph_.isUsed(v)) releaseConstant(v);
      graph_.innerConstants_.erase(r);
      Region gone;
      gone.owner = n;  // still asked for when users are compared
      gone.dead = true;
      region(r) = std::move(gone);
    }
  }
}

void Patch::remove(NodeId id) {
  LOCUTION_CHECK(!node(id).dead && !hasUsedOutput(id))
      << "a node removed whose output is in use: " << describe(graph_, id);
  std::ptrdiff_t at = positionOf(id);
  std::vector<ValueId> released;
  kill(id, released);
  auto& nodes = region(node(id).parent).nodes;
  nodes.erase(nodes.begin() + at);
}

int Patch::removeDead() {
  std::vector<NodeId> work;
  graph_.forEachNode([&](NodeId id) {
    if (!hasUsedOutput(id)) work.push_back(id);
  });
  std::set<RegionId> touched;
  std::vector<ValueId> released;
  int count = 0;
  while (!work.empty()) {
    NodeId id = work.back();
    work.pop_back();
    if (node(id).dead || hasUsedOutput(id)) continue;
    count += static_cast<int>(subtree(id).size());
    touched.insert(node(id).parent);
    kill(id, released);
    for (ValueId v : released)
      if (NodeId producer = value(v).producer; producer.isValid() && !node(producer).dead && !graph_.isUsed(v))
        work.push_back(producer);
    released.clear();
  }
  // Once a region, so that the whole stays linear.
  for (RegionId r : touched) {
    auto& nodes = region(r).nodes;
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [&](NodeId n) { return node(n).dead; }), nodes.end());
  }
  return count;
}

}  // namespace locution::graph

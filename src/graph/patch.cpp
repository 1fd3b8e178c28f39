// Editing a graph. Every user list is kept sorted by program order, so that an entry is found by bisection: no operation here
// scans all nodes, whatever a constant's number of readers.
#include "graph/patch.h"

#include <algorithm>
#include <iterator>

#include "support/check.h"

namespace locution::graph {
namespace {

// Gaps between the order keys of neighbours: this many bits of insertions at one place before a region is numbered anew.
constexpr int64_t kGap = int64_t{1} << 32;

}  // namespace

std::string Patch::freshName(const std::string& stem) {
  const std::string base = stem.empty() ? "v" : stem;
  if (!graph_.findValue(base).isValid()) return base;
  int& next = graph_.nextSuffix_.try_emplace(base, 2).first->second;
  for (;; ++next) {
    std::string candidate = base + "." + std::to_string(next);
    if (!graph_.findValue(candidate).isValid()) return candidate;
  }
}

void Patch::claimName(ValueId id, std::string name) {
  graph_.byName_.emplace(name, id);
  value(id).name = std::move(name);
}

void Patch::freeName(ValueId id) {
  auto at = graph_.byName_.find(value(id).name);
  if (at != graph_.byName_.end() && at->second == id) graph_.byName_.erase(at);
}

void Patch::noteQuantisation(ValueId id) {
  if (value(id).type.quantisation)
    graph_.quantised_.insert(id);
  else
    graph_.quantised_.erase(id);
}

void Patch::noteConstant(ValueId id) {
  if (value(id).region != graph_.mainRegion()) graph_.innerConstants_[value(id).region].push_back(id);
}

ValueId Patch::newValue(const std::string& stem, ValueType type, RegionId region) {
  ValueId id{graph_.valueCount()};
  graph_.values_.emplace_back();
  graph_.users_.emplace_back();
  graph_.outputRegions_.emplace_back();
  value(id).type = std::move(type);
  value(id).region = region;
  if (!stem.empty()) claimName(id, freshName(stem));
  noteQuantisation(id);
  return id;
}

void Patch::link(NodeId node, ValueId value) {
  if (!value.isValid()) return;
  auto& list = users(value);
  auto at = list.end();
  if (!list.empty() && graph_.isBefore(node, list.back()))
    at = std::upper_bound(list.begin(), list.end(), node, [&](NodeId a, NodeId b) { return graph_.isBefore(a, b); });
  list.insert(at, node);
}

void Patch::unlink(NodeId node, ValueId value) {
  if (!value.isValid()) return;
  auto& list = users(value);
  auto at = std::lower_bound(list.begin(), list.end(), node, [&](NodeId a, NodeId b) { return graph_.isBefore(a, b); });
  LOCUTION_CHECK(at != list.end() && *at == node) << "users of %" << graph_.value(value).name << " are out of step";
  list.erase(at);
}

void Patch::linkOutput(RegionId region, ValueId value) {
  LOCUTION_CHECK(value.isValid()) << "a region output without a value";
  graph_.outputRegions_[static_cast<size_t>(value.index)].push_back(region);
}

void Patch::unlinkOutput(RegionId region, ValueId value) {
  auto& list = graph_.outputRegions_[static_cast<size_t>(value.index)];
  auto at = std::find(list.begin(), list.end(), region);
  LOCUTION_CHECK(at != list.end());
  list.erase(at);
}

ValueId Patch::addInput(RegionId id, const std::string& name, ValueType type) {
  ++edits_;
  ValueId input = newValue(name.empty() ? "input" : name, std::move(type), id);
  region(id).inputs.push_back(input);
  return input;
}

RegionId Patch::addRegion(NodeId owner) {
  ++edits_;
  RegionId id{graph_.regionCount()};
  graph_.regions_.emplace_back().owner = owner;
  node(owner).regions.push_back(id);
  return id;
}

void Patch::setRegionInputs(RegionId id, std::vector<ValueId> inputs) {
  ++edits_;
  std::vector<ValueId> old = std::exchange(region(id).inputs, std::move(inputs));
  auto holds = [](const std::vector<ValueId>& list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (ValueId v : old)
    if (!holds(region(id).inputs, v)) freeName(v);
  for (ValueId v : region(id).inputs) {
    LOCUTION_CHECK(v.isValid() && !value(v).producer.isValid() && !value(v).isConstant())
        << "a region input that is defined elsewhere";
    value(v).region = id;
    if (graph_.findValue(value(v).name) != v) claimName(v, freshName(value(v).name));
  }
}

void Patch::setRegionOutputs(RegionId id, std::vector<ValueId> outputs) {
  ++edits_;
  for (ValueId v : region(id).outputs) unlinkOutput(id, v);
  region(id).outputs = std::move(outputs);
  for (ValueId v : region(id).outputs) linkOutput(id, v);
}

ValueId Patch::addConstant(const std::string& name, Tensor tensor, RegionId region) {
  LOCUTION_CHECK(tensor.isValid());
  ++edits_;
  ValueType type;
  type.dtype = tensor.dtype();
  type.shape = tensor.shape();
  ValueId id = newValue(name.empty() ? "const" : name, std::move(type), region);
  value(id).constant = std::move(tensor);
  noteConstant(id);
  return id;
}

std::ptrdiff_t Patch::positionOf(NodeId id) const {
  const auto& nodes = graph_.region(graph_.node(id).parent).nodes;
  auto key = [&](NodeId n) { return graph_.order_[static_cast<size_t>(n.index)]; };
  auto at = std::lower_bound(nodes.begin(), nodes.end(), key(id), [&](NodeId n, int64_t k) { return key(n) < k; });
  LOCUTION_CHECK(at != nodes.end() && *at == id) << "a node that isn't in its region";
  return at - nodes.begin();
}

// A key between the neighbours of `position`; numbers the region anew when they have no gap left.
int64_t Patch::orderAt(RegionId id, std::ptrdiff_t position) {
  const auto& nodes = region(id).nodes;
  auto at = static_cast<size_t>(position);
  if (nodes.empty()) return 0;
  if (at == nodes.size()) return order(nodes.back()) + kGap;
  if (at == 0) return order(nodes.front()) - kGap;
  if (order(nodes[at]) - order(nodes[at - 1]) < 2)
    for (size_t i = 0; i < nodes.size(); ++i) order(nodes[i]) = static_cast<int64_t>(i) * kGap;
  return order(nodes[at - 1]) + (order(nodes[at]) - order(nodes[at - 1])) / 2;
}

NodeId Patch::create(RegionId where, std::ptrdiff_t position, NewNode fields) {
  LOCUTION_CHECK(fields.names.empty() || fields.names.size() == fields.types.size()) << "names for some outputs only";
  LOCUTION_CHECK(!region(where).dead) << "a node for a region that was removed";
  ++edits_;
  int64_t key = orderAt(where, position);
  NodeId id{graph_.nodeCount()};
  graph_.nodes_.emplace_back();
  graph_.order_.push_back(key);
  region(where).nodes.insert(region(where).nodes.begin() + position, id);
  Node& made = node(id);
  made.op = std::move(fields.op);
  made.name = std::move(fields.name);
  made.sourceIndex = fields.sourceIndex;
  made.attrs = std::move(fields.attrs);
  made.inputs = std::move(fields.inputs);
  made.parent = where;
  for (ValueId v : made.inputs) link(id, v);
  for (size_t i = 0; i < fields.types.size(); ++i) {
    ValueId out = newValue(fields.names.empty() ? "" : fields.names[i], std::move(fields.types[i]), where);
    value(out).producer = id;
    value(out).producerOutput = static_cast<int32_t>(i);
    made.outputs.push_back(out);
  }
  // After the names that were asked for, so that a derived one doesn't take theirs.
  for (ValueId out : made.outputs)
    if (value(out).name.empty()) claimName(out, freshName(made.name.empty() ? made.op : made.name));
  return id;
}

NodeId Patch::append(RegionId where, NewNode fields) {
  return create(where, static_cast<std::ptrdiff_t>(region(where).nodes.size()), std::move(fields));
}
NodeId Patch::insertBefore(NodeId at, NewNode fields) {
  return create(node(at).parent, positionOf(at), std::move(fields));
}
NodeId Patch::insertAfter(NodeId at, NewNode fields) {
  return create(node(at).parent, positionOf(at) + 1, std::move(fields));
}

void Patch::dropOutput(NodeId id, size_t i) {
  ValueId out = node(id).outputs[i];
  if (!out.isValid()) return;
  LOCUTION_CHECK(!graph_.isUsed(out)) << "an output dropped that is in use: %" << value(out).name;
  ++edits_;
  node(id).outputs[i] = {};
  value(out).producer = {};
  value(out).producerOutput = -1;
  freeName(out);
}

void Patch::replaceNodeReads(ValueId from, ValueId to, NodeId except) {
  std::vector<NodeId> readers = std::move(users(from));
  users(from).clear();
  auto isKept = [&](NodeId n) { return n == except; };
  std::copy_if(readers.begin(), readers.end(), std::back_inserter(users(from)), isKept);
  readers.erase(std::remove_if(readers.begin(), readers.end(), isKept), readers.end());
  if (readers.empty()) return;
  ++edits_;
  for (NodeId n : readers) std::replace(node(n).inputs.begin(), node(n).inputs.end(), from, to);
  auto& list = users(to);
  if (readers.size() < list.size() / 16) {
    for (NodeId n : readers) link(n, to);
    return;
  }
  std::vector<NodeId> merged;
  merged.reserve(list.size() + readers.size());
  std::merge(list.begin(), list.end(), readers.begin(), readers.end(), std::back_inserter(merged),
             [&](NodeId a, NodeId b) { return graph_.isBefore(a, b); });
  list = std::move(merged);
}

void Patch::replaceRegionOutputs(ValueId from, ValueId to) {
  const std::vector<RegionId> readers = graph_.outputRegions_[static_cast<size_t>(from.index)];
  bool isMain = graph_.isMainOutput(from);
  bool canTakeName =
      value(to).producer.isValid() && !graph_.isMainOutput(to) && value(to).region == graph_.mainRegion();
  // Who already has the value under its own name: an input, a constant, or the Identity that would be made.
  NodeId producer = value(from).producer;
  bool keepsMain = isMain && (!producer.isValid() ||
                              (!canTakeName && node(producer).op == "Identity" && node(producer).input(0) == to));
  ValueId mainTo = to;
  if (isMain && !keepsMain && canTakeName) {
    std::string fromName = value(from).name, toName = value(to).name;
    freeName(from);
    freeName(to);
    claimName(from, toName);
    claimName(to, fromName);
    for (ValueId q : graph_.quantised_) {
      Quantisation& quantisation = *value(q).type.quantisation;
      for (std::string* name : {&quantisation.scale, &quantisation.zeroPoint}) {
        if (*name == fromName)
          *name = toName;
        else if (*name == toName)
          *name = fromName;
      }
    }
  } else if (isMain && !keepsMain) {
    std::string outputName = value(from).name;
    rename(from, outputName + ".old");
    NewNode identity{"Identity", {to}, {}, {value(to).type}, {outputName}};
    identity.sourceIndex = node(producer).sourceIndex;
    mainTo = output(append(graph_.mainRegion(), std::move(identity)));
  }
  for (RegionId r : readers) {
    if (r == graph_.mainRegion() && keepsMain) continue;
    ValueId now = r == graph_.mainRegion() ? mainTo : to;
    // One entry of `readers` a use: the first that is left is this one.
    auto& outputs = region(r).outputs;
    *std::find(outputs.begin(), outputs.end(), from) = now;
    unlinkOutput(r, from);
    linkOutput(r, now);
    ++edits_;
  }
}

void Patch::replaceUses(ValueId from, ValueId to, NodeId except) {
  if (from == to) return;
  if (!users(from).empty()) replaceNodeReads(from, to, except);
  if (graph_.outputUses(from) > 0) replaceRegionOutputs(from, to);
}

void Patch::setInput(NodeId id, size_t i, ValueId value) {
  Node& changed = node(id);
  if (i >= changed.inputs.size()) changed.inputs.resize(i + 1);
  if (changed.inputs[i] == value) return;
  ++edits_;
  unlink(id, changed.inputs[i]);
  changed.inputs[i] = value;
  link(id, value);
}

void Patch::setInputs(NodeId id, std::vector<ValueId> inputs) {
  Node& changed = node(id);
  if (changed.inputs == inputs) return;
  ++edits_;
  for (ValueId v : changed.inputs) unlink(id, v);
  changed.inputs = std::move(inputs);
  for (ValueId v : changed.inputs) link(id, v);
}

}  // namespace locution::graph

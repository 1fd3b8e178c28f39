// The rule of an op says how its axes, pads and shapes are named below the transpose. Elementwise ops need none.
#include "passes/sink_rules.h"

#include <algorithm>

namespace locution::passes {

/// One attempt. x = Transpose(y, perm): dim i of x is dim perm[i] of y.
struct SinkRules {
  TransposeSinker& s;
  Patch& patch;
  const Graph& graph;
  NodeId id;
  const Node& node;
  const Ints& perm;

  SinkRules(TransposeSinker& sinker, NodeId n, const Ints& p)
      : s(sinker), patch(sinker.patch_), graph(sinker.graph_), id(n), node(sinker.graph_.node(n)), perm(p) {}

  int64_t rank() const { return static_cast<int64_t>(perm.size()); }
  int64_t axisBelow(int64_t axis) const { return perm[static_cast<size_t>(axis < 0 ? axis + rank() : axis)]; }
  /// Input 0 is the transposed one.
  bool isDataTransposed() const {
    auto source = s.sourceOf(node.input(0));
    return source.isTransposed() && source.perm == perm;
  }
  void takeData() { patch.setInput(id, 0, s.sourceOf(node.input(0)).value); }
  /// The permutation left once `axes` (of x) are gone.
  Ints without(const Ints& axes) const {
    Ints kept;
    for (int64_t i = 0; i < rank(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(perm[static_cast<size_t>(i)]);
    Ints sorted = kept;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t& p : kept) p = std::lower_bound(sorted.begin(), sorted.end(), p) - sorted.begin();
    return kept;
  }

  bool elementwise() {
    if (rankOf(graph, node.outputs[0]) != rank()) return false;
    std::vector<ValueId> inputs = s.allBelow(id, node.inputs, perm);
    if (inputs.empty()) return false;
    patch.setInputs(id, std::move(inputs));
    s.restoreAll(id, perm);
    return true;
  }
  /// Only input 0 is spread over the output; the others are scalars or mean something else.
  bool dataOnly() {
    if (!isDataTransposed()) return false;
    takeData();
    s.restoreAll(id, perm);
    return true;
  }
  bool quantise() {
    if (!isDataTransposed() || node.intAttr("block_size", 0) != 0) return false;
    if (rankOf(graph, node.input(1)) > 0) patch.setAttr(id, "axis", axisBelow(node.intAttr("axis", 1)));
    return dataOnly();
  }
  bool spatial() {
    if (!isDataTransposed() || node.intAttr("channels_last", 0) != 0 || perm != toChannelsFirst(rank())) return false;
    // MaxPool's indices count in the order of the layout; the moments of a BatchNormalization in training have dims of their own.
    if (std::any_of(node.outputs.begin() + 1, node.outputs.end(), [](ValueId v) { return v.isValid(); })) return false;
    takeData();
    patch.setAttr(id, "channels_last", int64_t{1});
    s.restoreAll(id, perm);
    return true;
  }
  /// Scale and zero point are of the whole tensor.
  bool dynamicQuantise() {
    if (!isDataTransposed()) return false;
    takeData();
    s.restore(id, 0, perm);
    return true;
  }
  bool concat() {
    const int64_t axis = axisBelow(node.intAttr("axis", 0));
    std::vector<ValueId> inputs = s.allBelow(id, node.inputs, perm);
    if (inputs.empty()) return false;
    patch.setInputs(id, std::move(inputs));
    patch.setAttr(id, "axis", axis);
    s.restoreAll(id, perm);
    return true;
  }
  /// Split, Softmax ...: an axis attribute, output dims like the input's.
  bool alongAxis(int64_t fallback) {
    if (!isDataTransposed()) return false;
    patch.setAttr(id, "axis", axisBelow(node.intAttr("axis", fallback)));
    return dataOnly();
  }
  bool arg() {
    if (!isDataTransposed()) return false;
    const bool keeps = node.intAttr("keepdims", 1) != 0;
    int64_t axis = node.intAttr("axis", 0);
    if (axis < 0) axis += rank();
    takeData();
    patch.setAttr(id, "axis", axisBelow(axis));
    s.restoreAll(id, keeps ? perm : without({axis}));
    return true;
  }
  bool reduce() {
    std::optional<Ints> axes = node.hasInput(1) ? constantInts(graph, node.input(1)) : Ints{};
    if (!isDataTransposed() || !axes) return false;
    if (axes->empty() && node.intAttr("noop_with_empty_axes", 0) != 0) return dataOnly();
    const bool keeps = node.intAttr("keepdims", 1) != 0;
    Ints mapped;
    for (int64_t& a : *axes) {
      if (a < 0) a += rank();
      mapped.push_back(axisBelow(a));
    }
    takeData();
    if (axes->empty()) {
      for (int64_t i = 0; i < rank(); ++i) axes->push_back(i);
    } else {
      std::sort(mapped.begin(), mapped.end());
      patch.setInput(id, 1, addInts(patch, "axes", mapped));
    }
    s.restoreAll(id, keeps ? perm : without(*axes));
    return true;
  }
  bool pad() {
    std::optional<Ints> pads = constantInts(graph, node.input(1));
    std::optional<Ints> axes = node.hasInput(3) ? constantInts(graph, node.input(3)) : Ints{};
    if (!isDataTransposed() || !pads || !axes) return false;
    if (node.hasInput(3)) {
      for (int64_t& a : *axes) a = axisBelow(a);
      patch.setInput(id, 3, addInts(patch, "axes", *axes));
    } else {
      if (pads->size() != 2 * perm.size()) return false;
      Ints below(pads->size());
      for (size_t i = 0; i < perm.size(); ++i) {
        below[static_cast<size_t>(perm[i])] = (*pads)[i];
        below[static_cast<size_t>(perm[i]) + perm.size()] = (*pads)[i + perm.size()];
      }
      patch.setInput(id, 1, addInts(patch, "pads", below));
    }
    return dataOnly();
  }
  bool slice() {
    if (!isDataTransposed()) return false;
    Ints axes;
    if (node.hasInput(3)) {
      std::optional<Ints> known = constantInts(graph, node.input(3));
      if (!known) return false;
      axes = std::move(*known);
    } else {
      std::optional<Ints> count = staticExtents(graph, node.input(1));
      if (!count || count->size() != 1) return false;
      for (int64_t i = 0; i < (*count)[0]; ++i) axes.push_back(i);
    }
    for (int64_t& a : axes) a = axisBelow(a);
    patch.setInput(id, 3, addInts(patch, "axes", axes));
    return dataOnly();
  }
  bool expand() {
    std::optional<Ints> dims = staticExtents(graph, node.outputs[0]);
    if (!isDataTransposed() || !dims || dims->size() != perm.size()) return false;
    patch.setInput(id, 1, addInts(patch, "shape", permuteList(*dims, inverse(perm))));
    return dataOnly();
  }
  bool tile() {
    std::optional<Ints> repeats = constantInts(graph, node.input(1));
    if (!isDataTransposed() || !repeats || repeats->size() != perm.size()) return false;
    patch.setInput(id, 1, addInts(patch, "repeats", permuteList(*repeats, inverse(perm))));
    return dataOnly();
  }
  bool gather() {
    const int64_t indexRank = rankOf(graph, node.input(1));
    if (!isDataTransposed() || indexRank < 0 || indexRank > 1) return false;
    int64_t axis = node.intAttr("axis", 0);
    if (axis < 0) axis += rank();
    takeData();
    patch.setAttr(id, "axis", axisBelow(axis));
    s.restoreAll(id, indexRank == 1 ? perm : without({axis}));
    return true;
  }
  bool layerNorm() {
    int64_t axis = node.intAttr("axis", -1);
    if (axis < 0) axis += rank();
    for (int64_t i = axis; i < rank(); ++i)
      if (perm[static_cast<size_t>(i)] != i) return false;
    return dataOnly();
  }
  bool reshape();
};

/// Dims that split or merge do so below the transpose as well, as long as those that merge lie side by side there. Dims of
/// extent 1 go with their neighbour.
bool SinkRules::reshape() {
  std::optional<Ints> from = staticExtents(graph, node.input(0)), to = staticExtents(graph, node.outputs[0]);
  if (!isDataTransposed() || !from || !to || elementsOf(*from) == 0) return false;
  struct Group {
    Ints from, to;  // dims of x, dims of the output
  };
  std::vector<Group> groups;
  size_t f = 0, t = 0;
  while (f < from->size() || t < to->size()) {
    Group group;
    if (f < from->size() && t < to->size() && (*from)[f] == 1 && (*to)[t] == 1) {
      groups.push_back({{static_cast<int64_t>(f++)}, {static_cast<int64_t>(t++)}});
      continue;
    }
    int64_t have = 1, want = 1;
    // Units that only one side has: those of the output join a neighbour.
    while (t < to->size() && (*to)[t] == 1) group.to.push_back(static_cast<int64_t>(t++));
    while (f < from->size() && (*from)[f] == 1) ++f;
    while ((f < from->size() || t < to->size()) && (have != want || have == 1)) {
      if (have <= want && f < from->size()) {
        if ((*from)[f] != 1) group.from.push_back(static_cast<int64_t>(f));
        have *= (*from)[f++];
      } else if (t < to->size()) {
        group.to.push_back(static_cast<int64_t>(t));
        want *= (*to)[t++];
      } else {
        break;
      }
    }
    if (have != want) return false;
    if (!group.from.empty() || groups.empty())
      groups.push_back(std::move(group));
    else
      groups.back().to.insert(groups.back().to.end(), group.to.begin(), group.to.end());
  }
  // Where the dims of y lie, units left out.
  Ints yDims(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) yDims[static_cast<size_t>(perm[i])] = (*from)[i];
  Ints place(perm.size(), -1);
  for (size_t d = 0, n = 0; d < yDims.size(); ++d)
    if (yDims[d] != 1) place[d] = static_cast<int64_t>(n++);
  auto below = [&](int64_t xDim) { return perm[static_cast<size_t>(xDim)]; };
  for (const Group& g : groups)
    for (size_t i = 1; i < g.from.size(); ++i)
      if (place[static_cast<size_t>(below(g.from[i]))] != place[static_cast<size_t>(below(g.from[i - 1]))] + 1)
        return false;
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return (a.from.empty() ? -1 : below(a.from[0])) < (b.from.empty() ? -1 : below(b.from[0]));
  });
  Ints order, dims;  // output dims in the order of y
  for (const Group& g : groups)
    for (int64_t d : g.to) {
      order.push_back(d);
      dims.push_back((*to)[static_cast<size_t>(d)]);
    }
  takeData();
  patch.setOp(id, "Reshape");
  const Attrs attrs = node.attrs;
  for (const auto& [key, value] : attrs) patch.eraseAttr(id, key);
  patch.setInputs(id, {node.input(0), addInts(patch, "shape", dims)});
  s.restore(id, 0, inverse(order));
  return true;
}

bool sinkByRule(TransposeSinker& sinker, NodeId id, const Ints& perm) {
  SinkRules rules(sinker, id, perm);
  const std::string& op = rules.node.op;
  struct Entry {
    std::string_view op;
    bool (*rule)(SinkRules&);
  };
  static constexpr Entry kRules[] = {
      {"Concat", [](SinkRules& r) { return r.concat(); }},
      {"Split", [](SinkRules& r) { return r.alongAxis(0); }},
      {"Softmax", [](SinkRules& r) { return r.alongAxis(-1); }},
      {"LogSoftmax", [](SinkRules& r) { return r.alongAxis(-1); }},
      {"Hardmax", [](SinkRules& r) { return r.alongAxis(-1); }},
      {"LpNormalization", [](SinkRules& r) { return r.alongAxis(-1); }},
      {"ArgMax", [](SinkRules& r) { return r.arg(); }},
      {"ArgMin", [](SinkRules& r) { return r.arg(); }},
      {"Pad", [](SinkRules& r) { return r.pad(); }},
      {"Slice", [](SinkRules& r) { return r.slice(); }},
      {"Expand", [](SinkRules& r) { return r.expand(); }},
      {"Tile", [](SinkRules& r) { return r.tile(); }},
      {"Gather", [](SinkRules& r) { return r.gather(); }},
      {"LayerNormalization", [](SinkRules& r) { return r.layerNorm(); }},
      {"Reshape", [](SinkRules& r) { return r.reshape(); }},
      {"Flatten", [](SinkRules& r) { return r.reshape(); }},
      {"Squeeze", [](SinkRules& r) { return r.reshape(); }},
      {"Unsqueeze", [](SinkRules& r) { return r.reshape(); }},
      {"Clip", [](SinkRules& r) { return r.dataOnly(); }},
      {"Dropout", [](SinkRules& r) { return r.dataOnly(); }},
      {"CastLike", [](SinkRules& r) { return r.dataOnly(); }},
      {"QuantizeLinear", [](SinkRules& r) { return r.quantise(); }},
      {"DequantizeLinear", [](SinkRules& r) { return r.quantise(); }},
      {"DynamicQuantizeLinear", [](SinkRules& r) { return r.dynamicQuantise(); }},
      {"BitCast", [](SinkRules&) { return false; }},
  };
  for (const Entry& entry : kRules)
    if (entry.op == op) return entry.rule(rules);
  if (hasChannelsLast(rules.node)) return rules.spatial();
  if (op.starts_with("Reduce")) return rules.reduce();
  return patternOf(rules.node) == ops::Pattern::Elementwise && rules.elementwise();
}

}  // namespace locution::passes

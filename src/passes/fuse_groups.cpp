// The order is kept as in Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006): a merge
// looks only at groups that stand between the two, and mostly at none of them.
#include "passes/fuse_groups.h"

#include <algorithm>
#include <set>

#include "support/check.h"

#include "passes/specialise.h"

namespace locution::passes {
namespace {

/// Searches that grow past this give up (the merge is refused): compile time stays linear.
constexpr size_t kMaxVisited = 400;

FuseKind kindOf(const Graph& graph, const Node& node) {
  if (!node.regions.empty()) return FuseKind::Plain;
  const ops::OpDef* op = ops::findOp(node.op);
  if (!op || !op->compute) return FuseKind::Plain;
  // What needs a value that isn't known yet waits for it; a kernel would hold the others up.
  if (const std::vector<size_t>* needed = neededInputs(node.op); needed && op->pattern != ops::Pattern::Alias)
    for (size_t i : *needed)
      if (node.hasInput(i) && !graph.constant(node.input(i))) return FuseKind::Plain;
  int outputs = 0;
  for (const auto* list : {&node.inputs, &node.outputs})
    for (ValueId v : *list)
      if (v.isValid() && (!isNumericTensor(graph.type(v)) || !staticExtents(graph, v))) return FuseKind::Plain;
  for (ValueId v : node.outputs) outputs += v.isValid() ? 1 : 0;
  if (outputs != 1) return op->pattern == ops::Pattern::Alias ? FuseKind::Plain : FuseKind::Alone;
  switch (op->pattern) {
    case ops::Pattern::Alias:
      return FuseKind::Alias;
    case ops::Pattern::Elementwise:
      return FuseKind::Elementwise;
    case ops::Pattern::Injective:
      return FuseKind::Injective;
    case ops::Pattern::Reduction:
      return FuseKind::Reduction;
    case ops::Pattern::Contraction:
      return FuseKind::Contraction;
    case ops::Pattern::Opaque:
      return FuseKind::Alone;
    default:
      return FuseKind::Plain;
  }
}

void sortUnique(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

FuseGroups::FuseGroups(const Graph& graph, RegionId region)
    : graph_(graph),
      nodes_(graph.region(region).nodes),
      number_(static_cast<size_t>(graph.nodeCount()), -1),
      region_(region) {
  const size_t n = nodes_.size();
  for (size_t i = 0; i < n; ++i) {
    number_[static_cast<size_t>(nodes_[i].index)] = static_cast<int32_t>(i);
    kinds_.push_back(kindOf(graph, graph.node(nodes_[i])));
    group_.push_back(static_cast<int>(i));
    members_.push_back({static_cast<int>(i)});
    place_.push_back(static_cast<int64_t>(i));
  }
  readerList_.assign(static_cast<size_t>(graph.valueCount()), -1);
  preds_.resize(n);
  succs_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (ValueId v : graph.node(nodes_[i]).outputs)
      if (v.isValid()) {
        readerList_[static_cast<size_t>(v.index)] = static_cast<int32_t>(readers_.size());
        readers_.push_back(findReaders(v));
        succs_[i].insert(succs_[i].end(), readers_.back().begin(), readers_.back().end());
      }
    sortUnique(succs_[i]);
    for (int r : succs_[i]) preds_[static_cast<size_t>(r)].push_back(static_cast<int>(i));
  }
}

int FuseGroups::producer(ValueId value) const {
  NodeId p = value.isValid() ? graph_.value(value).producer : NodeId{};
  // Nodes made since (kernels) have no number.
  return p.isValid() && static_cast<size_t>(p.index) < number_.size() ? number_[static_cast<size_t>(p.index)] : -1;
}

const std::vector<int>& FuseGroups::readers(ValueId value) const {
  const int32_t list = readerList_[static_cast<size_t>(value.index)];
  LOCUTION_CHECK(list >= 0) << "%" << graph_.value(value).name << " isn't made in this region";
  return readers_[static_cast<size_t>(list)];
}

std::vector<int> FuseGroups::findReaders(ValueId value) const {
  std::vector<int> out;
  for (NodeId user : graph_.users(value)) {
    while (graph_.node(user).parent != region_) user = graph_.region(graph_.node(user).parent).owner;
    out.push_back(number_[static_cast<size_t>(user.index)]);
  }
  sortUnique(out);
  return out;
}

ValueId FuseGroups::output(int n) const {
  ValueId out;
  for (ValueId v : node(n).outputs) {
    if (!v.isValid()) continue;
    if (out.isValid()) return {};
    out = v;
  }
  return out;
}

std::vector<int> FuseGroups::neighbours(int group, bool forward) const {
  std::vector<int> out;
  for (int m : members(group))
    for (int k : forward ? succs_[static_cast<size_t>(m)] : preds_[static_cast<size_t>(m)])
      if (groupOf(k) != group) out.push_back(groupOf(k));
  sortUnique(out);
  return out;
}

bool FuseGroups::mayFollow(const std::vector<int>& set, int n) const {
  std::set<int> groups;
  int64_t first = place(groupOf(set[0]));
  for (int m : set) {
    groups.insert(groupOf(m));
    first = std::min(first, place(groupOf(m)));
  }
  std::vector<int> work;
  std::set<int> seen;
  auto visit = [&](int group) {
    if (!groups.contains(group) && place(group) > first && seen.insert(group).second) work.push_back(group);
  };
  for (int p : preds(n)) visit(groupOf(p));
  while (!work.empty()) {
    int group = work.back();
    work.pop_back();
    if (seen.size() > kMaxVisited) return false;
    for (int p : neighbours(group, false)) {
      if (groups.contains(p)) return false;
      visit(p);
    }
  }
  return true;
}

/// Groups reached from `from` that stand before (forward) or behind (backward) `avoid`; nothing when one of them leads to it, or when
/// there are too many.
std::optional<std::vector<int>> FuseGroups::reach(int from, int avoid, bool forward) const {
  std::vector<int> out = neighbours(from, forward);
  auto isBetween = [&](int g) { return forward ? place(g) < place(avoid) : place(g) > place(avoid); };
  out.erase(std::remove_if(out.begin(), out.end(), [&](int g) { return !isBetween(g); }), out.end());
  std::set<int> seen(out.begin(), out.end());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out.size() > kMaxVisited) return std::nullopt;
    for (int g : neighbours(out[i], forward)) {
      if (g == avoid) return std::nullopt;
      if (isBetween(g) && seen.insert(g).second) out.push_back(g);
    }
  }
  std::sort(out.begin(), out.end(), [&](int a, int b) { return place(a) < place(b); });
  return out;
}

bool FuseGroups::merge(int a, int b) {
  int low = groupOf(a), high = groupOf(b);
  if (low == high) return true;
  if (place(low) > place(high)) std::swap(low, high);
  std::optional<std::vector<int>> after = reach(low, high, true);
  if (!after) return false;
  if (after->empty()) {
    place(low) = place(high);
  } else {
    std::optional<std::vector<int>> before = reach(high, low, false);
    if (!before) return false;
    // What leads to `high`, then the merged group, then what `low` leads to, in the places that all of these have now.
    std::vector<int64_t> places = {place(low), place(high)};
    for (const auto* list : {&*before, &*after})
      for (int g : *list) places.push_back(place(g));
    std::sort(places.begin(), places.end());
    size_t next = 0;
    for (int g : *before) place(g) = places[next++];
    place(low) = places[next];
    next += 2;
    for (int g : *after) place(g) = places[next++];
  }
  auto &kept = members_[static_cast<size_t>(low)], &gone = members_[static_cast<size_t>(high)];
  for (int m : gone) group_[static_cast<size_t>(m)] = low;
  kept.insert(kept.end(), gone.begin(), gone.end());
  std::sort(kept.begin(), kept.end());
  gone.clear();
  return true;
}

std::vector<int> FuseGroups::order() const {
  std::vector<int> out;
  for (int g = 0; g < size(); ++g)
    if (!members(g).empty()) out.push_back(g);
  std::sort(out.begin(), out.end(), [&](int a, int b) { return place(a) < place(b); });
  return out;
}

}  // namespace locution::passes

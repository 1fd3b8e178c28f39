#include "passes/fuse_rules.h"

#include <algorithm>
#include <functional>
#include <set>

#include "ops/contexts.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_projection.h"

namespace locution::passes {
namespace {

constexpr size_t kMaxNodes = 32;
constexpr size_t kMaxInputs = 12;
/// A convolution's data may be read through a transpose as long as a pixel is this small.
constexpr int64_t kMaxTransposedChannels = 4;

bool isOneOf(std::string_view op, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Dims of extent 1 left out.
Ints withoutUnits(Ints dims) {
  dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
  return dims;
}

class GroupFormer {
 public:
  GroupFormer(const Graph& graph, FuseGroups& groups, const TargetSpec& target)
      : graph_(graph), g_(groups), target_(target) {}

  void run() {
    formAttention(graph_, g_);
    for (int n = 0; n < g_.size(); ++n)
      if (g_.kind(n) == FuseKind::Contraction && g_.isAlone(n)) contraction(n);
    for (int n = 0; n < g_.size(); ++n)
      if (isDepthwise(n)) windows(n);
    for (int n = 0; n < g_.size(); ++n)
      if (g_.kind(n) == FuseKind::Reduction && g_.isAlone(n)) reduction(n);
    for (int n = g_.size(); n-- > 0;)
      if (isPointwise(n) && g_.isAlone(n)) pointwise(n);
  }

 private:
  using Set = std::vector<int>;  // sorted

  static bool has(const Set& set, int n) { return std::binary_search(set.begin(), set.end(), n); }
  static void add(Set& set, int n) { set.insert(std::upper_bound(set.begin(), set.end(), n), n); }
  bool isPointwise(int n) const { return g_.kind(n) == FuseKind::Elementwise || g_.kind(n) == FuseKind::Injective; }
  Ints dims(ValueId v) const { return *staticExtents(graph_, v); }
  Ints outDims(int n) const { return dims(g_.output(n)); }

  /// Values that the set makes and others read.
  std::vector<ValueId> live(const Set& set) const {
    std::vector<ValueId> out;
    for (int n : set) {
      ValueId v = g_.output(n);
      const std::vector<int>& readers = g_.readers(v);
      if (g_.escapes(v) || !std::all_of(readers.begin(), readers.end(), [&](int r) { return has(set, r); }))
        out.push_back(v);
    }
    return out;
  }

  /// Distinct values from outside that need a pointer (constants of one element don't).
  size_t inputCount(const Set& set) const {
    std::set<ValueId> values;
    for (int n : set)
      for (ValueId v : g_.node(n).inputs) {
        if (!v.isValid() || has(set, g_.producer(v))) continue;
        const Tensor* t = graph_.constant(v);
        if (!t || t->elements() > 1) values.insert(v);
      }
    return values.size();
  }

  bool fits(const Set& set) const { return set.size() <= kMaxNodes && inputCount(set) <= kMaxInputs; }

  /// Grows a set by readers of what it makes, first reader first, and returns the largest that makes one value.
  Set growDown(Set set, const std::function<bool(int)>& accepts) const {
    Set best = set;
    std::vector<ValueId> open = live(set);
    while (set.size() <= kMaxNodes) {
      int next = -1;
      for (ValueId v : open) {
        if (g_.escapes(v)) return best;
        for (int r : g_.readers(v)) {
          if (has(set, r)) continue;
          if (next < 0 || r < next) next = r;
          break;
        }
      }
      if (next < 0 || !g_.isAlone(next) || !accepts(next) || readsAsIndex(next, set) || !g_.mayFollow(set, next))
        return best;
      add(set, next);
      open = live(set);
      if (open.size() == 1 && g_.kind(g_.producer(open[0])) != FuseKind::Alias && fits(set)) best = set;
    }
    return best;
  }

  void commit(const Set& set) {
    for (int n : set)
      if (!g_.merge(set[0], n)) return;
  }

  /// Values that the node checks as indices before the kernel runs: they must lie in memory.
  std::vector<ValueId> indexInputs(int n) const {
    const Node& node = g_.node(n);
    if (g_.kind(n) != FuseKind::Injective || node.inputs.size() < 2) return {};
    bool any = false;
    for (ValueId v : node.inputs) any = any || (g_.producer(v) >= 0 && isInteger(graph_.type(v).dtype));
    if (!any) return {};
    ops::KernelBuffers buffers(graph_);
    ops::NodeComputeContext context(g_.id(n), buffers);
    std::vector<ValueId> out;
    if (!context.run().isOk()) return node.inputs;
    for (const ops::IndexCheck& check : context.checks()) out.push_back(check.value);
    return out;
  }
  bool readsAsIndex(int n, const Set& set) const {
    for (ValueId v : indexInputs(n))
      if (v.isValid() && has(set, g_.producer(v))) return true;
    return false;
  }

  // ---- contraction: elementwise epilogue, transposes read through --------------------------------------------------------
  void contraction(int n) {
    const Ints shape = outDims(n);
    Set set = growDown({n}, [&](int r) { return g_.kind(r) == FuseKind::Elementwise && outDims(r) == shape; });
    for (ValueId v : g_.node(n).inputs) {
      const int p = g_.producer(v);
      if (p < 0 || has(set, p) || !mayReadThrough(n, p) || !onlyReadBy(p, set)) continue;
      Set larger = set;
      add(larger, p);
      if (fits(larger)) set = std::move(larger);
    }
    if (isOneOf(g_.node(n).op, {"MatMul", "Gemm"})) growMoved(set);
    // What the epilogue reads of other tensors is dequantised where it is read.
    for (int m : Set(set))
      for (ValueId v : g_.node(m).inputs) {
        const int p = m == n ? -1 : g_.producer(v);
        if (p < 0 || has(set, p) || g_.node(p).op != "DequantizeLinear" || outDims(p) != shape || !onlyReadBy(p, set))
          continue;
        Set larger = set;
        add(larger, p);
        if (fits(larger)) set = std::move(larger);
      }
    commit(set);
  }

  /// A product stores its result in the order that a reshape and a transpose behind it ask for, as long as runs stay long.
  void growMoved(Set& set) const {
    constexpr int64_t kLeastRun = 16;
    const std::vector<ValueId> open = live(set);
    if (open.size() != 1) return;
    Set larger = set;
    for (ValueId v = open[0]; !g_.escapes(v) && g_.readers(v).size() == 1;) {
      const int r = g_.readers(v)[0];
      const bool isMoved = keepsLastDim(graph_, g_.node(r)) && g_.kind(r) == FuseKind::Injective;
      if (!g_.isAlone(r) || has(larger, r) || !(isMoved || g_.kind(r) == FuseKind::Alias)) return;
      add(larger, r);
      v = g_.output(r);
      if (!isMoved) continue;
      if (outDims(r).back() >= kLeastRun && fits(larger)) set = std::move(larger);
      return;
    }
  }

  bool onlyReadBy(int p, const Set& set) const {
    ValueId v = g_.output(p);
    const std::vector<int>& readers = g_.readers(v);
    return g_.isAlone(p) && !g_.escapes(v) &&
           std::all_of(readers.begin(), readers.end(), [&](int r) { return has(set, r); });
  }

  bool mayReadThrough(int n, int p) const {
    if (g_.node(p).op != "Transpose") return false;
    if (isOneOf(g_.node(n).op, {"Conv", "ConvTranspose"})) return outDims(p).back() <= kMaxTransposedChannels;
    if (!isOneOf(g_.node(n).op, {"MatMul", "Gemm", "Einsum"})) return false;
    const Ints perm = permutationOf(graph_, g_.node(p));
    if (perm.back() == static_cast<int64_t>(perm.size()) - 1) return true;
    // Another kernel that has to write this operand anyway writes it in the order that is read.
    const int source = g_.producer(g_.node(p).input(0));
    return source < 0 || !isPointwise(source) || !g_.isAlone(source) || g_.readers(g_.output(source)).size() > 1;
  }

  // ---- expand, depthwise, project: where what lies between is large, a kernel may run them row by row (schedule/roll.h decides) ----
  bool isDepthwise(int n) const {
    const Node& node = g_.node(n);
    return node.op == "Conv" && g_.kind(n) == FuseKind::Contraction && node.intAttr("group", 1) > 1 &&
           node.intAttr("group", 1) == outDims(n).back();
  }
  bool isLarge(ValueId v) const {
    return elementsOf(dims(v)) * dtypeBits(graph_.type(v).dtype) / 8 > target_.l2Bytes / 2;
  }
  /// The convolution that a group is of; -1: none, or several.
  int convolutionOf(int group) const {
    int found = -1;
    for (int m : g_.members(group)) {
      if (g_.kind(m) == FuseKind::Reduction || (g_.kind(m) == FuseKind::Contraction && g_.node(m).op != "Conv"))
        return -1;
      if (g_.kind(m) != FuseKind::Contraction) continue;
      if (found >= 0) return -1;
      found = m;
    }
    return found;
  }

  void windows(int n) {
    if (convolutionOf(g_.groupOf(n)) != n) return;
    const int p = g_.producer(g_.node(n).input(0));
    if (p >= 0) joinNext(g_.groupOf(p), n);
    const std::vector<ValueId> made = live(g_.members(g_.groupOf(n)));
    if (made.size() != 1 || g_.escapes(made[0]) || g_.readers(made[0]).size() != 1) return;
    const int next = convolutionOf(g_.groupOf(g_.readers(made[0])[0]));
    if (next >= 0 && !isDepthwise(next) && g_.node(next).intAttr("group", 1) == 1) joinNext(g_.groupOf(n), next);
  }

  /// The group makes one large value, which convolution `n` is the only one to read.
  void joinNext(int group, int n) {
    const ValueId data = g_.node(n).input(0);
    const std::vector<ValueId> made = live(g_.members(group));
    if (g_.groupOf(n) == group || made.size() != 1 || made[0] != data || !isLarge(data)) return;
    const bool hasProduct = std::any_of(g_.members(group).begin(), g_.members(group).end(),
                                        [&](int m) { return g_.kind(m) == FuseKind::Contraction; });
    if (!hasProduct || g_.escapes(data) || g_.readers(data) != std::vector<int>{n}) return;
    Set both = g_.members(group);
    for (int m : g_.members(g_.groupOf(n))) add(both, m);
    if (fits(both)) g_.merge(g_.producer(data), n);
  }

  // ---- reduction: prologue and epilogue over the full and the reduced shape ----------------------------------------------
  void reduction(int n) {
    const Node& node = g_.node(n);
    const Ints full = dims(node.input(0)), reduced = outDims(n), core = withoutUnits(reduced);
    if (node.op.find("Pool") != std::string::npos) {
      commit(growDown({n}, [&](int r) { return g_.kind(r) == FuseKind::Elementwise && outDims(r) == reduced; }));
      return;
    }
    auto isReduced = [&](const Ints& shape) { return withoutUnits(shape) == core; };
    auto belongs = [&](int r) {
      if (g_.kind(r) == FuseKind::Plain || g_.kind(r) == FuseKind::Alone) return false;
      const Ints shape = outDims(r);
      switch (g_.kind(r)) {
        case FuseKind::Elementwise:
          return shape == full || isReduced(shape);
        case FuseKind::Alias:
          return isReduced(shape) && isReduced(dims(g_.node(r).input(0)));
        case FuseKind::Reduction:
          return node.op.starts_with("Reduce") && g_.node(r).op.starts_with("Reduce") &&
                 dims(g_.node(r).input(0)) == full && isReduced(shape);
        default:
          return false;
      }
    };
    Set set = {n};
    growUp(set, [&](int p) { return outDims(p) == full || isReduced(outDims(p)); });
    set = growDown(std::move(set), belongs);
    growUp(set, [&](int p) { return outDims(p) == full || isReduced(outDims(p)); });
    commit(set);
  }

  // ---- elementwise and injective -----------------------------------------------------------------------------------------
  void pointwise(int n) {
    Set set = {n};
    growUp(set, [](int) { return true; });
    commit(set);
  }

  /// Each element is read at most once.
  bool movesOnce(int n) const {
    return isOneOf(g_.node(n).op, {"Transpose", "Concat", "Slice", "Split", "Pad", "DepthToSpace", "SpaceToDepth"});
  }

  /// Takes in producers that only the set reads, as long as nothing is computed twice for it.
  void growUp(Set& set, const std::function<bool(int)>& accepts) const {
    std::vector<int> work(set.rbegin(), set.rend());
    std::set<ValueId> indices;
    for (int n : set)
      for (ValueId v : indexInputs(n)) indices.insert(v);
    for (size_t i = 0; i < work.size(); ++i) {
      const int reader = work[i];
      for (ValueId v : g_.node(reader).inputs) {
        // Aliases between two of the group's nodes are index arithmetic.
        Set larger = set;
        std::vector<int> taken;
        int p = g_.producer(v);
        while (p >= 0 && g_.kind(p) == FuseKind::Alias && !has(larger, p) && onlyReadBy(p, larger)) {
          add(larger, p);
          taken.push_back(p);
          p = g_.producer(g_.node(p).input(0));
        }
        if (p < 0 || has(larger, p) || !isPointwise(p) || !onlyReadBy(p, larger)) continue;
        if (indices.contains(v) || indices.contains(g_.output(p)) || !accepts(p)) continue;
        if (!joins(reader, v, p, !taken.empty())) continue;
        add(larger, p);
        if (!fits(larger)) continue;
        set = std::move(larger);
        work.push_back(p);
        for (ValueId index : indexInputs(p)) indices.insert(index);
      }
    }
  }

  /// The reader computes no element of p's output more than once.
  bool joins(int reader, ValueId read, int p, bool throughAlias) const {
    switch (g_.kind(reader)) {
      case FuseKind::Injective:
        return movesOnce(reader);
      case FuseKind::Elementwise: {
        const Ints shape = outDims(reader);
        return dims(read) == shape && (throughAlias ? elementsOf(outDims(p)) == elementsOf(shape) : true);
      }
      case FuseKind::Reduction:
        return read == g_.node(reader).input(0);
      default:
        return false;
    }
  }

  const Graph& graph_;
  FuseGroups& g_;
  const TargetSpec& target_;
};

}  // namespace

void formGroups(const Graph& graph, FuseGroups& groups, const TargetSpec& target) {
  GroupFormer(graph, groups, target).run();
}

int anchorOf(const FuseGroups& groups, int group) {
  const std::vector<int>& members = groups.members(group);
  for (FuseKind kind : {FuseKind::Contraction, FuseKind::Reduction})
    for (int n : members)
      if (groups.kind(n) == kind) return n;
  return members.back();
}

}  // namespace locution::passes

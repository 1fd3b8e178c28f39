//     %s = MatMul(%q, Transpose(%k)); %p = Softmax(%s / 8 + %mask); %y = Transpose(MatMul(%p, %v))
// Every member but the last is read by members only, so the group can't be part of a cycle.
#include "passes/fuse_attention.h"

#include <algorithm>

#include "passes/fuse_projection.h"

namespace locution::passes {
namespace {

constexpr size_t kMaxNodes = 32;

class AttentionFinder {
 public:
  AttentionFinder(const Graph& graph, FuseGroups& groups) : graph_(graph), g_(groups) {}

  void run() {
    for (int n = 0; n < g_.size(); ++n)
      if (isProduct(n) && g_.isAlone(n)) tryAt(n);
  }

 private:
  using Set = std::vector<int>;

  bool isProduct(int n) const {
    return g_.kind(n) == FuseKind::Contraction && g_.node(n).op == "MatMul" && isFloat(graph_.type(g_.output(n)).dtype);
  }
  static bool has(const Set& set, int n) { return std::find(set.begin(), set.end(), n) != set.end(); }
  Ints dims(ValueId v) const { return *staticExtents(graph_, v); }

  bool onlyReadBy(int p, const Set& set) const {
    ValueId v = g_.output(p);
    if (!v.isValid() || g_.escapes(v) || !g_.isAlone(p)) return false;
    const std::vector<int>& readers = g_.readers(v);
    return std::all_of(readers.begin(), readers.end(), [&](int r) { return has(set, r); });
  }

  void tryAt(int values) {
    Set set = {values};
    const int scores = findScores(g_.node(values).input(0), false, &set);
    if (scores < 0) return;
    for (int product : {scores, values})
      for (size_t i = product == scores ? 0 : 1; i < 2; ++i) addViews(g_.node(product).input(i), &set);
    const std::vector<int>& readers = g_.readers(g_.output(values));
    if (readers.size() == 1 && !g_.escapes(g_.output(values)) && g_.isAlone(readers[0]) &&
        keepsLastDim(graph_, g_.node(readers[0])))
      set.push_back(readers[0]);
    if (set.size() > kMaxNodes) return;
    std::sort(set.begin(), set.end());
    for (int n : set)
      if (!g_.merge(set[0], n)) return;
  }

  /// Follows the scores up to the product that makes them; -1: there is none, or no softmax on the way.
  int findScores(ValueId v, bool normalised, Set* set) const {
    const int p = g_.producer(v);
    if (p < 0 || set->size() > kMaxNodes || !onlyReadBy(p, *set)) return -1;
    if (isProduct(p)) {
      set->push_back(p);
      return normalised ? p : -1;
    }
    const Node& node = g_.node(p);
    const bool isSoftmax = node.op == "Softmax" && isOverLast(node);
    if (!isSoftmax && g_.kind(p) != FuseKind::Elementwise && g_.kind(p) != FuseKind::Alias) return -1;
    const size_t before = set->size();
    set->push_back(p);
    const size_t inputs = g_.kind(p) == FuseKind::Elementwise ? node.inputs.size() : 1;
    for (size_t i = 0; i < inputs; ++i) {
      if (!node.hasInput(i) || elementsOf(dims(node.input(i))) != elementsOf(dims(v))) continue;
      if (int found = findScores(node.input(i), normalised || isSoftmax, set); found >= 0) return found;
      set->resize(before + 1);
    }
    set->resize(before);
    return -1;
  }

  bool isOverLast(const Node& node) const {
    const int64_t rank = rankOf(graph_, node.input(0)), axis = node.intAttr("axis", -1);
    return axis == -1 || axis == rank - 1;
  }

  /// Transposes, slices and repetitions that an operand is read through, with the aliases between them; what a projection can store as
  /// it should be is left to that.
  void addViews(ValueId v, Set* set) const {
    Set taken;
    for (int p = g_.producer(v); p >= 0; p = g_.producer(v)) {
      const std::string& op = g_.node(p).op;
      Set larger = *set;
      larger.insert(larger.end(), taken.begin(), taken.end());
      if (!onlyReadBy(p, larger)) break;
      if (keepsLastDim(graph_, g_.node(p)) && isProjection(graph_, throughReshapes(graph_, g_.node(p).input(0)))) break;
      const bool isMoved = op == "Transpose" || op == "Slice" || op == "Expand";
      if (g_.kind(p) != FuseKind::Alias && !(isMoved && g_.kind(p) == FuseKind::Injective)) break;
      taken.push_back(p);
      if (isMoved) {
        set->insert(set->end(), taken.begin(), taken.end());
        taken.clear();
      }
      v = g_.node(p).input(0);
    }
  }

  const Graph& graph_;
  FuseGroups& g_;
};

}  // namespace

void formAttention(const Graph& graph, FuseGroups& groups) { AttentionFinder(graph, groups).run(); }

}  // namespace locution::passes

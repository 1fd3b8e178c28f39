// Streams: stages whose limit is memory traffic, or the chains of their vector functions, not multiply-adds. Points, movements,
// and reductions that sum no products. What decides: which axis every access walks through one element at a time, and how many
// independent accumulators it takes to keep both adders busy.
#include <algorithm>

#include "generator/rules.h"
#include "loop/passes.h"
#include "space/access.h"
#include "space/plan_writer.h"

namespace locution::generator {

using loop::Stage;
using schedule::Plan;
using schedule::Primitive;
using schedule::Tail;

namespace {

// Accumulators that hide an addition's latency of three or four cycles at two a cycle.
constexpr int64_t kAccumulators = 8;

class StreamPlanner {
 public:
  StreamPlanner(const StageQuestion& q, Plan* plan)
      : q_(q),
        s_(q.self()),
        n_(s_.axes.size()),
        m_(s_.reduce.size()),
        all_(accesses(s_)),
        w_(plan, static_cast<int32_t>(q.stage), loops()) {}

  bool write() {
    if (s_.scan || (q_.isAlone() && !productOperands(s_).empty())) return false;
    if (s_.combiner == loop::Combiner::None) return writeTransposition() || writePoints();
    return writeColumns() || writeRows();
  }

 private:
  std::vector<std::string> loops() const {
    std::vector<std::string> names = spatial(n_);
    for (size_t i = 0; i < m_; ++i) names.push_back(reduceName(i));
    return names;
  }
  /// The axes from the shared ones up to `end`.
  std::vector<std::string> spatial(size_t end) const {
    std::vector<std::string> names;
    for (size_t i = q_.shared; i < end; ++i) names.push_back(axisName(i));
    return names;
  }
  static void append(std::vector<std::string>* to, const std::vector<std::string>& more) {
    to->insert(to->end(), more.begin(), more.end());
  }

  int64_t lanesFor(int64_t extent) const { return space::lanesFor(s_, q_.target, extent); }

  bool callsVectorFunctions() const {
    bool found = false;
    for (const loop::Expr& e : {s_.body, s_.epilogue}) {
      if (!e) continue;
      loop::visit(e, [&](const loop::Expr& x) {
        if (const auto* c = loop::as<loop::Call>(x))
          for (const char* name : {"exp", "log", "tanh", "erf", "sigmoid"}) found = found || c->name == name;
        return !found;
      });
    }
    return found;
  }

  /// The first of the last spatial axes that memory allows to be one loop.
  size_t firstMerged(int64_t* extent) const {
    size_t first = n_ - 1;
    *extent = s_.axes[first].extent;
    while (first > q_.shared && mergeable(all_, first - 1, s_.axes[first].extent, false))
      *extent *= s_.axes[--first].extent;
    return first;
  }
  std::string fuseFrom(size_t first) {
    std::vector<std::string> names;
    for (size_t i = first; i < n_; ++i) names.push_back(axisName(i));
    return w_.fuse(names);
  }

  void shareOut(size_t count) {
    if (q_.isAlone()) w_.parallel(count);
  }

  bool writePoints() {
    if (n_ == q_.shared) return true;
    bool vector = isUnitStride(all_, n_ - 1, false) || s_.axes[n_ - 1].extent >= 4;
    int64_t extent = 0, outer = 1;
    size_t first = firstMerged(&extent);
    std::string inner = fuseFrom(first);
    for (size_t i = q_.shared; i < first; ++i) outer *= s_.axes[i].extent;
    int64_t lanes = vector ? lanesFor(extent) : 1;
    // Functions of some twenty instructions fill the core's window by themselves; copies would only cost registers.
    int64_t unroll = callsVectorFunctions() ? 2 : 4;
    constexpr int64_t kChunkVectors = 64, kEnoughPieces = 16;
    std::string tile = inner;
    bool chunked = q_.isAlone() && outer < kEnoughPieces && extent > lanes * kChunkVectors;
    if (chunked) tile = w_.split(inner, lanes * kChunkVectors, Tail::Peel).second;
    if (lanes > 1 && extent >= lanes * unroll) {
      auto [j, v] = w_.split(w_.split(tile, lanes * unroll, Tail::Peel).second, lanes, Tail::Peel);
      w_.mark(Primitive::Unroll, {j});
      w_.mark(Primitive::Vectorise, {v});
    } else if (lanes > 1) {
      w_.mark(Primitive::Vectorise, {w_.split(tile, lanes, Tail::Peel).second});
    }
    shareOut(first - q_.shared + (chunked ? 1 : 0));
    return true;
  }

  /// A load that is strided along the last axis and contiguous along another: square tiles, of which both sides are whole vectors
  /// in memory, transposed in registers.
  bool writeTransposition() {
    if (n_ < q_.shared + 2 || dtypeBits(s_.body->type.dtype) != 32) return false;
    size_t last = n_ - 1, other = last;
    for (const Access& a : all_) {
      if (!a.spatial[last]) return false;
      if (*a.spatial[last] <= 4) continue;
      for (size_t i = q_.shared; i < last; ++i)
        if (a.spatial[i] && *a.spatial[i] == 1 && s_.axes[i].extent >= 4) other = i;
    }
    int64_t lanes = lanesFor(s_.axes[last].extent);
    if (other == last || lanes < 4) return false;
    int64_t side = s_.axes[other].extent >= 8 ? 8 : 4;
    auto [outer, v] = w_.split(axisName(last), lanes, Tail::Peel);
    auto [tiles, k] = w_.split(axisName(other), side, Tail::Peel);
    std::vector<std::string> order;
    for (size_t i = q_.shared; i < last; ++i)
      if (i != other) order.push_back(axisName(i));
    order.push_back(outer);
    size_t count = order.size();
    append(&order, {tiles, k, v});
    w_.reorder(order);
    w_.mark(Primitive::Unroll, {k});
    w_.mark(Primitive::Vectorise, {v});
    shareOut(count);
    return true;
  }

  /// The last axis in vectors, each with an accumulator of its own: reductions over outer axes, pooling of channels-last images.
  bool writeColumns() {
    if (n_ == q_.shared || !isUnitStride(all_, n_ - 1, false) || s_.axes[n_ - 1].extent < 4) return false;
    int64_t extent = 0;
    size_t first = firstMerged(&extent);
    std::string inner = fuseFrom(first);
    int64_t lanes = lanesFor(extent), vectors = std::max<int64_t>(1, extent / lanes);
    int64_t taken = std::min(vectors, kAccumulators);
    for (int64_t t = taken; t > kAccumulators / 2; --t)
      if (vectors % t == 0) {
        taken = t;
        break;
      }
    int64_t pieces = 1;
    for (size_t i = q_.shared; i < first; ++i) pieces *= s_.axes[i].extent;
    // Every thread gets a piece, though a narrower one.
    // The order of summation is the same for any number of threads.
    const int64_t apart = kAccumulators / 2 / taken;
    while (q_.isAlone() && taken > 1 && pieces * ((vectors + taken - 1) / taken) < q_.target.threads)
      taken = (taken + 1) / 2;
    auto [outer, i] = w_.split(inner, taken * lanes, Tail::Peel);
    auto [j, v] = w_.split(i, lanes, Tail::Mask);
    std::vector<std::string> order = spatial(first), unrolled = {j};
    order.push_back(outer);
    size_t count = order.size();
    int64_t steps = 1, lastSteps = s_.reduce.empty() ? 1 : s_.reduce[m_ - 1].extent;
    for (const loop::Axis& r : s_.reduce) steps *= r.extent;
    for (size_t k = 0; k + 1 < m_; ++k) order.push_back(reduceName(k));
    int64_t parts = std::min(apart, lastSteps);
    if (parts > 1 && steps >= 4 * parts) {
      auto [ro, ri] = w_.split(reduceName(m_ - 1), parts, Tail::Mask);
      append(&order, {ro, ri});
      unrolled.push_back(ri);
      w_.mark(Primitive::Partial, {ri});
    } else if (m_ > 0) {
      order.push_back(reduceName(m_ - 1));
      constexpr int64_t kSmallWindow = 5;
      if (lastSteps <= kSmallWindow) unrolled.push_back(reduceName(m_ - 1));
    }
    append(&order, {j, v});
    w_.reorder(order);
    w_.mark(Primitive::Unroll, unrolled);
    w_.mark(Primitive::Vectorise, {v});
    shareOut(count);
    return true;
  }

  /// Each result from a run of memory: vectors of partial results, combined at the end.
  bool writeRows() {
    std::vector<std::string> outer = spatial(n_);
    if (m_ > 0 && isUnitStride(all_, m_ - 1, true)) {
      size_t first = m_ - 1;
      int64_t extent = s_.reduce[first].extent;
      while (first > 0 && mergeable(all_, first - 1, s_.reduce[first].extent, true))
        extent *= s_.reduce[--first].extent;
      std::vector<std::string> names;
      for (size_t i = first; i < m_; ++i) names.push_back(reduceName(i));
      std::string whole = w_.fuse(names);
      int64_t lanes = lanesFor(extent);
      if (extent >= 4 && lanes >= 4) {
        int64_t vectors = extent / lanes, most = vectors >= 2 * kAccumulators ? kAccumulators : kAccumulators / 2;
        int64_t accumulators = std::clamp<int64_t>(vectors, 1, most);
        auto [j, v] = w_.split(w_.split(whole, lanes * accumulators, Tail::Mask).second, lanes, Tail::Mask);
        w_.mark(Primitive::Unroll, {j});
        w_.mark(Primitive::Partial, {j});
        w_.mark(Primitive::Vectorise, {v});
      }
    }
    shareOut(outer.size());
    return true;
  }

  const StageQuestion& q_;
  const Stage& s_;
  size_t n_, m_;
  std::vector<Access> all_;
  PlanWriter w_;
};

}  // namespace

bool planStream(const StageQuestion& question, Plan* plan) { return StreamPlanner(question, plan).write(); }

}  // namespace locution::generator

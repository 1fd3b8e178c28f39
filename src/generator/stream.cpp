// Streams: stages whose limit is memory traffic, or the chains of their vector functions, not multiply-adds. Points, movements,
// and reductions that sum no products. What decides: which axis every access walks through one element at a time, and how many
// independent accumulators it takes to keep both adders busy.
#include <algorithm>

#include "generator/rules.h"
#include "loop/passes.h"

namespace locution::generator {

using loop::Stage;
using space::Decision;

namespace {

// Accumulators that hide an addition's latency of three or four cycles at two a cycle.
constexpr int64_t kAccumulators = 8;

class StreamRule {
 public:
  explicit StreamRule(const space::StageChoices& stage)
      : f_(stage.facts()),
        s_(*f_.stage),
        target_(*f_.target),
        own_(stage.scope().own),
        strip_(stage.scope().strip),
        isAlone_(stage.scope().isAlone),
        n_(s_.axes.size()),
        m_(s_.reduce.size()) {}

  std::optional<Wishes> wishes() {
    if (s_.scan) return std::nullopt;
    if (own_.empty() || own_.back() != n_ - 1) {
      if (s_.combiner != loop::Combiner::None) rows();
    } else if (s_.combiner == loop::Combiner::None) {
      if (!transposition()) points();
    } else if (!columns()) {
      rows();
    }
    return w_;
  }

 private:
  int64_t lanesFor(int64_t extent) const { return space::lanesFor(s_, target_, extent); }
  bool isOwn(size_t axis) const { return std::find(own_.begin(), own_.end(), axis) != own_.end(); }

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

  /// The last spatial axes that memory allows to be one loop lie along the lanes; the others, in order, are outside.
  std::vector<int64_t> alongLast(int64_t* extent, int64_t* outer) {
    std::vector<size_t> run = f_.spatialRun(n_ - 1, own_);
    *extent = *outer = 1;
    for (size_t i : run) *extent *= s_.axes[i].extent;
    std::vector<int64_t> outside;
    for (size_t i : own_) {
      if (std::find(run.begin(), run.end(), i) != run.end()) continue;
      outside.push_back(static_cast<int64_t>(i));
      *outer *= s_.axes[i].extent;
    }
    w_.set(Decision::Vector, static_cast<int64_t>(n_ - 1));
    w_.set(Decision::Columns, static_cast<int64_t>(run.size()));
    return outside;
  }

  void points() {
    const bool isVector = isUnitStride(f_.all, n_ - 1, false) || s_.axes[n_ - 1].extent >= 4;
    int64_t extent = 0, outer = 1;
    std::vector<int64_t> order = alongLast(&extent, &outer);
    const int64_t lanes = isVector ? lanesFor(extent) : 1;
    // Functions of some twenty instructions fill the core's window by themselves; copies would only cost registers.
    const int64_t unroll = callsVectorFunctions() ? 2 : 4;
    const int64_t vectors = lanes > 1 && extent >= lanes * unroll ? unroll : 1;
    constexpr int64_t kChunkVectors = 64, kEnoughPieces = 16;
    const int64_t chunk = lanes * kChunkVectors;
    const bool isChunked = isAlone_ && outer < kEnoughPieces && extent > chunk;
    w_.set(Decision::Lanes, lanes);
    w_.set(Decision::Vectors, vectors);
    w_.set(Decision::ColumnBlocks, isChunked ? (extent + chunk - 1) / chunk : 1);
    const size_t shared = order.size() + (isChunked ? 1 : 0);
    order.insert(order.end(), {space::kColumnLoop, space::kColumnLoopInner});
    w_.order(order, shared);
  }

  /// A load that is strided along the last axis and contiguous along another: square tiles, of which both sides are whole vectors
  /// in memory, transposed in registers.
  bool transposition() {
    if (own_.size() < 2 || dtypeBits(s_.body->type.dtype) != 32) return false;
    const size_t last = n_ - 1;
    size_t other = last;
    for (const Access& a : f_.all) {
      if (!a.spatial[last]) return false;
      if (*a.spatial[last] <= 4) continue;
      for (size_t i : own_)
        if (i != last && a.spatial[i] && *a.spatial[i] == 1 && s_.axes[i].extent >= 4) other = i;
    }
    const int64_t lanes = lanesFor(s_.axes[last].extent);
    if (other == last || lanes < 4) return false;
    w_.set(Decision::Vector, static_cast<int64_t>(last));
    w_.set(Decision::Columns, 1);
    w_.set(Decision::Lanes, lanes);
    w_.set(Decision::Vectors, 1);
    w_.set(Decision::RowAxis, static_cast<int64_t>(other));
    w_.set(Decision::RowAxes, 1);
    w_.set(Decision::Rows, s_.axes[other].extent >= 8 ? 8 : 4);
    std::vector<int64_t> order;
    for (size_t i : own_)
      if (i != last && i != other) order.push_back(static_cast<int64_t>(i));
    order.push_back(space::kColumnLoop);
    const size_t shared = order.size();
    order.push_back(space::kRowLoop);
    w_.order(order, shared);
    return true;
  }

  /// The last axis in vectors, each with an accumulator of its own: reductions over outer axes, pooling of channels-last images.
  bool columns() {
    if (strip_ == n_ - 1 || !isUnitStride(f_.all, n_ - 1, false) || s_.axes[n_ - 1].extent < 4) return false;
    int64_t extent = 0, pieces = 1;
    std::vector<int64_t> order = alongLast(&extent, &pieces);
    const int64_t lanes = lanesFor(extent), vectors = std::max<int64_t>(1, extent / lanes);
    int64_t taken = std::min(vectors, kAccumulators);
    for (int64_t t = taken; t > kAccumulators / 2; --t)
      if (vectors % t == 0) {
        taken = t;
        break;
      }
    // The order of summation is the same for any number of threads.
    const int64_t apart = kAccumulators / 2 / taken;
    // Every thread gets a piece, though a narrower one.
    while (isAlone_ && taken > 1 && pieces * ((vectors + taken - 1) / taken) < target_.threads) taken = (taken + 1) / 2;
    w_.set(Decision::Lanes, lanes);
    w_.set(Decision::Vectors, taken);
    int64_t steps = 1;
    const int64_t lastSteps = s_.reduce.empty() ? 1 : s_.reduce[m_ - 1].extent;
    for (const loop::Axis& r : s_.reduce) steps *= r.extent;
    const int64_t parts = std::min(apart, lastSteps);
    constexpr int64_t kSmallWindow = 5;
    const bool isApart = parts > 1 && steps >= 4 * parts;
    w_.set(Decision::Window, !isApart && lastSteps <= kSmallWindow ? 1 : 0);
    w_.set(Decision::Unroll, isApart ? parts : 1);
    w_.set(Decision::Apart, isApart ? 1 : 0);
    order.push_back(space::kColumnLoop);
    w_.order(order, order.size());
    return true;
  }

  /// Each result from a run of memory: vectors of partial results, combined at the end.
  void rows() {
    w_.set(Decision::Vector, space::kNoAxis);
    std::vector<int64_t> order;
    for (size_t i : own_) order.push_back(static_cast<int64_t>(i));
    w_.order(order, order.size());
    if (m_ == 0 || !isUnitStride(f_.all, m_ - 1, true)) return;
    std::vector<size_t> run = f_.reducedRun(m_ - 1);
    int64_t extent = 1;
    for (size_t i : run) extent *= s_.reduce[i].extent;
    const int64_t lanes = lanesFor(extent);
    if (extent < 4 || lanes < 4) return;
    const int64_t vectors = extent / lanes, most = vectors >= 2 * kAccumulators ? kAccumulators : kAccumulators / 2;
    w_.set(Decision::Vector, space::kReduceAxis + static_cast<int64_t>(m_ - 1));
    w_.set(Decision::Columns, static_cast<int64_t>(run.size()));
    w_.set(Decision::Lanes, lanes);
    w_.set(Decision::Vectors, std::clamp<int64_t>(vectors, 1, most));
  }

  const space::StageFacts& f_;
  const Stage& s_;
  const TargetSpec& target_;
  const std::vector<size_t>& own_;
  std::optional<size_t> strip_;
  bool isAlone_;
  size_t n_, m_;
  Wishes w_;
};

}  // namespace

std::optional<Wishes> streamWishes(const space::StageChoices& stage) { return StreamRule(stage).wishes(); }

}  // namespace locution::generator

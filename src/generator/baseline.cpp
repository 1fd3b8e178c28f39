// The baseline scheduler: fixed rules, no search and no machine model beyond vector width and register count. For debugging and
// comparison, and for kernels that no better scheduler knows yet.
#include <algorithm>
#include <numeric>

#include "generator/rules.h"
#include "generator/scheduler.h"
#include "generator/tile.h"
#include "schedule/stages.h"
#include "space/access.h"
#include "space/plan_writer.h"

namespace locution::generator {

using loop::Computation;
using loop::Stage;
using schedule::Plan;
using schedule::Primitive;
using schedule::Tail;
using space::accesses;
using space::axisName;
using space::groupSize;
using space::PlanWriter;
using space::productOperands;
using space::reduceName;

namespace {

int64_t product(const std::vector<int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<>());
}

class StagePlanner {
 public:
  StagePlanner(const Computation& kernel, const TargetSpec& target, Plan* plan, size_t stage, size_t shared)
      : kernel_(kernel),
        s_(kernel.stages[stage]),
        target_(target),
        shared_(shared),
        alone_(kernel.stages.size() == 1 && shared == 0),
        all_(accesses(s_)),
        w_(plan, static_cast<int32_t>(stage), loops()) {}

  void write() {
    if (s_.scan) return writeScan();
    if (s_.combiner == loop::Combiner::None) return writePoints();
    if (alone_ && writeContraction()) return;
    writeReduction();
  }

 private:
  std::vector<std::string> loops() const {
    std::vector<std::string> names;
    for (size_t i = shared_; i < s_.axes.size(); ++i) names.push_back(axisName(i));
    for (size_t i = 0; i < s_.reduce.size(); ++i) names.push_back(reduceName(i));
    return names;
  }

  int64_t lanesFor(int64_t extent) const { return space::lanesFor(s_, target_, extent); }

  // Merges the last axes as far as memory allows; returns the loop's name and extent, and how many axes it took.
  std::string mergeLast(int64_t* extent, size_t* taken) {
    size_t n = s_.axes.size(), first = n - 1;
    *extent = s_.axes[n - 1].extent;
    while (first > shared_ && mergeable(all_, first - 1, s_.axes[first].extent, false)) {
      --first;
      *extent *= s_.axes[first].extent;
    }
    std::vector<std::string> names;
    for (size_t i = first; i < n; ++i) names.push_back(axisName(i));
    *taken = n - first;
    return w_.fuse(names);
  }

  void writePoints() {
    if (s_.axes.size() == shared_) return;
    int64_t extent = 0;
    size_t taken = 0, last = s_.axes.size() - 1;
    bool vector = isUnitStride(all_, last, false) || s_.axes[last].extent >= 4;
    std::string inner = mergeLast(&extent, &taken);
    int64_t outer = 1;
    for (size_t i = shared_; i + taken < s_.axes.size(); ++i) outer *= s_.axes[i].extent;
    int64_t lanes = vector ? lanesFor(extent) : 1;
    constexpr int64_t kUnroll = 4, kChunkVectors = 64;
    std::string chunk = inner;
    bool chunked = alone_ && outer < 16 && extent > lanes * kChunkVectors;
    if (chunked) chunk = w_.split(inner, lanes * kChunkVectors, Tail::Peel).second;
    std::string tile = chunk;
    if (lanes > 1 && extent >= lanes * kUnroll) {
      tile = w_.split(chunk, lanes * kUnroll, Tail::Peel).second;
      auto [j, v] = w_.split(tile, lanes, Tail::Peel);
      w_.mark(Primitive::Unroll, {j});
      w_.mark(Primitive::Vectorise, {v});
    } else if (lanes > 1) {
      w_.mark(Primitive::Vectorise, {w_.split(tile, lanes, Tail::Peel).second});
    }
    if (!alone_) return;
    size_t outerLoops = s_.axes.size() - taken + (chunked ? 1 : 0);
    w_.parallel(outerLoops);
  }

  void writeScan() {
    if (alone_ && s_.axes.size() > 1) w_.parallel(s_.axes.size() - 1);
  }

  void writeReduction() {
    size_t n = s_.axes.size(), m = s_.reduce.size();
    std::vector<std::string> outer;
    for (size_t i = shared_; i < n; ++i) outer.push_back(axisName(i));
    bool spatialVector = n > shared_ && isUnitStride(all_, n - 1, false) && s_.axes[n - 1].extent >= 4;
    if (spatialVector) {
      int64_t lanes = lanesFor(s_.axes[n - 1].extent);
      auto [o, v] = w_.split(axisName(n - 1), lanes, Tail::Peel);
      outer.back() = o;
      std::vector<std::string> order = outer;
      for (size_t i = 0; i < m; ++i) order.push_back(reduceName(i));
      order.push_back(v);
      w_.reorder(order);
      w_.mark(Primitive::Vectorise, {v});
      if (alone_) w_.parallel(outer.size());
      return;
    }
    if (m > 0 && isUnitStride(all_, m - 1, true)) {
      size_t first = m - 1;
      int64_t extent = s_.reduce[m - 1].extent;
      std::vector<std::string> names;
      while (first > 0 && mergeable(all_, first - 1, s_.reduce[first].extent, true))
        extent *= s_.reduce[--first].extent;
      for (size_t i = first; i < m; ++i) names.push_back(reduceName(i));
      std::string whole = w_.fuse(names);
      int64_t lanes = lanesFor(extent);
      if (extent >= 4 && lanes >= 4) {
        int64_t accumulators = std::clamp<int64_t>(extent / lanes, 1, 4);
        std::string tile = w_.split(whole, lanes * accumulators, Tail::Mask).second;
        auto [j, v] = w_.split(tile, lanes, Tail::Mask);
        w_.mark(Primitive::Unroll, {j});
        w_.mark(Primitive::Partial, {j});
        w_.mark(Primitive::Vectorise, {v});
      }
    }
    if (alone_ && !outer.empty()) w_.parallel(outer.size());
  }

  // [batch, vector tiles, rows, row tiles | reduction | register tile]; false when no axis fits the pattern.
  bool writeContraction() {
    std::vector<Access> operands = productOperands(s_);
    if (operands.size() != 2 || s_.axes.empty() || s_.reduce.empty()) return false;
    size_t v = s_.axes.size() - 1;
    int64_t vExtent = s_.axes[v].extent;
    std::string vLoop = axisName(v);
    std::vector<std::string> batch;
    // A grouped axis (its group number indexes an operand) is split into group and member.
    for (const Access& a : operands)
      if (!a.spatial[v]) {
        int64_t group = groupSize(s_, v);
        if (group <= 1) return false;
        auto [g, member] = w_.split(vLoop, group, Tail::Peel);
        batch.push_back(g);
        vLoop = member;
        vExtent = group;
        break;
      }
    if (vExtent < 4) return false;
    int vectorOperand = strideOf(operands[1], v) != 0 || !batch.empty() ? 1 : 0;
    // Rows: axes that the vector operand does not move along, merged where memory allows; the innermost gets the register tile.
    const Access& x = operands[static_cast<size_t>(vectorOperand)];
    const Access& y = operands[static_cast<size_t>(1 - vectorOperand)];
    size_t row = v;
    for (size_t i = v; i-- > 0;)
      if (s_.axes[i].extent > 1 && (!x.used(i) || !y.used(i))) {
        row = i;
        break;
      }
    std::string rowLoop;
    int64_t rowExtent = 1;
    std::vector<std::string> rest;
    if (row != v) {
      size_t first = row;
      rowExtent = s_.axes[row].extent;
      while (first > 0 && mergeable(all_, first - 1, s_.axes[first].extent, false) && x.used(first - 1) == x.used(row))
        rowExtent *= s_.axes[--first].extent;
      std::vector<std::string> names;
      for (size_t i = first; i <= row; ++i) names.push_back(axisName(i));
      rowLoop = w_.fuse(names);
      for (size_t i = 0; i < v; ++i)
        if (i < first || i > row) (x.used(i) && y.used(i) ? batch : rest).push_back(axisName(i));
    } else {
      for (size_t i = 0; i < v; ++i) (x.used(i) && y.used(i) ? batch : rest).push_back(axisName(i));
    }
    int64_t lanes = lanesFor(vExtent);
    bool fma = isFloat(s_.body->type.dtype);
    RegisterTile tile = chooseTile({rowExtent, vExtent, lanes, target_.vectorRegisters, fma});
    std::vector<std::string> unrolled;
    auto [vo, vi] = w_.split(vLoop, tile.vectors * lanes, Tail::Peel);
    auto [vj, vl] = w_.split(vi, lanes, Tail::Mask);
    std::vector<std::string> outer = batch, inner;
    outer.push_back(vo);
    outer.insert(outer.end(), rest.begin(), rest.end());
    if (!rowLoop.empty()) {
      auto [ro, ri] = w_.split(rowLoop, tile.rows, Tail::Peel);
      outer.push_back(ro);
      inner.push_back(ri);
    }
    inner.push_back(vj);
    unrolled = inner;
    inner.push_back(vl);
    size_t m = s_.reduce.size();
    std::vector<std::string> order = outer;
    std::vector<int64_t> reduceExtents;
    for (const loop::Axis& a : s_.reduce) reduceExtents.push_back(a.extent);
    constexpr int64_t kUnroll = 4, kSmallReduction = 32;
    if (m > 1 && product(reduceExtents) * tile.rows * tile.vectors <= kSmallReduction * 8) {
      for (size_t i = 0; i < m; ++i) unrolled.push_back(reduceName(i));
      for (size_t i = 0; i < m; ++i) order.push_back(reduceName(i));
    } else {
      auto [ko, ki] = w_.split(reduceName(m - 1), kUnroll, Tail::Peel);
      for (size_t i = 0; i + 1 < m; ++i) order.push_back(reduceName(i));
      order.push_back(ko);
      order.push_back(ki);
      unrolled.push_back(ki);
    }
    order.insert(order.end(), inner.begin(), inner.end());
    w_.reorder(order);
    w_.mark(Primitive::Unroll, unrolled);
    w_.mark(Primitive::Vectorise, {vl});
    auto isConstant = [&](const Access& a) {
      return std::any_of(kernel_.constants.begin(), kernel_.constants.end(),
                         [&](const loop::BufferRef& b) { return b.get() == a.buffer; });
    };
    for (int k = 0; k < 2; ++k) {
      const Access& a = operands[static_cast<size_t>(k)];
      // Activations are packed when their vectors are not contiguous and rows enough use the copy.
      bool strided = k == vectorOperand && strideOf(a, v) != 1;
      if (isConstant(a) || (strided && rowExtent >= 4)) w_.pack(k);
    }
    w_.parallel(outer.size());
    return true;
  }

  static int64_t strideOf(const Access& a, size_t axis) { return a.spatial[axis].value_or(0); }

  const Computation& kernel_;
  const Stage& s_;
  const TargetSpec& target_;
  size_t shared_;
  bool alone_;
  std::vector<Access> all_;
  PlanWriter w_;
};

// The leading axes that all stages have in common become loops outside them, shared out to threads; returns how many.
size_t planShared(const Computation& kernel, Plan* plan) {
  auto shared = static_cast<size_t>(schedule::sharedAxes(kernel));
  if (shared == 0) return 0;
  plan->steps.push_back({Primitive::Share, 0, {}, static_cast<int64_t>(shared), Tail::Peel});
  std::vector<std::string> names;
  for (size_t i = 0; i < shared; ++i) names.push_back(axisName(i));
  PlanWriter(plan, -1, names).parallel(shared);
  return shared;
}

class Baseline : public Scheduler {
 public:
  std::string_view name() const override { return "baseline"; }
  Plan propose(const Computation& kernel, const TargetSpec& target) const override {
    Plan plan;
    if (kernel.raw) return plan;
    // Its stages agree on more than leading axes.
    if (const space::Space space(kernel, target); space.isChain() || space.isRolled())
      return analyticWalk(space).plan();
    const size_t shared = planShared(kernel, &plan);
    for (size_t i = 0; i < kernel.stages.size(); ++i) StagePlanner(kernel, target, &plan, i, shared).write();
    return plan;
  }
};

}  // namespace

std::unique_ptr<Scheduler> makeBaseline() { return std::make_unique<Baseline>(); }

}  // namespace locution::generator

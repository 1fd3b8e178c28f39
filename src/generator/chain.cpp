// Chains of products (attention): strips of rows run through all stages while what lies between them stays in the caches. Within a
// strip each product has the register tile of a contraction; keys are packed once for all strips when they don't lie along the vector.
#include <algorithm>

#include "generator/rules.h"
#include "generator/tile.h"
#include "schedule/chain.h"
#include "space/access.h"
#include "space/plan_writer.h"

namespace locution::generator {

using loop::Stage;
using schedule::Plan;
using schedule::Primitive;
using schedule::Tail;

namespace {

constexpr int64_t kRows = 64;             ///< enough to make reading an operand's panel once a strip cheap
constexpr int64_t kMaxBytes = 768 << 10;  ///< of temporaries: they live on the stack
constexpr int64_t kTasksPerThread = 4;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class ChainPlanner {
 public:
  ChainPlanner(const loop::Computation& kernel, const TargetSpec& target, std::vector<std::vector<size_t>> at,
               Plan* plan)
      : kernel_(kernel), target_(target), at_(std::move(at)), plan_(plan) {}

  void write() {
    const size_t shared = at_[0].size();
    plan_->steps.push_back({Primitive::Share, 0, {}, static_cast<int64_t>(shared), Tail::Peel});
    for (size_t k = 0; k < at_.size(); ++k)
      if (!isNatural(k)) {
        std::vector<std::string> names;
        for (size_t axis : at_[k]) names.push_back(axisName(axis));
        plan_->steps.push_back({Primitive::Align, static_cast<int32_t>(k), names, 0, Tail::Peel});
      }
    strip_ = chooseStrip();
    plan_->steps.push_back({Primitive::Strip, -1, {}, strip_, Tail::Peel});
    std::vector<std::string> loops;
    for (size_t j = 0; j < shared; ++j) loops.push_back(axisName(j) + (j + 1 == shared ? ".o" : ""));
    PlanWriter(plan_, -1, loops).parallel(shared);
    for (size_t k = 0; k < kernel_.stages.size(); ++k) {
      if (schedule::isProductSum(kernel_.stages[k]) && writeProduct(k)) continue;
      if (isNatural(k)) planStage({kernel_, k, shared - 1, target_}, plan_);
    }
  }

 private:
  bool isNatural(size_t k) const {
    for (size_t j = 0; j < at_[k].size(); ++j)
      if (at_[k][j] != j) return false;
    return true;
  }
  size_t rowAxis(size_t k) const { return at_[k].back(); }
  bool isShared(size_t k, size_t axis) const { return std::find(at_[k].begin(), at_[k].end(), axis) != at_[k].end(); }

  RegisterTile tileOf(const Stage& s, int64_t rows, int64_t columns, int64_t lanes) const {
    return chooseTile({rows, columns, lanes, target_.vectorRegisters, isFloat(s.body->type.dtype)});
  }

  int64_t chooseStrip() const {
    const Stage& first = kernel_.stages[0];
    const int64_t whole = std::max<int64_t>(1, first.axes[at_[0].back()].extent);
    const int64_t rowBytes = std::max<int64_t>(1, schedule::stripRowBytes(kernel_.stages, kernel_.outputs, at_));
    int64_t tasks = 1;
    for (size_t j = 0; j + 1 < at_[0].size(); ++j) tasks *= first.axes[at_[0][j]].extent;
    const int64_t columns = first.axes.back().extent, lanes = lanesFor(first, target_, columns);
    int64_t rows = std::clamp<int64_t>(std::min(target_.l2Bytes / 2, kMaxBytes) / rowBytes, 1, kRows);
    const int64_t tile = tileOf(first, std::min(whole, kRows), columns, lanes).rows;
    while (rows > 2 * tile && tasks * ceilDivide(whole, rows) < kTasksPerThread * target_.threads) rows /= 2;
    if (whole <= rows) return whole;
    // Strips of one size need no second version of the code.
    for (int64_t r = rows; r >= std::max<int64_t>(1, rows / 2); --r)
      if (whole % r == 0) return r;
    const int64_t even = ceilDivide(whole, ceilDivide(whole, rows));
    return std::clamp<int64_t>(ceilDivide(even, tile) * tile, 1, rows);
  }

  // Each step of the reduction is on another page, or a few sets of the first cache hold all of them.
  static bool farApart(const Access& a, int64_t steps) {
    const int64_t bytes = a.reduce.back().value_or(0) * (dtypeBits(a.buffer->element.dtype) / 8);
    return bytes >= 1024 && steps >= 16;
  }

  // [columns, rows | reduction | register tile]; false when no axis is left for vectors or nothing lies along them.
  bool writeProduct(size_t k) {
    const Stage& s = kernel_.stages[k];
    const size_t row = rowAxis(k);
    std::vector<Access> operands = productOperands(s);
    std::vector<std::string> loops, rest;
    size_t v = s.axes.size();
    for (size_t i = 0; i < s.axes.size(); ++i) {
      if (!isShared(k, i)) v = i;
      if (!isShared(k, i) || i == row) loops.push_back(axisName(i));
    }
    if (operands.size() != 2 || v == s.axes.size()) return false;
    int x = operands[1].used(v) ? 1 : 0;
    const Access& vectors = operands[static_cast<size_t>(x)];
    if (!vectors.spatial[v] || operands[static_cast<size_t>(1 - x)].used(v)) return false;
    const bool isReused = !vectors.used(row), isStrided = *vectors.spatial[v] != 1;
    constexpr int64_t kRowsToPack = 4;
    const bool isScattered = farApart(vectors, s.reduce.back().extent);
    const bool packs =
        (isStrided || isScattered) && isReused && s.axes[row].extent >= (isStrided ? 1 : 4) * kRowsToPack;
    if (isStrided && !packs) return false;
    for (size_t i = 0; i < s.axes.size(); ++i)
      if (!isShared(k, i) && i != v) rest.push_back(axisName(i));
    for (size_t i = 0; i < s.reduce.size(); ++i) loops.push_back(reduceName(i));

    const int64_t columns = s.axes[v].extent, lanes = lanesFor(s, target_, columns);
    const RegisterTile tile = tileOf(s, isReused ? strip_ : 1, columns, lanes);
    PlanWriter w(plan_, static_cast<int32_t>(k), loops);
    auto [vo, vi] = w.split(axisName(v), tile.vectors * lanes, Tail::Peel);
    auto [vj, vl] = w.split(vi, lanes, Tail::Mask);
    auto [ro, ri] = w.split(axisName(row), tile.rows, Tail::Peel);
    constexpr int64_t kUnroll = 4;
    auto [ko, ki] = w.split(reduceName(s.reduce.size() - 1), kUnroll, Tail::Peel);
    std::vector<std::string> order = rest;
    order.insert(order.end(), {vo, ro});
    for (size_t i = 0; i + 1 < s.reduce.size(); ++i) order.push_back(reduceName(i));
    order.insert(order.end(), {ko, ki, ri, vj, vl});
    w.reorder(order);
    w.mark(Primitive::Unroll, {ki, ri, vj});
    if (lanes > 1) w.mark(Primitive::Vectorise, {vl});
    if (packs) w.pack(x);
    return true;
  }

  const loop::Computation& kernel_;
  const TargetSpec& target_;
  const std::vector<std::vector<size_t>> at_;
  Plan* plan_;
  int64_t strip_ = 1;
};

}  // namespace

bool planChain(const loop::Computation& kernel, const TargetSpec& target, Plan* plan) {
  if (!schedule::isChain(kernel)) return false;
  auto at = schedule::alignStages(kernel.stages);
  if (!at) return false;
  ChainPlanner(kernel, target, std::move(*at), plan).write();
  return true;
}

}  // namespace locution::generator

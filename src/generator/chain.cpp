// Chains of products (attention): strips of rows run through all stages while what lies between them stays in the caches. Within a
// strip each product has the register tile of a contraction; keys are packed once for all strips when they don't lie along the vector.
#include <algorithm>

#include "core/saturate.h"
#include "generator/rules.h"
#include "generator/tile.h"
#include "schedule/chain.h"

namespace locution::generator {

using loop::Stage;
using space::Decision;

namespace {

constexpr int64_t kRows = 64;             ///< enough to make reading an operand's panel once a strip cheap
constexpr int64_t kMaxBytes = 768 << 10;  ///< of temporaries: they live on the stack
constexpr int64_t kTasksPerThread = 4;

RegisterTile tileOf(const Stage& s, const TargetSpec& target, int64_t rows, int64_t columns, int64_t lanes) {
  return chooseTile({rows, columns, lanes, target.vectorRegisters, isFloat(s.body->type.dtype)});
}

// Each step of the reduction is on another page, or a few sets of the first cache hold all of them.
bool farApart(const Access& a, int64_t steps) {
  const int64_t bytes = a.reduce.back().value_or(0) * (dtypeBits(a.buffer->element.dtype) / 8);
  return bytes >= 1024 && steps >= 16;
}

}  // namespace

int64_t chooseStrips(const space::Space& space) {
  const TargetSpec& target = space.target();
  const Stage& first = space.kernel().stages[0];
  const std::vector<size_t> shared = space.sharedAxes(space.mostShared())[0];
  const int64_t whole = space.stripExtent();
  int64_t tasks = 1;
  for (size_t j = 0; j + 1 < shared.size(); ++j) tasks *= first.axes[shared[j]].extent;
  const int64_t columns = first.axes.back().extent, lanes = lanesFor(first, target, columns);
  int64_t rows = std::clamp<int64_t>(std::min(target.l2Bytes / 2, kMaxBytes) / space.rowBytes(), 1, kRows);
  const int64_t tile = tileOf(first, target, std::min(whole, kRows), columns, lanes).rows;
  while (rows > 2 * tile && tasks * ceilDivide(whole, rows) < kTasksPerThread * target.threads) rows /= 2;
  if (whole <= rows) return 1;
  // Strips of one size need no second version of the code.
  for (int64_t r = rows; r >= std::max<int64_t>(1, rows / 2); --r)
    if (whole % r == 0) return whole / r;
  return ceilDivide(whole, rows);
}

// [columns, rows | reduction | register tile]; declined when no axis is left for vectors or nothing lies along them.
std::optional<Wishes> chainWishes(const space::Space& space, const space::StageChoices& stage) {
  const space::StageFacts& f = stage.facts();
  const Stage& s = *f.stage;
  if (!schedule::isProductSum(s) || !f.isProduct() || !stage.scope().strip) return std::nullopt;
  const size_t row = *stage.scope().strip;
  size_t v = s.axes.size();
  for (size_t i : stage.scope().own)
    if (i != row) v = i;
  if (v == s.axes.size()) return std::nullopt;
  const size_t x = f.operands[1].used(v) ? 1 : 0;
  const Access& vectors = f.operands[x];
  if (!vectors.spatial[v] || f.operands[1 - x].used(v)) return std::nullopt;
  const bool isReused = !vectors.used(row), isStrided = *vectors.spatial[v] != 1;
  constexpr int64_t kRowsToPack = 4;
  const bool isScattered = farApart(vectors, s.reduce.back().extent);
  const bool packs = (isStrided || isScattered) && isReused && s.axes[row].extent >= (isStrided ? 1 : 4) * kRowsToPack;
  if (isStrided && !packs) return std::nullopt;
  const int64_t columns = s.axes[v].extent, lanes = lanesFor(s, space.target(), columns);
  const RegisterTile tile = tileOf(s, space.target(), isReused ? stage.scope().extents[row] : 1, columns, lanes);
  constexpr int64_t kUnroll = 4;
  Wishes w;
  w.set(Decision::Vector, static_cast<int64_t>(v));
  w.set(Decision::Columns, 1);
  w.set(Decision::Lanes, lanes);
  w.set(Decision::Vectors, tile.vectors);
  w.set(Decision::RowAxis, static_cast<int64_t>(row));
  w.set(Decision::Rows, tile.rows);
  w.set(Decision::Unroll, kUnroll);
  w.set(Decision::Pack0, packs && x == 0 ? 1 : 0);
  w.set(Decision::Pack1, packs && x == 1 ? 1 : 0);
  std::vector<int64_t> order;
  for (size_t i : stage.scope().own)
    if (i != v && i != row) order.push_back(static_cast<int64_t>(i));
  order.insert(order.end(), {space::kColumnLoop, space::kRowLoop});
  w.order(order, 0);
  return w;
}

}  // namespace locution::generator

#include "space/stage_choices.h"

#include <algorithm>
#include <numeric>

#include "core/saturate.h"
#include "loop/passes.h"
#include "schedule/dot.h"
#include "support/check.h"

namespace locution::space {

using loop::Stage;

namespace {

constexpr int64_t kDotGroup = 4;
/// Updates of accumulators in one pass: what is unrolled beyond costs compile time and the instruction cache.
constexpr int64_t kMostUpdates = 512;
constexpr int64_t kMostVectors = 8;
/// Terms of a part of the reduction: fewer don't pay for keeping the sums in between.
constexpr int64_t kLeastPart = 16;
/// A block's sums lie on the stack.
constexpr int64_t kMostBlockBytes = 512 << 10;
/// Copies of activations take time at every run, and weights must not grow.
constexpr int64_t kMostCopies = 4;

}  // namespace

StageChoices::StageChoices(const StageFacts* facts, StageScope scope) : facts_(facts), scope_(std::move(scope)) {}

int64_t StageChoices::get(Decision decision, int64_t otherwise) const {
  return values_[static_cast<size_t>(decision)].value_or(otherwise);
}

void StageChoices::set(Decision decision, int64_t value) {
  if (isRepeated(decision)) {
    order_.push_back(value);
  } else {
    values_[static_cast<size_t>(decision)] = value;
  }
}

size_t StageChoices::vectorAxis() const {
  const int64_t v = get(Decision::Vector, kNoAxis);
  return static_cast<size_t>(v >= kReduceAxis ? v - kReduceAxis : v);
}

std::vector<size_t> StageChoices::columns() const {
  if (!hasVector()) return {};
  std::vector<size_t> run = isFold() ? facts_->reducedRun(vectorAxis()) : facts_->spatialRun(vectorAxis(), scope_.own);
  run.resize(std::min<size_t>(run.size(), static_cast<size_t>(get(Decision::Columns, 1))));
  return run;
}

std::vector<size_t> StageChoices::others() const {
  const std::vector<size_t> taken = isFold() ? std::vector<size_t>{} : columns();
  const std::vector<size_t> tiled = rows();
  std::vector<size_t> out;
  for (size_t i : scope_.own)
    if (std::find(taken.begin(), taken.end(), i) == taken.end() &&
        std::find(tiled.begin(), tiled.end(), i) == tiled.end())
      out.push_back(i);
  return out;
}

std::vector<size_t> StageChoices::rows() const {
  const int64_t last = get(Decision::RowAxis, kNoAxis);
  if (last == kNoAxis) return {};
  const std::vector<size_t> taken = isFold() ? std::vector<size_t>{} : columns();
  std::vector<size_t> out;
  auto count = static_cast<size_t>(get(Decision::RowAxes, 1));
  for (auto i = static_cast<size_t>(last) + 1; i-- > 0 && out.size() < count;) {
    if (std::find(scope_.own.begin(), scope_.own.end(), i) == scope_.own.end()) break;
    if (std::find(taken.begin(), taken.end(), i) == taken.end() && extentOf(i) > 1) out.insert(out.begin(), i);
  }
  return out;
}

int64_t StageChoices::columnExtent() const {
  if (!hasVector()) return 1;
  int64_t extent = 1;
  if (!isFold() && facts_->groupOf(vectorAxis()) > 1) return facts_->groupOf(vectorAxis());
  for (size_t i : columns()) extent *= isFold() ? facts_->stage->reduce[i].extent : extentOf(i);
  return extent;
}

int64_t StageChoices::rowExtent() const {
  int64_t extent = 1;
  for (size_t i : rows()) extent *= extentOf(i);
  return extent;
}

int64_t StageChoices::rowTiles() const { return ceilDivide(rowExtent(), get(Decision::Rows, 1)); }
int64_t StageChoices::columnTiles() const {
  return ceilDivide(columnExtent(), get(Decision::Vectors, 1) * get(Decision::Lanes, 1));
}
int64_t StageChoices::lastReduction() const { return facts_->stage->reduce.back().extent; }
int64_t StageChoices::tileUpdates() const { return get(Decision::Rows, 1) * get(Decision::Vectors, 1); }

std::vector<int64_t> StageChoices::options(Decision d) const {
  const Stage& s = *facts_->stage;
  if (d < Decision::Algorithm || isTooDeep()) return {};
  if (d == Decision::Algorithm) return algorithms();
  if (isWinograd()) return winogradOptions(d);
  if (d >= Decision::Pack0) return operandOptions(d);
  if (d >= Decision::RowBlocks) return outerOptions(d);
  if (s.scan) return {};
  return d >= Decision::Dot ? reductionOptions(d) : tileOptions(d);
}

std::vector<int64_t> StageChoices::algorithms() const {
  const std::optional<schedule::WinogradForm>& form = facts_->winograd;
  // Both transforms work on whole vectors of channels.
  if (!form || !scope_.isAlone || form->outputs % 4 != 0 || form->channels % (form->isInteger ? 8 : 4) != 0) return {};
  std::vector<int64_t> out{0};
  for (int64_t m : {2, 4})
    if (schedule::holdsSums(*form, m)) out.push_back(m);
  return out;
}

std::vector<int64_t> StageChoices::tileOptions(Decision d) const {
  const Stage& s = *facts_->stage;
  const TargetSpec& t = *facts_->target;
  std::vector<int64_t> out;
  if (d == Decision::Vector) {
    out.push_back(kNoAxis);
    for (size_t i : scope_.own)
      if (extentOf(i) > 1 && scope_.strip != i) out.push_back(static_cast<int64_t>(i));
    constexpr int64_t kLeastFold = 4;
    if (facts_->isReduction())
      for (size_t i = 0; i < s.reduce.size(); ++i)
        if (s.reduce[i].extent >= kLeastFold) out.push_back(kReduceAxis + static_cast<int64_t>(i));
    return out;
  }
  if (!hasVector()) {
    if (d != Decision::RowAxis && d != Decision::RowAxes && d != Decision::Rows) return {};
  }
  switch (d) {
    case Decision::Columns: {
      const auto run = static_cast<int64_t>(
          (isFold() ? facts_->reducedRun(vectorAxis()) : facts_->spatialRun(vectorAxis(), scope_.own)).size());
      return ladderUpTo(run);
    }
    case Decision::Lanes: {
      const int64_t most = lanesFor(s, t, columnExtent());
      if (!isFold()) out.push_back(1);
      for (int64_t lanes = std::min<int64_t>(4, most); lanes <= most; lanes *= 2)
        if (lanes > 1) out.push_back(lanes);
      return out;
    }
    case Decision::Vectors:
      return ladderUpTo(std::min({kMostVectors, mostRegisters(), ceilDivide(columnExtent(), get(Decision::Lanes, 1))}));
    case Decision::RowAxis: {
      out.push_back(kNoAxis);
      const std::vector<size_t> taken = isFold() ? std::vector<size_t>{} : columns();
      for (size_t i : scope_.own)
        if (extentOf(i) > 1 && std::find(taken.begin(), taken.end(), i) == taken.end())
          out.push_back(static_cast<int64_t>(i));
      return out;
    }
    case Decision::RowAxes: {
      const int64_t last = get(Decision::RowAxis, kNoAxis);
      if (last == kNoAxis || scope_.strip == static_cast<size_t>(last)) return {};
      const std::vector<size_t> taken = isFold() ? std::vector<size_t>{} : columns();
      int64_t count = 0;
      for (auto i = static_cast<size_t>(last) + 1; i-- > 0;) {
        if (std::find(scope_.own.begin(), scope_.own.end(), i) == scope_.own.end() || scope_.strip == i) break;
        count += std::find(taken.begin(), taken.end(), i) == taken.end() && extentOf(i) > 1 ? 1 : 0;
      }
      return ladderUpTo(count);
    }
    case Decision::Rows:
      if (get(Decision::RowAxis, kNoAxis) == kNoAxis) return {};
      return ladderUpTo(std::min(rowExtent(), mostRegisters() / get(Decision::Vectors, 1)));
    case Decision::VectorTail: {
      const int64_t lanes = get(Decision::Lanes, 1);
      // Within a register tile nothing branches.
      if (facts_->isReduction()) return {1};
      return lanes > 1 && columnExtent() % lanes != 0 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
    }
    default:
      return {};
  }
}

std::vector<int64_t> StageChoices::reductionOptions(Decision d) const {
  const Stage& s = *facts_->stage;
  if (!facts_->isReduction() || s.reduce.empty() || isFold()) return {};
  const int64_t dot = get(Decision::Dot, 0), window = get(Decision::Window, 0), unroll = get(Decision::Unroll, 1);
  std::vector<int64_t> out;
  switch (d) {
    case Decision::Dot: {
      if (!hasVector() || !facts_->isProduct() || lastReduction() < kDotGroup || get(Decision::Lanes, 1) < 4) return {};
      const size_t v = vectorAxis();
      if (facts_->isBatch(v) || facts_->rows(v).reduce.back() != 1) return {};
      out.push_back(0);
      schedule::Dot form{"", facts_->vectorOperand(v), true};
      if (schedule::mayDot(s, form)) out.push_back(2);
      form.isWidened = false;
      if (facts_->target->hasVnni && schedule::mayDot(s, form)) out.push_back(4);
      return out;
    }
    case Decision::Window: {
      if (dot != 0) return {};
      out.push_back(0);
      int64_t updates = tileUpdates();
      for (size_t k = 1; k <= s.reduce.size(); ++k) {
        updates *= s.reduce[s.reduce.size() - k].extent;
        if (updates > kMostUpdates) break;
        out.push_back(static_cast<int64_t>(k));
      }
      return out;
    }
    case Decision::Unroll:
      if (dot != 0) return {kDotGroup};
      if (window != 0) return {};
      for (int64_t k = 1; k <= 16; k *= 2)
        if (k <= lastReduction() && (k == 1 || k * tileUpdates() <= kMostUpdates)) out.push_back(k);
      return out;
    case Decision::Slide:
      return window != 0 && get(Decision::Rows, 1) > 1 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{};
    case Decision::Apart:
      return dot == 0 && unroll > 1 && unroll * tileUpdates() <= mostRegisters() ? std::vector<int64_t>{0, 1}
                                                                                 : std::vector<int64_t>{};
    case Decision::ReduceParts:
      if (!scope_.isAlone || window != 0 || get(Decision::Apart, 0) != 0) return {};
      return ladderUpTo(std::max<int64_t>(1, lastReduction() / std::max(kLeastPart, unroll)));
    default:
      return {};
  }
}

std::vector<int64_t> StageChoices::loopsLeft() const {
  std::vector<int64_t> out;
  auto add = [&](int64_t loop) {
    if (!isPlaced(loop)) out.push_back(loop);
  };
  for (size_t i : others())
    if (extentOf(i) > 1) add(static_cast<int64_t>(i));
  if (hasVector() && !isFold() && facts_->groupOf(vectorAxis()) > 1) add(static_cast<int64_t>(vectorAxis()));
  if (rowTiles() > 1) {
    add(kRowLoop);
    if (get(Decision::RowBlocks, 1) > 1) add(kRowLoopInner);
  }
  if (!isFold() && columnTiles() > 1) {
    add(kColumnLoop);
    if (get(Decision::ColumnBlocks, 1) > 1) add(kColumnLoopInner);
  }
  if (get(Decision::ReduceParts, 1) > 1) add(kPartLoop);
  return out;
}

bool StageChoices::isPlaced(int64_t loop) const {
  return std::find(order_.begin(), order_.end(), loop) != order_.end();
}

int64_t StageChoices::iterations(int64_t loop) const {
  switch (loop) {
    case kRowLoop:
      return get(Decision::RowBlocks, 1) > 1 ? get(Decision::RowBlocks, 1) : rowTiles();
    case kRowLoopInner:
      return ceilDivide(rowTiles(), get(Decision::RowBlocks, 1));
    case kColumnLoop:
      return get(Decision::ColumnBlocks, 1) > 1 ? get(Decision::ColumnBlocks, 1) : columnTiles();
    case kColumnLoopInner:
      return ceilDivide(columnTiles(), get(Decision::ColumnBlocks, 1));
    case kPartLoop:
      return get(Decision::ReduceParts, 1);
    default: {
      const auto axis = static_cast<size_t>(loop);
      const bool isGroup = hasVector() && !isFold() && axis == vectorAxis();
      return isGroup ? extentOf(axis) / facts_->groupOf(axis) : extentOf(axis);
    }
  }
}

std::vector<int64_t> StageChoices::outerOptions(Decision d) const {
  if (facts_->stage->scan) {
    if (d != Decision::Parallel || !scope_.isAlone) return {};
    std::vector<int64_t> counts;
    for (size_t n = 0; n < scope_.own.size(); ++n) counts.push_back(static_cast<int64_t>(n));
    return counts;
  }
  switch (d) {
    case Decision::RowBlocks:
      return scope_.isAlone ? ladderUpTo(std::max<int64_t>(1, rowTiles() / 2)) : std::vector<int64_t>{};
    case Decision::ColumnBlocks:
      return scope_.isAlone && !isFold() ? ladderUpTo(std::max<int64_t>(1, columnTiles() / 2)) : std::vector<int64_t>{};
    case Decision::Next: {
      std::vector<int64_t> left = loopsLeft(), out;
      auto isLeft = [&](int64_t loop) { return std::find(left.begin(), left.end(), loop) != left.end(); };
      int64_t inside = tileUpdates() * get(Decision::Lanes, 1) * dtypeBytes(facts_->stage->body->type.dtype, 1);
      for (int64_t loop : left)
        if (loop != kPartLoop) inside *= iterations(loop);
      for (int64_t loop : left) {
        if (loop == kRowLoopInner && isLeft(kRowLoop)) continue;
        if (loop == kColumnLoopInner && isLeft(kColumnLoop)) continue;
        // A group's columns lie within it.
        const bool isInGroup = loop == kColumnLoop || loop == kColumnLoopInner || loop == kPartLoop;
        if (isInGroup && isLeft(get(Decision::Vector, kNoAxis))) continue;
        if (loop == kPartLoop && inside > kMostBlockBytes) continue;
        out.push_back(loop);
      }
      return out;
    }
    case Decision::Parallel: {
      if (!scope_.isAlone) return {};
      std::vector<int64_t> counts;
      for (int64_t n = 0; n <= mostParallel(); ++n) counts.push_back(n);
      return counts;
    }
    case Decision::Edges: {
      const bool isGuarded = facts_->isGuarded[0] || facts_->isGuarded[1];
      auto at = std::find(order_.begin(), order_.end(), kRowLoop);
      if (!isGuarded || at == order_.end() || get(Decision::RowBlocks, 1) > 1) return {};
      return at - order_.begin() >= get(Decision::Parallel, 0) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{};
    }
    default:
      return {};
  }
}

int64_t StageChoices::mostParallel() const {
  int64_t n = 0;
  for (int64_t loop : order_) {
    if (loop == kPartLoop || loop == kRowLoopInner || loop == kColumnLoopInner) break;
    ++n;
  }
  return n;
}

bool StageChoices::mayPack(size_t k) const {
  if (!facts_->isProduct() || !facts_->isInput[k] || !facts_->isReduction()) return false;
  if (scope_.strip && facts_->operands[k].used(*scope_.strip)) return false;
  const loop::Buffer& b = *facts_->operands[k].buffer;
  int64_t elements = 1;
  for (int64_t d : loop::extents(b)) elements *= d;
  return packedElements(k) <= elements * kMostCopies;
}

// A loop over joined axes is one dim of the copy, whichever of them the operand uses.
int64_t StageChoices::packedElements(size_t k) const {
  const Access& a = facts_->operands[k];
  const std::vector<size_t> alongLanes = columns(), tiled = rows();
  auto isIn = [](const std::vector<size_t>& list, size_t i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  };
  bool usesColumns = false, usesRows = false;
  int64_t elements = 1;
  for (size_t i = 0; i < a.spatial.size(); ++i) {
    const bool isColumn = !isFold() && isIn(alongLanes, i);
    if (!a.used(i)) continue;
    usesColumns = usesColumns || isColumn;
    usesRows = usesRows || isIn(tiled, i);
    if (!isColumn && !isIn(tiled, i)) elements *= facts_->stage->axes[i].extent;
    if (isColumn && facts_->groupOf(i) > 1) elements *= facts_->stage->axes[i].extent / facts_->groupOf(i);
  }
  for (size_t i = 0; i < a.reduce.size(); ++i) {
    const bool isColumn = isFold() && isIn(alongLanes, i);
    if (!a.usedReduce(i)) continue;
    usesColumns = usesColumns || isColumn;
    if (!isColumn) elements *= facts_->stage->reduce[i].extent;
  }
  // Tiles are padded.
  if (usesColumns) elements *= columnTiles() * get(Decision::Vectors, 1) * get(Decision::Lanes, 1);
  if (usesRows) elements *= rowTiles() * get(Decision::Rows, 1);
  return elements;
}

std::vector<int64_t> StageChoices::operandOptions(Decision d) const {
  if (facts_->stage->scan) return {};
  switch (d) {
    case Decision::Pack0:
      return mayPack(0) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{};
    case Decision::Pack1:
      return mayPack(1) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{};
    case Decision::Fetch: {
      std::vector<int64_t> out{0};
      if (get(Decision::Pack0, 0) != 0) out.push_back(1);
      if (get(Decision::Pack1, 0) != 0) out.push_back(2);
      return out;
    }
    default:
      return {};
  }
}

std::vector<int64_t> StageChoices::winogradOptions(Decision d) const {
  const schedule::WinogradForm& form = *facts_->winograd;
  const int64_t m = get(Decision::Algorithm, 2);
  std::vector<int64_t> out;
  switch (d) {
    case Decision::Lanes:
      for (int64_t lanes = 4; lanes <= facts_->target->lanes(4); lanes *= 2)
        if (form.outputs % lanes == 0) out.push_back(lanes);
      return out;
    case Decision::Vectors:
      return ladderUpTo(std::min(kMostVectors / 2, form.outputs / get(Decision::Lanes, 4)));
    case Decision::Rows:
      return ladderUpTo(std::min(form.tiles(m), mostRegisters() / get(Decision::Vectors, 1)));
    case Decision::RowBlocks: {
      // The products of a block lie on the stack.
      const int64_t groups = ceilDivide(form.tiles(m), get(Decision::Rows, 1));
      for (int64_t blocks : ladderUpTo(groups)) {
        const int64_t block = ceilDivide(groups, blocks) * get(Decision::Rows, 1);
        const int64_t bytes = 4 * form.points(m) * block * get(Decision::Vectors, 1) * get(Decision::Lanes, 4);
        if (bytes <= kMostBlockBytes) out.push_back(blocks);
      }
      // More blocks than the ladder has steps.
      if (out.empty()) out.push_back(ladderUpTo(groups).back());
      return out;
    }
    case Decision::Next:
      return order_.empty() ? std::vector<int64_t>{kRowLoop, kColumnLoop} : std::vector<int64_t>{};
    default:
      return {};
  }
}

}  // namespace locution::space

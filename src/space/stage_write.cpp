// From a stage's decisions to the steps of its plan.
#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "schedule/winograd.h"
#include "space/plan_writer.h"
#include "space/stage_choices.h"

namespace locution::space {

using schedule::Primitive;
using schedule::Tail;

namespace {

void append(std::vector<std::string>* to, const std::vector<std::string>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

std::vector<std::string> axisNames(const std::vector<size_t>& axes) {
  std::vector<std::string> names;
  for (size_t i : axes) names.push_back(axisName(i));
  return names;
}

/// The loops of a stage while they are cut, joined and put in order.
class TileWriter {
 public:
  TileWriter(const StageChoices& c, std::vector<size_t> columns, std::vector<size_t> rows, std::vector<size_t> others,
             schedule::Plan* plan)
      : c_(c),
        s_(*c.facts().stage),
        columns_(std::move(columns)),
        rows_(std::move(rows)),
        others_(std::move(others)),
        w_(plan, static_cast<int32_t>(c.facts().index), loops()) {
    const int64_t v = c.get(Decision::Vector, kNoAxis);
    isFold_ = v >= kReduceAxis;
    hasVector_ = v != kNoAxis;
  }

  void write(const std::vector<int64_t>& order) {
    joinLoops();
    splitColumns();
    splitRows();
    splitReduction();
    std::vector<std::string> loops = implied_;
    for (int64_t loop : order) {
      if (loop == kPartLoop) append(&loops, std::exchange(impliedTiles_, {}));
      loops.push_back(named(loop));
    }
    append(&loops, impliedTiles_);
    writeTile(&loops);
    if (c_.get(Decision::Edges, 0) != 0) w_.mark(Primitive::Edges, {row_});
    if (const int64_t dot = c_.get(Decision::Dot, 0); dot != 0)
      w_.dot(dot == 2 ? Primitive::Dot2 : Primitive::Dot4, step_,
             c_.facts().vectorOperand(static_cast<size_t>(c_.get(Decision::Vector, 0))));
    if (c_.get(Decision::Pack0, 0) != 0) w_.pack(0);
    if (c_.get(Decision::Pack1, 0) != 0) w_.pack(1);
    if (const int64_t fetch = c_.get(Decision::Fetch, 0); fetch != 0) w_.prefetch(fetch - 1);
    if (const int64_t parallel = c_.get(Decision::Parallel, 0); parallel != 0)
      w_.parallel(implied_.size() + static_cast<size_t>(parallel));
  }

 private:
  std::vector<std::string> loops() const {
    std::vector<std::string> names = axisNames(c_.scope().own);
    for (size_t i = 0; i < s_.reduce.size(); ++i) names.push_back(reduceName(i));
    return names;
  }

  void joinLoops() {
    if (isFold_) {
      std::vector<std::string> names;
      for (auto i = columns_.rbegin(); i != columns_.rend(); ++i) names.push_back(reduceName(*i));
      for (size_t i = 0; i < s_.reduce.size(); ++i)
        if (std::find(columns_.begin(), columns_.end(), i) == columns_.end()) reduced_.push_back(reduceName(i));
      std::vector<std::string> order = axisNames(others_);
      append(&order, axisNames(rows_));
      append(&order, reduced_);
      append(&order, names);
      w_.reorder(order);
      column_ = w_.fuse(names);
    } else {
      std::vector<size_t> columns(columns_.rbegin(), columns_.rend());
      for (size_t i = 0; i < s_.reduce.size(); ++i) reduced_.push_back(reduceName(i));
      std::vector<std::string> order = axisNames(others_);
      append(&order, axisNames(rows_));
      append(&order, axisNames(columns));
      append(&order, reduced_);
      w_.reorder(order);
      if (!columns.empty()) column_ = w_.fuse(axisNames(columns));
    }
    if (!rows_.empty()) row_ = w_.fuse(axisNames(rows_));
    for (size_t i : others_)
      if (c_.scope().extents[i] <= 1) implied_.push_back(axisName(i));
  }

  void splitColumns() {
    if (!hasVector_) return;
    const int64_t lanes = c_.get(Decision::Lanes, 1), vectors = c_.get(Decision::Vectors, 1);
    const Tail tail = c_.get(Decision::VectorTail, 1) != 0 ? Tail::Mask : Tail::Peel;
    if (isFold_) {
      auto [outer, inner] = w_.split(column_, lanes * vectors, Tail::Mask);
      std::tie(vector_, lane_) = w_.split(inner, lanes, Tail::Mask);
      column_ = outer;
      return;
    }
    const auto axis = static_cast<size_t>(c_.get(Decision::Vector, 0));
    if (const int64_t group = c_.facts().groupOf(axis); group > 1) {
      std::tie(group_, column_) = w_.split(column_, group, Tail::Peel);
      if (c_.iterations(static_cast<int64_t>(axis)) <= 1) implied_.push_back(group_);
    }
    if (lanes > 1) {
      auto [outer, inner] = w_.split(column_, lanes * vectors, Tail::Peel);
      std::tie(vector_, lane_) = w_.split(inner, lanes, tail);
      column_ = outer;
    } else if (vectors > 1) {
      std::tie(column_, vector_) = w_.split(column_, vectors, Tail::Peel);
    }
    const int64_t blocks = c_.get(Decision::ColumnBlocks, 1), tiles = c_.columnTiles();
    if (tiles <= 1) impliedTiles_.push_back(column_);
    if (blocks > 1) std::tie(column_, columnInner_) = w_.split(column_, ceilDivide(tiles, blocks), Tail::Clamp);
  }

  void splitRows() {
    if (rows_.empty()) return;
    const int64_t blocks = c_.get(Decision::RowBlocks, 1), tiles = c_.rowTiles();
    if (const int64_t rows = c_.get(Decision::Rows, 1); rows > 1)
      std::tie(row_, tileRow_) = w_.split(row_, rows, Tail::Peel);
    if (tiles <= 1) impliedTiles_.push_back(row_);
    if (blocks > 1) std::tie(row_, rowInner_) = w_.split(row_, ceilDivide(tiles, blocks), Tail::Clamp);
  }

  void splitReduction() {
    if (isFold_ || !c_.facts().isReduction() || reduced_.empty()) return;
    const auto window = static_cast<size_t>(c_.get(Decision::Window, 0));
    if (window != 0) {
      unrolled_.assign(reduced_.end() - static_cast<long>(window), reduced_.end());
      reduced_.resize(reduced_.size() - window);
      return;
    }
    const int64_t unroll = c_.get(Decision::Unroll, 1), parts = c_.get(Decision::ReduceParts, 1);
    std::string last = reduced_.back();
    if (parts > 1) {
      const int64_t whole = s_.reduce.back().extent;
      std::tie(part_, last) = w_.split(last, ceilDivide(ceilDivide(whole, parts), unroll) * unroll, Tail::Peel);
    }
    reduced_.back() = last;
    if (unroll == 1) return;
    std::tie(reduced_.back(), step_) = w_.split(last, unroll, Tail::Peel);
    unrolled_ = {step_};
    if (c_.get(Decision::Apart, 0) != 0) w_.mark(Primitive::Partial, {step_});
  }

  std::string named(int64_t loop) const {
    switch (loop) {
      case kRowLoop:
        return row_;
      case kRowLoopInner:
        return rowInner_;
      case kColumnLoop:
        return column_;
      case kColumnLoopInner:
        return columnInner_;
      case kPartLoop:
        return part_;
      default:
        return !group_.empty() && loop == c_.get(Decision::Vector, kNoAxis) ? group_
                                                                            : axisName(static_cast<size_t>(loop));
    }
  }

  void writeTile(std::vector<std::string>* loops) {
    std::vector<std::string> registers;
    const bool slides = c_.get(Decision::Slide, 0) != 0;
    if (!tileRow_.empty()) registers.push_back(tileRow_);
    append(loops, reduced_);
    if (isFold_) loops->push_back(column_);
    if (slides) loops->push_back(tileRow_);
    append(loops, unrolled_);
    if (!tileRow_.empty() && !slides) loops->push_back(tileRow_);
    if (!vector_.empty()) {
      registers.push_back(vector_);
      loops->push_back(vector_);
    }
    if (!lane_.empty()) loops->push_back(lane_);
    w_.reorder(*loops);
    append(&registers, unrolled_);
    w_.mark(Primitive::Unroll, registers);
    if (isFold_) w_.mark(Primitive::Partial, {vector_});
    if (!lane_.empty()) w_.mark(Primitive::Vectorise, {lane_});
  }

  const StageChoices& c_;
  const loop::Stage& s_;
  std::vector<size_t> columns_, rows_, others_;
  PlanWriter w_;
  bool isFold_ = false, hasVector_ = false;
  /// Loops of one iteration: outside the others, and within all that the result has.
  std::vector<std::string> implied_, impliedTiles_;
  std::vector<std::string> reduced_, unrolled_;
  std::string group_, column_, columnInner_, vector_, lane_, row_, rowInner_, tileRow_, part_, step_;
};

}  // namespace

void StageChoices::write(schedule::Plan* plan) const {
  if (isTooDeep()) return;
  if (facts_->stage->scan) {
    PlanWriter w(plan, static_cast<int32_t>(facts_->index), axisNames(scope_.own));
    w.parallel(static_cast<size_t>(get(Decision::Parallel, 0)));
    return;
  }
  if (isWinograd()) {
    const schedule::WinogradForm& form = *facts_->winograd;
    const int64_t m = get(Decision::Algorithm, 2), rows = get(Decision::Rows, 1);
    const int64_t block = ceilDivide(ceilDivide(form.tiles(m), rows), get(Decision::RowBlocks, 1)) * rows;
    const schedule::WinogradTile tile{
        m, block, rows, get(Decision::Vectors, 1), get(Decision::Lanes, 4), order_.empty() || order_[0] == kRowLoop};
    for (schedule::Step& step : schedule::winogradSteps(tile)) plan->steps.push_back(std::move(step));
    return;
  }
  if (scope_.own.empty() && !hasVector()) return;
  TileWriter(*this, columns(), rows(), others(), plan).write(order_);
}

}  // namespace locution::space

// Contractions: sums of products of two operands, one of them (the vector operand) read in vectors, the other (the row operand) an
// element at a time for each row of a register tile. Packed GEMM, convolution as implicit GEMM, depthwise convolution and GEMV are one
// form: [batch, row blocks, vector tiles, row tiles | reduction | register tile].
#include <algorithm>
#include <numeric>
#include <optional>

#include "generator/rules.h"
#include "generator/tile.h"
#include "schedule/dot.h"
#include "space/access.h"
#include "space/plan_writer.h"

namespace locution::generator {

using loop::Stage;
using schedule::Primitive;
using schedule::Tail;

namespace {

constexpr int64_t kReductionUnroll = 4;
constexpr int64_t kDotGroup = 4;
constexpr int64_t kMaxUnrolledUpdates = 256;
/// Strict: the most terms that are added up one after the other where there are no rows to share the registers.
constexpr int64_t kStrictChain = 512;
constexpr int64_t kLinesPerThread = 3;
/// From here on a tile's work dwarfs the arithmetic of its rows' addresses.
constexpr int64_t kLongReduction = 192;

int64_t strideOf(const Access& a, size_t axis) { return a.spatial[axis].value_or(0); }

class ContractionRule {
 public:
  ContractionRule(const StageQuestion& q, schedule::Plan* plan)
      : q_(q),
        s_(q.self()),
        all_(accesses(s_)),
        operands_(productOperands(s_)),
        w_(plan, static_cast<int32_t>(q.stage), loops()) {}

  bool write() {
    if (s_.scan || operands_.size() != 2 || s_.axes.empty() || s_.reduce.empty() || !q_.isAlone()) return false;
    v_ = s_.axes.size() - 1;
    vExtent_ = s_.axes[v_].extent;
    if (vExtent_ < 4) return false;
    int64_t group = 1;
    for (const Access& a : operands_)
      if (!a.spatial[v_]) group = std::max(group, groupSize(s_, v_));
    bool hasUnknown = !operands_[0].spatial[v_] || !operands_[1].spatial[v_];
    if (hasUnknown && group < 4) return false;
    vectorOperand_ = strideOf(operands_[1], v_) != 0 || hasUnknown ? 1 : 0;
    isDepthwise_ = !hasUnknown && x().used(v_) && y().used(v_);
    std::string vLoop = axisName(v_);
    if (hasUnknown) {
      // A grouped axis (its group number indexes an operand) is split into group and member.
      auto [g, member] = w_.split(vLoop, group, Tail::Peel);
      batch_.push_back(g);
      vLoop = member;
      vExtent_ = group;
    } else if (!isDepthwise_) {
      vLoop = joinColumns();
    }
    chooseDot(hasUnknown);
    chooseRows();
    chooseTile();
    writeLoops(vLoop);
    return true;
  }

 private:
  std::vector<std::string> loops() const {
    std::vector<std::string> names;
    for (size_t i = q_.shared; i < s_.axes.size(); ++i) names.push_back(axisName(i));
    for (size_t i = 0; i < s_.reduce.size(); ++i) names.push_back(reduceName(i));
    return names;
  }
  const Access& x() const { return operands_[static_cast<size_t>(vectorOperand_)]; }
  const Access& y() const { return operands_[static_cast<size_t>(1 - vectorOperand_)]; }

  int64_t lanesFor(int64_t extent) const { return space::lanesFor(s_, q_.target, extent); }

  // Columns that the vector operand has side by side are one loop: pixels, channels first, and the heads of a projection, which the
  // result may keep apart as long as no vector crosses from one to the next.
  std::string joinColumns() {
    std::vector<size_t> columns{v_};
    bool isOne = true;
    for (size_t i = v_; i-- > q_.shared;) {
      if (s_.axes[i].extent == 1 || !x().used(i)) continue;
      if (y().used(i) || !x().spatial[i] || strideOf(x(), i) != strideOf(x(), v_) * vExtent_) break;
      isOne = isOne && columns[0] == i + 1 && mergeable(all_, i, s_.axes[i + 1].extent, false);
      if (!isOne && s_.axes[v_].extent % lanesFor(s_.axes[v_].extent) != 0) break;
      columns.insert(columns.begin(), i);
      vExtent_ *= s_.axes[i].extent;
    }
    if (columns.size() == 1) {
      vExtent_ = s_.axes[v_].extent;
      return axisName(v_);
    }
    isColumn_.assign(s_.axes.size(), false);
    for (size_t i : columns) isColumn_[i] = true;
    std::vector<std::string> order, names;
    for (size_t i = q_.shared; i < s_.axes.size(); ++i)
      if (!isColumn_[i]) order.push_back(axisName(i));
    for (size_t i : columns) names.push_back(axisName(i));
    order.insert(order.end(), names.begin(), names.end());
    for (size_t i = 0; i < s_.reduce.size(); ++i) order.push_back(reduceName(i));
    w_.reorder(order);
    return w_.fuse(names);
  }
  bool isColumn(size_t axis) const { return axis == v_ || (!isColumn_.empty() && isColumn_[axis]); }

  // Products of bytes go four at a time where the row operand's lie side by side.
  void chooseDot(bool hasUnknown) {
    if (hasUnknown || isDepthwise_ || s_.reduce.back().extent < kDotGroup || y().reduce.back() != 1) return;
    schedule::Dot dot{"", vectorOperand_, false};
    if (q_.target.hasVnni && schedule::mayDot(s_, dot)) {
      dot_ = Primitive::Dot4;
    } else {
      dot.isWidened = true;
      if (schedule::mayDot(s_, dot)) dot_ = Primitive::Dot2;
    }
  }

  // Rows: neighbouring axes (columns aside) that the vector operand does not move along. Where memory lets them be one loop they are;
  // where it does not (a convolution's height and width), a fused loop costs address arithmetic outside the reduction and saves
  // incomplete tiles.
  void chooseRows() {
    // Short reductions unroll, and then a row's padding is better decided at compile time: columns apart from lines.
    const bool staysApart = isGuarded() && (isDepthwise_ || reduction() < kLongReduction);
    for (size_t i = v_; i-- > 0;) {
      if (isColumn(i)) continue;
      if (rows_.empty()) {
        if (s_.axes[i].extent == 1 || (x().used(i) && y().used(i))) continue;
      } else if (staysApart || s_.axes[i].extent == 1 || x().used(i) != x().used(rows_[0]) ||
                 !((rows_[0] == i + 1 && mergeable(all_, i, s_.axes[i + 1].extent, false)) || mayFuseRows(i))) {
        break;
      }
      rows_.insert(rows_.begin(), i);
      rowExtent_ *= s_.axes[i].extent;
    }
  }

  // Padding that the row operand is guarded for.
  bool isGuarded() const {
    const auto* product = loop::as<loop::Binary>(s_.body);
    for (const loop::Expr& side : {product->a, product->b}) {
      const auto* c = loop::as<loop::Cast>(side);
      if (loop::as<loop::Select>(c ? c->value : side)) return true;
    }
    return false;
  }

  bool mayFuseRows(size_t axis) {
    if (isDepthwise_ || !y().used(axis) || x().used(axis)) return false;
    return reduction() >= kLongReduction;
  }

  int64_t reduction() const {
    int64_t k = 1;
    for (const loop::Axis& a : s_.reduce) k *= a.extent;
    return k;
  }

  void chooseTile() {
    lanes_ = lanesFor(vExtent_);
    bool fma = isFloat(s_.body->type.dtype);
    if (isDepthwise_) {
      // Windows of neighbouring rows overlap: their loads stay in registers, which a second vector would take away.
      const int64_t most = q_.target.vectorRegisters >= 32 ? 14 : 6, tiles = (rowExtent_ + most - 1) / most;
      tile_ = {(rowExtent_ + tiles - 1) / tiles, 1};
    } else if (dot_ == Primitive::Dot2) {
      // A row's bytes are taken apart, and products need a register before they are added.
      tile_ = generator::chooseTile({rowExtent_, vExtent_, lanes_, q_.target.vectorRegisters - 3, false});
    } else {
      tile_ = generator::chooseTile({rowExtent_, vExtent_, lanes_, q_.target.vectorRegisters, fma});
    }
  }

  bool isConstant(const Access& a) const {
    const auto& constants = q_.kernel.constants;
    return std::any_of(constants.begin(), constants.end(),
                       [&](const loop::BufferRef& b) { return b.get() == a.buffer; });
  }

  static int64_t bytesOf(const loop::Buffer& b) {
    int64_t n = 1;
    for (int64_t d : loop::extents(b)) n *= d;
    return dtypeBytes(b.element.dtype, n);
  }

  // How the loops outside the register tile are cut, in tiles; 0: not at all.
  struct Blocks {
    int64_t rows = 0, panels = 0, reduction = 0;
  };

  // The row operand of a block stays in the second cache while every vector tile goes by. Where a row is as long as the reduction
  // (matrices), the reduction is cut too, and the sums of a block of outputs wait in the same cache.
  Blocks chooseBlocks() const {
    if (rows_.empty() || isDepthwise_) return {};
    const int64_t panelColumns = tile_.vectors * lanes_, panels = (vExtent_ + panelColumns - 1) / panelColumns;
    const int64_t tiles = (rowExtent_ + tile_.rows - 1) / tile_.rows;
    int64_t rowBytes = bytesOf(*y().buffer), columnBytes = bytesOf(*x().buffer);
    for (size_t i = 0; i < v_; ++i)
      if (x().used(i) && y().used(i)) {
        rowBytes /= s_.axes[i].extent;
        columnBytes /= s_.axes[i].extent;
      }
    const int64_t k = reduction(), element = dtypeBytes(y().buffer->element.dtype, 1);
    if (panels < 2 || rowBytes <= q_.target.l2Bytes / 2) return {};
    if (s_.reduce.size() == 1 && rowBytes >= rowExtent_ * k * element)
      return cutMatrices(tiles, panels, panelColumns, k, element);
    // Every block streams all of the vector operand.
    const int64_t blocks = (rowBytes + q_.target.l2Bytes / 2 - 1) / (q_.target.l2Bytes / 2);
    if (rowBytes + blocks * columnBytes >= panels * rowBytes + columnBytes) return {};
    const int64_t block = (tiles + blocks - 1) / blocks;
    return {block >= 2 ? block : 0, 0, 0};
  }

  Blocks cutMatrices(int64_t tiles, int64_t panels, int64_t panelColumns, int64_t k, int64_t element) const {
    constexpr int64_t kMostRows = 192, kLeastReduction = 128;
    const int64_t third = q_.target.l2Bytes / 3;
    Blocks b;
    const int64_t mostTiles = std::max<int64_t>(1, kMostRows / tile_.rows),
                  rowBlocks = (tiles + mostTiles - 1) / mostTiles;
    const int64_t blockTiles = (tiles + rowBlocks - 1) / rowBlocks;
    if (rowBlocks > 1) b.rows = blockTiles;
    const int64_t rows = blockTiles * tile_.rows;
    const int64_t longest = std::max(kLeastReduction, third / (rows * element));
    if (k > longest) b.reduction = evenPart(k, longest);
    const int64_t widest = std::max<int64_t>(1, third / (rows * panelColumns * 4));
    // Every thread gets as many blocks as the others.
    int64_t groups = (panels + widest - 1) / widest;
    while (groups < panels && rowBlocks * groups % q_.target.threads != 0 && rowBlocks * groups < 8 * q_.target.threads)
      ++groups;
    b.panels = (panels + groups - 1) / groups;
    if (b.reduction == 0) b.panels = 0;
    return b;
  }

  // The longest part, at most `longest`, that divides k and unrolls evenly; any that nearly does where there is none.
  static int64_t evenPart(int64_t k, int64_t longest) {
    for (int64_t part = longest / kReductionUnroll * kReductionUnroll; part >= longest / 2 && part > 0;
         part -= kReductionUnroll)
      if (k % part == 0) return part;
    const int64_t parts = (k + longest - 1) / longest, part = (k + parts - 1) / parts;
    return (part + kReductionUnroll - 1) / kReductionUnroll * kReductionUnroll;
  }

  // Of a depthwise convolution: what lies outside a line of pixels.
  int64_t linesOutside() const {
    int64_t n = 1;
    for (size_t i = 0; i < rows_.front(); ++i) n *= s_.axes[i].extent;
    return n;
  }

  void writeLoops(const std::string& vLoop) {
    std::vector<std::string> rest;
    std::string rowLoop;
    if (!rows_.empty()) {
      std::vector<std::string> names;
      for (size_t i : rows_) names.push_back(axisName(i));
      rowLoop = w_.fuse(names);
    }
    for (size_t i = 0; i < v_; ++i)
      if (!isColumn(i) && std::find(rows_.begin(), rows_.end(), i) == rows_.end())
        (s_.axes[i].extent == 1 || (x().used(i) && y().used(i)) ? batch_ : rest).push_back(axisName(i));
    const Blocks blocks = rest.empty() ? chooseBlocks() : Blocks{};
    // Products of few rows are sums of thousands of terms one after the other; apart and in pairs they round a quarter as much.
    const bool isApart = q_.target.strict && !isDepthwise_ && rowLoop.empty() && s_.reduce.size() == 1 &&
                         blocks.reduction == 0 && reduction() > kStrictChain;
    if (isApart) tile_.vectors = std::min<int64_t>(tile_.vectors, 2);
    auto [vo, vi] = w_.split(vLoop, tile_.vectors * lanes_, Tail::Peel);
    auto [vj, vl] = w_.split(vi, lanes_, Tail::Mask);
    // Loops shared out to threads, serial ones of a block, the reduction, the register tile.
    std::vector<std::string> outer = batch_, inBlock, reduction, inner, unrolled;
    if (isDepthwise_) {
      // All channels of a row of pixels together: its lines are in the first caches.
      outer.insert(outer.end(), rest.begin(), rest.end());
      rest.clear();
    }
    std::string tileLoop;
    if (!rowLoop.empty()) {
      auto [ro, ri] = w_.split(rowLoop, tile_.rows, Tail::Peel);
      inner.push_back(ri);
      tileLoop = ro;
      if (blocks.rows > 0) {
        auto [block, within] = w_.split(ro, blocks.rows, Tail::Clamp);
        outer.push_back(block);
        tileLoop = within;
      }
    }
    const size_t m = s_.reduce.size();
    std::string last = reduceName(m - 1);
    std::string edges, dotLoop;
    const bool decidesPadding =
        isGuarded() && (isDepthwise_ || this->reduction() < kLongReduction) && !tileLoop.empty();
    if (blocks.reduction > 0) {
      auto [group, member] = w_.split(vo, blocks.panels, Tail::Clamp);
      outer.push_back(group);
      auto [part, step] = w_.split(last, blocks.reduction, Tail::Peel);
      inBlock = {part, member, tileLoop};
      last = step;
    } else if (isDepthwise_ && !tileLoop.empty() && linesOutside() >= kLinesPerThread * q_.target.threads) {
      // Pixel after pixel with all its channels: memory is read from one end to the other.
      if (decidesPadding) edges = tileLoop;
      inBlock = {tileLoop, vo};
    } else {
      outer.push_back(vo);
      outer.insert(outer.end(), rest.begin(), rest.end());
      if (decidesPadding) edges = tileLoop;
      if (!tileLoop.empty()) (blocks.rows > 0 || decidesPadding ? inBlock : outer).push_back(tileLoop);
    }
    inner.push_back(vj);
    unrolled = inner;
    inner.push_back(vl);
    for (size_t i = 0; i + 1 < m; ++i) reduction.push_back(reduceName(i));
    // Of padded windows the first dim stays a loop: a line outside the data is left out as a whole. Where neighbouring rows share
    // elements, unrolling more than the channels would keep every one of them in a register.
    const size_t kept = decidesPadding && m > 1 ? (isDepthwise_ ? 1 : m - 1) : 0;
    int64_t updates = tile_.rows * tile_.vectors;
    for (size_t i = kept; i < m; ++i) updates *= s_.reduce[i].extent;
    if (m > 1 && updates <= kMaxUnrolledUpdates && !dot_) {
      reduction.push_back(last);
      unrolled.insert(unrolled.end(), reduction.begin() + static_cast<long>(kept), reduction.end());
      if (isDepthwise_ && !rowLoop.empty()) {
        // Row by row: a row's window slides over the last one's.
        reduction.insert(reduction.begin() + static_cast<long>(kept), inner.front());
        inner.erase(inner.begin());
      }
    } else {
      auto [ko, ki] = w_.split(last, dot_ ? kDotGroup : kReductionUnroll, Tail::Peel);
      reduction.push_back(ko);
      reduction.push_back(ki);
      unrolled.push_back(ki);
      dotLoop = ki;
      if (isApart) w_.mark(Primitive::Partial, {ki});
    }
    const size_t shared = outer.size();
    std::vector<std::string> order = outer;
    for (const auto* part : {&inBlock, &reduction, &inner}) order.insert(order.end(), part->begin(), part->end());
    w_.reorder(order);
    w_.mark(Primitive::Unroll, unrolled);
    w_.mark(Primitive::Vectorise, {vl});
    if (dot_) w_.dot(*dot_, dotLoop, vectorOperand_);
    if (!edges.empty()) w_.mark(Primitive::Edges, {edges});
    for (int k = 0; k < 2; ++k) {
      const Access& a = operands_[static_cast<size_t>(k)];
      // Activations are packed when their vectors are not contiguous and rows enough use the copy.
      bool strided = k == vectorOperand_ && strideOf(a, v_) != 1;
      if (!isConstant(a) && !(strided && rowExtent_ >= 4)) continue;
      w_.pack(k);
      // Weights of more than a cache come from far away.
      if (k == vectorOperand_ && !isDepthwise_ && isConstant(a) && bytesOf(*a.buffer) > q_.target.l2Bytes)
        w_.prefetch(k);
    }
    w_.parallel(shared);
  }

  const StageQuestion& q_;
  const Stage& s_;
  std::vector<Access> all_, operands_;
  PlanWriter w_;
  size_t v_ = 0;
  std::vector<size_t> rows_;
  std::vector<bool> isColumn_;  ///< empty: the last axis only
  int64_t vExtent_ = 0, rowExtent_ = 1, lanes_ = 1;
  int vectorOperand_ = 1;
  bool isDepthwise_ = false;
  std::optional<Primitive> dot_;
  RegisterTile tile_;
  std::vector<std::string> batch_;
};

}  // namespace

bool planContraction(const StageQuestion& q, schedule::Plan* plan) { return ContractionRule(q, plan).write(); }

}  // namespace locution::generator

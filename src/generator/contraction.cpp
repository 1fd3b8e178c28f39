// Contractions: sums of products of two operands, one of them (the vector operand) read in vectors, the other (the row operand) an
// element at a time for each row of a register tile. Packed GEMM, convolution as implicit GEMM, depthwise convolution and GEMV are one
// form: [batch, row blocks, vector tiles, row tiles | reduction | register tile].
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "generator/rules.h"
#include "generator/tile.h"
#include "schedule/dot.h"

namespace locution::generator {

using loop::Stage;
using space::Decision;

namespace {

constexpr int64_t kReductionUnroll = 4;
constexpr int64_t kDotGroup = 4;
constexpr int64_t kMaxUnrolledUpdates = 256;
/// Strict: the most terms that are added up one after the other where there are no rows to share the registers.
constexpr int64_t kStrictChain = 512;
constexpr int64_t kLinesPerThread = 3;
/// Of a cache line from the second cache: 4 x 2, 4 x 3 and 6 x 2 tiles of 16,384-term products on Zen 3.
constexpr double kLineCycles = 6;
/// From here on a tile's work dwarfs the arithmetic of its rows' addresses.
constexpr int64_t kLongReduction = 192;
/// For sums and weights of a tile of windows.
constexpr int kWindowRegisters = 24;

class ContractionRule {
 public:
  explicit ContractionRule(const space::StageChoices& stage)
      : f_(stage.facts()),
        s_(*f_.stage),
        target_(*f_.target),
        own_(stage.scope().own),
        isAlone_(stage.scope().isAlone),
        isRow_(stage.scope().isRow) {}

  std::optional<Wishes> wishes() {
    if (s_.scan || !f_.isProduct() || s_.axes.empty() || s_.reduce.empty() || !(isAlone_ || isRow_))
      return std::nullopt;
    v_ = s_.axes.size() - 1;
    vExtent_ = s_.axes[v_].extent;
    if (vExtent_ < 4) return std::nullopt;
    const int64_t group = f_.groupOf(v_);
    const bool hasUnknown = !f_.operands[0].spatial[v_] || !f_.operands[1].spatial[v_];
    if (hasUnknown && group < 4) return std::nullopt;
    isDepthwise_ = !hasUnknown && f_.isBatch(v_);
    columns_ = {v_};
    if (hasUnknown) {
      // A grouped axis (its group number indexes an operand) is split into group and member.
      batch_.push_back(static_cast<int64_t>(v_));
      vExtent_ = group;
    } else {
      columns_ = f_.spatialRun(v_, own_);
      for (size_t i : columns_) vExtent_ *= i == v_ ? 1 : s_.axes[i].extent;
    }
    chooseDot(hasUnknown);
    chooseRows();
    chooseTile();
    return answers();
  }

 private:
  const Access& x() const { return f_.vectors(v_); }
  const Access& y() const { return f_.rows(v_); }
  int vectorOperand() const { return f_.vectorOperand(v_); }
  bool isColumn(size_t axis) const { return std::find(columns_.begin(), columns_.end(), axis) != columns_.end(); }

  // Products of bytes go four at a time where the row operand's lie side by side.
  void chooseDot(bool hasUnknown) {
    if (hasUnknown || isDepthwise_ || s_.reduce.back().extent < kDotGroup || y().reduce.back() != 1) return;
    schedule::Dot dot{"", vectorOperand(), false};
    if (target_.hasVnni && schedule::mayDot(s_, dot)) {
      dot_ = 4;
    } else {
      dot.isWidened = true;
      if (schedule::mayDot(s_, dot)) dot_ = 2;
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
        // Only for want of rows that share what a vector reads.
        if (!y().used(i) && sharesVectors(i)) continue;
      } else if (staysApart || s_.axes[i].extent == 1 || x().used(i) != x().used(rows_[0]) ||
                 !((rows_[0] == i + 1 && mergeable(f_.all, i, s_.axes[i + 1].extent, false)) || mayFuseRows(i))) {
        break;
      }
      rows_.insert(rows_.begin(), i);
      rowExtent_ *= s_.axes[i].extent;
    }
  }

  /// An axis before `last` moves the row operand alone.
  bool sharesVectors(size_t last) const {
    for (size_t i = 0; i < last; ++i)
      if (!isColumn(i) && s_.axes[i].extent > 1 && y().used(i) && !x().used(i)) return true;
    return false;
  }

  // Padding that an operand is guarded for.
  bool isGuarded() const { return f_.isGuarded[0] || f_.isGuarded[1]; }

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
    lanes_ = lanesFor(s_, target_, vExtent_);
    bool fma = isFloat(s_.body->type.dtype);
    const double lineCycles = readsLines() ? kLineCycles : 0;
    if (isDepthwise_) {
      // Windows of neighbouring rows overlap: their loads stay in registers, which a second vector would take away.
      const int64_t most = target_.vectorRegisters >= 32 ? 14 : 6, tiles = (rowExtent_ + most - 1) / most;
      tile_ = {(rowExtent_ + tiles - 1) / tiles, 1};
    } else if (!rows_.empty() && !y().used(rows_.back()) && x().used(rows_.back()) && dot_ == 0) {
      // Each row reads vectors of its own (panels of weights times one vector): few streams that are as wide as the panel is.
      constexpr int64_t kChains = 8;
      const int64_t vectors = std::min(kChains, (vExtent_ + lanes_ - 1) / lanes_);
      tile_ = {std::min(rowExtent_, std::max<int64_t>(1, kChains / vectors)), vectors};
    } else if (dot_ == 2) {
      // A row's bytes are taken apart, and products need a register before they are added.
      tile_ = generator::chooseTile({rowExtent_, vExtent_, lanes_, target_.vectorRegisters - 3, false});
    } else {
      TileQuestion question{rowExtent_, vExtent_, lanes_, target_.vectorRegisters, fma, lineCycles};
      if (const int64_t stride = rowStride()) {
        question.mostRows = rowsInCache(stride, target_.l1Bytes);
        // With fewer registers every tile needs as many loads.
        if (target_.vectorRegisters >= 32) question.loads = loadsPerCycle(stride);
      }
      // Of lines that are padded on their own, tiles that don't cross from one to the next.
      if (isGuarded() && rows_.size() > 1) question.line = s_.axes[rows_.back()].extent;
      if (slides()) question.registers = std::min(question.registers, kWindowRegisters);
      tile_ = generator::chooseTile(question);
    }
  }

  // Both operands are walked across memory along the reduction and neither is packed (a product with its first operand transposed, as
  // gradients of weights are): rows of a power of two apart share few places of the first cache, and come from the second each time.
  bool readsLines() const {
    return !rows_.empty() && !f_.isConstant[0] && !f_.isConstant[1] && y().reduce.back().value_or(1) != 1 &&
           x().reduce.back().value_or(1) != 1 && reduction() >= kLongReduction;
  }

  // Neighbouring rows share elements of their unrolled windows, which stay in registers where there are some to spare.
  bool slides() const {
    return isDepthwise_ || (decidesPadding() && s_.reduce.size() > 1 && target_.vectorRegisters >= 32);
  }

  // Bytes from row to row where each lies along the reduction; 0: they don't, or will be packed.
  int64_t rowStride() const {
    if (rows_.empty() || y().reduce.back() != 1 || f_.isConstant[static_cast<size_t>(1 - vectorOperand())]) return 0;
    return std::abs(y().spatial[rows_.back()].value_or(0)) * dtypeBytes(y().buffer->element.dtype, 1);
  }

  static int64_t bytesOf(const loop::Buffer& b) {
    int64_t n = 1;
    for (int64_t d : loop::extents(b)) n *= d;
    return dtypeBytes(b.element.dtype, n);
  }

  // Into how many blocks the loops outside the register tile are cut.
  struct Blocks {
    int64_t rows = 1, panels = 1, reduction = 1;
  };

  // The row operand of a block stays in the second cache while every vector tile goes by. Where a row is as long as the reduction
  // (matrices), the reduction is cut too, and the sums of a block of outputs wait in the same cache.
  Blocks chooseBlocks() const {
    if (rows_.empty() || isDepthwise_ || isRow_) return {};
    const int64_t panelColumns = tile_.vectors * lanes_, panels = (vExtent_ + panelColumns - 1) / panelColumns;
    const int64_t tiles = (rowExtent_ + tile_.rows - 1) / tile_.rows;
    int64_t rowBytes = bytesOf(*y().buffer), columnBytes = bytesOf(*x().buffer);
    for (size_t i = 0; i < v_; ++i)
      if (x().used(i) && y().used(i)) {
        rowBytes /= s_.axes[i].extent;
        columnBytes /= s_.axes[i].extent;
      }
    const int64_t k = reduction(), element = dtypeBytes(y().buffer->element.dtype, 1);
    // Strides leave out what they step over.
    rowBytes = std::min(rowBytes, rowExtent_ * k * element);
    if (panels < 2 || rowBytes <= target_.l2Bytes / 2) return {};
    if (s_.reduce.size() == 1 && rowBytes >= rowExtent_ * k * element)
      return cutMatrices(tiles, panels, panelColumns, k, element);
    // Every block streams all of the vector operand.
    const int64_t blocks = (rowBytes + target_.l2Bytes / 2 - 1) / (target_.l2Bytes / 2);
    if (rowBytes + blocks * columnBytes >= panels * rowBytes + columnBytes) return {};
    return {tiles >= 2 * blocks ? blocks : 1, 1, 1};
  }

  Blocks cutMatrices(int64_t tiles, int64_t panels, int64_t panelColumns, int64_t k, int64_t element) const {
    constexpr int64_t kMostRows = 192, kLeastReduction = 128;
    const int64_t third = target_.l2Bytes / 3;
    const int64_t mostTiles = std::max<int64_t>(1, kMostRows / tile_.rows),
                  rowBlocks = (tiles + mostTiles - 1) / mostTiles;
    const int64_t rows = (tiles + rowBlocks - 1) / rowBlocks * tile_.rows;
    const int64_t longest = std::max(kLeastReduction, third / (rows * element));
    Blocks b{rowBlocks, 1, k > longest ? evenParts(k, longest) : 1};
    const int64_t widest = std::max<int64_t>(1, third / (rows * panelColumns * 4));
    // Every thread gets as many blocks as the others.
    int64_t groups = (panels + widest - 1) / widest;
    while (groups < panels && rowBlocks * groups % target_.threads != 0 && rowBlocks * groups < 8 * target_.threads)
      ++groups;
    if (b.reduction > 1) b.panels = groups;
    return b;
  }

  // Parts of at most `longest` that divide k and unroll evenly; any that nearly do where there are none.
  static int64_t evenParts(int64_t k, int64_t longest) {
    const int64_t fewest = (k + longest - 1) / longest;
    for (int64_t parts = fewest; k / parts >= longest / 2 && k / parts >= kReductionUnroll; ++parts)
      if (k % parts == 0 && k / parts % kReductionUnroll == 0) return parts;
    return fewest;
  }

  // What a depthwise convolution reads stays in the second cache.
  bool isNear() const { return !isRow_ && bytesOf(*y().buffer) <= target_.l2Bytes / 4 * 3; }

  // Of a depthwise convolution: what lies outside a line of pixels.
  int64_t linesOutside() const {
    int64_t n = 1;
    for (size_t i = 0; i < rows_.front(); ++i) n *= s_.axes[i].extent;
    return n;
  }

  Wishes answers() const {
    Wishes w;
    std::vector<int64_t> rest, batch = batch_;
    for (size_t i = 0; i < v_; ++i)
      if (!isColumn(i) && std::find(rows_.begin(), rows_.end(), i) == rows_.end())
        (s_.axes[i].extent == 1 || (x().used(i) && y().used(i)) ? batch : rest).push_back(static_cast<int64_t>(i));
    const Blocks blocks = rest.empty() ? chooseBlocks() : Blocks{};
    // Products of few rows are sums of thousands of terms one after the other; apart and in pairs they round a quarter as much.
    const bool isApart = target_.strict && !isDepthwise_ && rows_.empty() && s_.reduce.size() == 1 &&
                         blocks.reduction == 1 && reduction() > kStrictChain;
    const int64_t vectors = isApart ? std::min<int64_t>(tile_.vectors, 2) : tile_.vectors;
    w.set(Decision::Algorithm, 0);
    w.set(Decision::Vector, static_cast<int64_t>(v_));
    w.set(Decision::Columns, static_cast<int64_t>(columns_.size()));
    w.set(Decision::Lanes, lanes_);
    w.set(Decision::Vectors, vectors);
    w.set(Decision::RowAxis, rows_.empty() ? space::kNoAxis : static_cast<int64_t>(rows_.back()));
    w.set(Decision::RowAxes, static_cast<int64_t>(rows_.size()));
    w.set(Decision::Rows, tile_.rows);
    w.set(Decision::Dot, dot_);
    w.set(Decision::Apart, isApart ? 1 : 0);
    w.set(Decision::RowBlocks, blocks.rows);
    w.set(Decision::ColumnBlocks, blocks.panels);
    w.set(Decision::ReduceParts, blocks.reduction);
    chooseUnrolling(vectors, &w);
    chooseOrder(batch, rest, blocks, &w);
    choosePacks(&w);
    return w;
  }

  bool decidesPadding() const {
    return isGuarded() && (isDepthwise_ || reduction() < kLongReduction) && !rows_.empty();
  }

  void chooseUnrolling(int64_t vectors, Wishes* w) const {
    const size_t m = s_.reduce.size();
    // Of padded windows the first dim stays a loop: a line outside the data is left out as a whole. Where neighbouring rows share
    // elements, unrolling more than the channels would keep every one of them in a register.
    const size_t kept = decidesPadding() && m > 1 ? (isDepthwise_ ? 1 : m - 1) : 0;
    int64_t updates = tile_.rows * vectors;
    for (size_t i = kept; i < m; ++i) updates *= s_.reduce[i].extent;
    const bool isWhole = m > 1 && updates <= kMaxUnrolledUpdates && dot_ == 0;
    w->set(Decision::Window, isWhole ? static_cast<int64_t>(m - kept) : 0);
    w->set(Decision::Unroll, kReductionUnroll);
    // Row by row: a row's window slides over the last one's.
    w->set(Decision::Slide, slides() ? 1 : 0);
  }

  // Loops shared out to threads, then serial ones of a block.
  void chooseOrder(const std::vector<int64_t>& batch, const std::vector<int64_t>& rest, const Blocks& blocks,
                   Wishes* w) const {
    std::vector<int64_t> outer = batch, inBlock;
    const bool hasRows = !rows_.empty();
    // All channels of a row of pixels together: its lines are in the first caches. Where all pixels are, a vector's weights and its part of
    // the pixels are read once instead.
    const bool isByVector = isDepthwise_ && isNear();
    if (isByVector) outer.push_back(space::kColumnLoop);
    if (isDepthwise_) outer.insert(outer.end(), rest.begin(), rest.end());
    if (blocks.rows > 1) outer.push_back(space::kRowLoop);
    const int64_t tileLoop = blocks.rows > 1 ? space::kRowLoopInner : space::kRowLoop;
    bool hasEdges = decidesPadding();
    if (blocks.reduction > 1) {
      outer.push_back(space::kColumnLoop);
      inBlock = {space::kPartLoop, space::kColumnLoopInner, tileLoop};
      // One group of columns has no inner loop.
      if (blocks.panels == 1) {
        outer.pop_back();
        inBlock[1] = space::kColumnLoop;
      }
      hasEdges = false;
    } else if (isByVector) {
      if (hasRows) (hasEdges ? inBlock : outer).push_back(tileLoop);
    } else if (isDepthwise_ && hasRows && (isRow_ || linesOutside() >= kLinesPerThread * target_.threads)) {
      // Pixel after pixel with all its channels: memory is read from one end to the other.
      inBlock = {tileLoop, space::kColumnLoop};
    } else {
      outer.push_back(space::kColumnLoop);
      if (!isDepthwise_) outer.insert(outer.end(), rest.begin(), rest.end());
      if (hasRows) (blocks.rows > 1 || hasEdges ? inBlock : outer).push_back(tileLoop);
    }
    w->set(Decision::Edges, hasEdges ? 1 : 0);
    const size_t shared = outer.size();
    outer.insert(outer.end(), inBlock.begin(), inBlock.end());
    w->order(outer, shared);
  }

  void choosePacks(Wishes* w) const {
    w->set(Decision::Fetch, 0);
    for (int k = 0; k < 2; ++k) {
      const Access& a = f_.operands[static_cast<size_t>(k)];
      const bool isConstant = f_.isConstant[static_cast<size_t>(k)];
      // Activations are packed when their vectors are not contiguous and rows enough use the copy.
      const bool isStrided = k == vectorOperand() && a.spatial[v_].value_or(0) != 1;
      const bool packs = isConstant || (isStrided && rowExtent_ >= 4);
      w->set(k == 0 ? Decision::Pack0 : Decision::Pack1, packs ? 1 : 0);
      // Weights come from far away; those that are read vector by vector all at once, the first time.
      const bool isFar = isDepthwise_ ? isNear() : bytesOf(*a.buffer) >= target_.l1Bytes;
      if (packs && k == vectorOperand() && isConstant && isFar) w->set(Decision::Fetch, k + 1);
    }
  }

  const space::StageFacts& f_;
  const Stage& s_;
  const TargetSpec& target_;
  const std::vector<size_t>& own_;
  bool isAlone_, isRow_;
  size_t v_ = 0;
  std::vector<size_t> columns_, rows_;
  int64_t vExtent_ = 0, rowExtent_ = 1, lanes_ = 1, dot_ = 0;
  bool isDepthwise_ = false;
  RegisterTile tile_;
  std::vector<int64_t> batch_;
};

}  // namespace

std::optional<Wishes> contractionWishes(const space::StageChoices& stage) { return ContractionRule(stage).wishes(); }

}  // namespace locution::generator

// One stage of a kernel while its decisions are made. The stage becomes
//     [loops over tiles, some in parallel | loops of a block | reductions | register tile: rows x vectors x lanes]
// with lanes along an axis of the result or along a reduction. Invariant: `options` never offers what `schedule::apply` refuses.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "schedule/plan.h"
#include "space/decision.h"
#include "space/stage_facts.h"

namespace locution::space {

/// What the kernel as a whole leaves to a stage.
struct StageScope {
  std::vector<size_t> own;       ///< axes that are the stage's own loops
  std::vector<int64_t> extents;  ///< of all axes, within a strip
  std::optional<size_t> strip;   ///< the axis that is cut in strips outside
  bool isAlone = true;           ///< its loops are the kernel's
  bool isRow = false;            ///< a row of convolutions that run row by row
};

class StageChoices {
 public:
  StageChoices(const StageFacts* facts, StageScope scope);

  /// The legal values, ascending, given the decisions made so far; none when the question does not arise.
  std::vector<int64_t> options(Decision decision) const;
  void set(Decision decision, int64_t value);
  /// Whether the decision is asked until it has no more options.
  static bool isRepeated(Decision decision) { return decision == Decision::Next; }
  void write(schedule::Plan* plan) const;

  const StageFacts& facts() const { return *facts_; }
  const StageScope& scope() const { return scope_; }
  /// What was decided, or `otherwise` where the question did not arise.
  int64_t get(Decision decision, int64_t otherwise) const;
  /// Iterations along the lanes (of all joined axes), of all rows, and of their tiles.
  int64_t columnExtent() const;
  int64_t rowExtent() const;
  int64_t rowTiles() const;
  int64_t columnTiles() const;
  /// Lanes along a reduction.
  bool isFold() const { return get(Decision::Vector, kNoAxis) >= kReduceAxis; }
  std::vector<size_t> columns()
      const;                         ///< axes along the lanes, innermost first: of the result, or reductions of a fold
  std::vector<size_t> rows() const;  ///< axes of the tile's rows, in order
  /// The loops around the tile in the order chosen so far, outermost first.
  const std::vector<int64_t>& order() const { return order_; }
  /// Loops around the tile that are still to be put in order.
  std::vector<int64_t> loopsLeft() const;
  int64_t iterations(int64_t loop) const;

 private:
  std::vector<int64_t> algorithms() const;
  std::vector<int64_t> tileOptions(Decision decision) const;
  std::vector<int64_t> reductionOptions(Decision decision) const;
  std::vector<int64_t> outerOptions(Decision decision) const;
  std::vector<int64_t> operandOptions(Decision decision) const;
  std::vector<int64_t> winogradOptions(Decision decision) const;

  /// More axes than decisions have names for: the stage stays as its naive loops.
  bool isTooDeep() const {
    constexpr size_t kMost = kReduceAxis;
    return facts_->stage->axes.size() > kMost || facts_->stage->reduce.size() > kMost;
  }
  bool isWinograd() const { return get(Decision::Algorithm, 0) != 0; }
  bool hasVector() const { return get(Decision::Vector, kNoAxis) != kNoAxis; }
  size_t vectorAxis() const;
  std::vector<size_t> others() const;  ///< own axes that are neither
  bool mayPack(size_t operand) const;
  int64_t packedElements(size_t operand) const;
  int64_t extentOf(size_t axis) const { return scope_.extents[axis]; }
  int64_t mostRegisters() const { return facts_->target->vectorRegisters; }
  int64_t lastReduction() const;
  int64_t tileUpdates() const;
  bool isPlaced(int64_t loop) const;
  /// Of the chosen loops, how many lead before one that must stay serial.
  int64_t mostParallel() const;
  void writeWinograd(schedule::Plan* plan) const;
  void writeTile(schedule::Plan* plan) const;

  const StageFacts* facts_;
  StageScope scope_;
  std::array<std::optional<int64_t>, kDecisions> values_;
  std::vector<int64_t> order_;
};

}  // namespace locution::space

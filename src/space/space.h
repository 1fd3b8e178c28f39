// The space of a kernel's schedules on a target, and the way through it: a Walk asks decision after decision, each with the values that
// are legal after those before. Whoever writes schedules (rules, search, a language model, a random walk, a user's text) answers a Walk;
// there is no other way to a plan of the space, so none is illegal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "schedule/plan.h"
#include "space/decision.h"
#include "space/stage_choices.h"

namespace locution::space {

class Space {
 public:
  /// `kernel` and `target` must outlive the space. A kernel of raw loops has one plan, the empty one.
  Space(const loop::Computation& kernel, const TargetSpec& target);

  const loop::Computation& kernel() const { return kernel_; }
  const TargetSpec& target() const { return target_; }
  const std::vector<StageFacts>& stages() const { return stages_; }
  /// Stages between two products, strip by strip of rows.
  bool isChain() const { return !at_.empty(); }
  /// Of each stage the axes that stand for the shared loops, outermost first.
  std::vector<std::vector<size_t>> sharedAxes(int64_t share) const;
  int64_t mostShared() const { return mostShared_; }
  /// Bytes of what lies between the stages of a chain, for a row of a strip.
  int64_t rowBytes() const;
  int64_t stripRows(int64_t strips) const;
  /// Of the axis that is cut in strips.
  int64_t stripExtent() const;

  /// Convolutions that run row by row: each stage's decisions are those of a row.
  bool isRolled() const { return !rows_.empty(); }
  /// Rows of the last of them.
  int64_t rolledExtent() const;

  /// Legal values of the kernel's own decisions.
  std::vector<int64_t> options(Decision decision, const std::array<std::optional<int64_t>, kDecisions>& made) const;
  StageScope scope(size_t stage, const std::array<std::optional<int64_t>, kDecisions>& made) const;
  /// The kernel's own steps.
  void write(const std::array<std::optional<int64_t>, kDecisions>& made, schedule::Plan* plan) const;

 private:
  int64_t temporaryBytes(int64_t share) const;

  const loop::Computation& kernel_;
  const TargetSpec& target_;
  std::vector<loop::Computation> rows_;
  std::vector<StageFacts> stages_;
  std::vector<std::vector<size_t>> at_;  ///< of a chain
  int64_t mostShared_ = 0;
};

class Walk {
 public:
  explicit Walk(const Space& space);

  bool isDone() const { return isDone_; }
  /// What is asked now: of a stage, or of the kernel (-1).
  int32_t stage() const { return stage_; }
  Decision decision() const { return decision_; }
  /// Two values or more, ascending (`next`: in the order of the loops).
  const std::vector<int64_t>& legal() const { return legal_; }
  /// False, and nothing changes, when the value is not legal.
  bool choose(int64_t value);

  /// The answers so far; questions with one legal answer are not asked.
  const Choices& choices() const { return choices_; }
  /// The stages that were asked about, with what was decided.
  const std::vector<StageChoices>& stages() const { return stages_; }
  /// The stage that is asked about, with what was decided.
  const StageChoices& current() const { return stages_.back(); }
  const Space& space() const { return *space_; }
  int64_t kernelValue(Decision decision, int64_t otherwise) const;
  /// Of a walk that is done.
  schedule::Plan plan() const;

 private:
  void advance();
  void take(int64_t value);

  const Space* space_;
  int32_t stage_ = -1;
  size_t next_ = 0;
  Decision decision_{};
  bool isDone_ = false;
  std::vector<int64_t> legal_;
  std::array<std::optional<int64_t>, kDecisions> kernel_;
  std::vector<StageChoices> stages_;
  Choices choices_;
};

/// Answers every question by `pick`, whose answers must be legal.
Walk walkThrough(const Space& space, const std::function<int64_t(const Walk&)>& pick);
/// The plan that the choices mean; null when they are not a walk of the space from its first question to its last.
std::optional<schedule::Plan> planOf(const Space& space, const Choices& choices);

}  // namespace locution::space

#include "space/space.h"

#include <algorithm>

#include "core/saturate.h"
#include "schedule/chain.h"
#include "schedule/roll.h"
#include "schedule/stages.h"
#include "space/plan_writer.h"
#include "support/check.h"

namespace locution::space {

using loop::Stage;
using schedule::Primitive;
using schedule::Tail;

namespace {

/// Temporaries lie on the stack.
constexpr int64_t kMostTemporaryBytes = 1 << 20;

}  // namespace

Space::Space(const loop::Computation& kernel, const TargetSpec& target) : kernel_(kernel), target_(target) {
  if (kernel.raw) return;
  stages_.reserve(kernel.stages.size());
  if (schedule::rollForm(kernel.stages, kernel.outputs)) {
    for (size_t i = 0; i < kernel.stages.size(); ++i) rows_.push_back(schedule::rowOf(kernel, i));
    for (size_t i = 0; i < rows_.size(); ++i) {
      StageFacts& facts = stages_.emplace_back(rows_[i], 0, target);
      facts.index = i;
      // What the kernel makes, or reads row by row, can't be packed ahead of it.
      facts.isInput = facts.isConstant;
      facts.winograd.reset();
    }
    return;
  }
  for (size_t i = 0; i < kernel.stages.size(); ++i) stages_.emplace_back(kernel, i, target);
  if (schedule::isChain(kernel))
    if (auto at = schedule::alignStages(kernel.stages)) at_ = std::move(*at);
  mostShared_ = isChain() ? static_cast<int64_t>(at_[0].size()) : schedule::sharedAxes(kernel);
}

std::vector<std::vector<size_t>> Space::sharedAxes(int64_t share) const {
  if (isChain()) return at_;
  std::vector<size_t> leading;
  for (int64_t j = 0; j < share; ++j) leading.push_back(static_cast<size_t>(j));
  return std::vector<std::vector<size_t>>(stages_.size(), leading);
}

int64_t Space::temporaryBytes(int64_t share) const {
  int64_t bytes = 0;
  for (const StageFacts& f : stages_) {
    const Stage& s = *f.stage;
    if (std::find(kernel_.outputs.begin(), kernel_.outputs.end(), s.out) != kernel_.outputs.end()) continue;
    int64_t own = 1;
    for (size_t i = static_cast<size_t>(share); i < s.axes.size(); ++i) own *= s.axes[i].extent;
    bytes += dtypeBytes(s.out->element.dtype, own);
  }
  return bytes;
}

int64_t Space::rowBytes() const {
  return std::max<int64_t>(1, schedule::stripRowBytes(kernel_.stages, kernel_.outputs, at_));
}
int64_t Space::stripExtent() const { return std::max<int64_t>(1, kernel_.stages[0].axes[at_[0].back()].extent); }
int64_t Space::stripRows(int64_t strips) const { return ceilDivide(stripExtent(), strips); }

std::vector<int64_t> Space::options(Decision d, const std::array<std::optional<int64_t>, kDecisions>& made) const {
  if (isRolled()) return d == Decision::RowTasks ? ladderUpTo(rolledExtent()) : std::vector<int64_t>{};
  if (mostShared_ == 0) return {};
  const int64_t share = made[static_cast<size_t>(Decision::Share)].value_or(mostShared_);
  std::vector<int64_t> out;
  switch (d) {
    case Decision::Share:
      if (isChain()) return {mostShared_};
      for (int64_t n = 1; n <= mostShared_; ++n)
        if (n == mostShared_ || temporaryBytes(n) <= kMostTemporaryBytes) out.push_back(n);
      return out;
    case Decision::Strips:
      if (!isChain()) return {};
      for (int64_t n : ladderUpTo(stripExtent()))
        if (stripRows(n) * rowBytes() <= kMostTemporaryBytes) out.push_back(n);
      if (out.empty()) out.push_back(ladderUpTo(stripExtent()).back());
      return out;
    case Decision::SharedParallel:
      for (int64_t n = 0; n <= share; ++n) out.push_back(n);
      return out;
    default:
      return {};
  }
}

int64_t Space::rolledExtent() const { return kernel_.stages.back().axes[schedule::kRowAxis].extent; }

StageScope Space::scope(size_t stage, const std::array<std::optional<int64_t>, kDecisions>& made) const {
  const int64_t share = made[static_cast<size_t>(Decision::Share)].value_or(0);
  const std::vector<size_t> shared = sharedAxes(share)[stage];
  StageScope out;
  out.isAlone = stages_.size() == 1 && share == 0;
  out.isRow = isRolled();
  const Stage& s = *stages_[stage].stage;
  for (const loop::Axis& a : s.axes) out.extents.push_back(a.extent);
  if (isChain()) {
    out.strip = shared.back();
    int64_t& rows = out.extents[shared.back()];
    rows = std::min(rows, stripRows(made[static_cast<size_t>(Decision::Strips)].value_or(1)));
  }
  for (size_t i = 0; i < s.axes.size(); ++i)
    if (out.strip == i || std::find(shared.begin(), shared.end(), i) == shared.end()) out.own.push_back(i);
  return out;
}

void Space::write(const std::array<std::optional<int64_t>, kDecisions>& made, schedule::Plan* plan) const {
  auto get = [&](Decision d) { return made[static_cast<size_t>(d)].value_or(0); };
  if (isRolled()) {
    const int64_t rows = ceilDivide(rolledExtent(), std::max<int64_t>(1, get(Decision::RowTasks)));
    plan->steps.push_back({Primitive::Roll, -1, {}, rows, Tail::Peel});
  }
  const int64_t share = get(Decision::Share);
  if (share == 0) return;
  plan->steps.push_back({Primitive::Share, 0, {}, share, Tail::Peel});
  std::vector<std::string> loops;
  for (int64_t j = 0; j < share; ++j) loops.push_back(axisName(static_cast<size_t>(j)));
  if (isChain()) {
    for (size_t k = 0; k < at_.size(); ++k) {
      std::vector<std::string> names;
      bool isNatural = true;
      for (size_t j = 0; j < at_[k].size(); ++j) {
        names.push_back(axisName(at_[k][j]));
        isNatural = isNatural && at_[k][j] == j;
      }
      if (!isNatural) plan->steps.push_back({Primitive::Align, static_cast<int32_t>(k), names, 0, Tail::Peel});
    }
    const int64_t strips = std::max<int64_t>(1, get(Decision::Strips));
    plan->steps.push_back({Primitive::Strip, -1, {}, stripRows(strips), Tail::Peel});
    loops.back() += ".o";
  }
  PlanWriter(plan, -1, loops).parallel(static_cast<size_t>(get(Decision::SharedParallel)));
}

Walk::Walk(const Space& space) : space_(&space) {
  isDone_ = space.stages().empty();
  advance();
}

void Walk::take(int64_t value) {
  if (stage_ < 0) {
    kernel_[static_cast<size_t>(decision_)] = value;
  } else {
    stages_.back().set(decision_, value);
  }
  if (stage_ < 0 || !StageChoices::isRepeated(decision_)) ++next_;
}

void Walk::advance() {
  while (!isDone_) {
    if (next_ == kDecisions) {
      next_ = 0;
      ++stage_;
      isDone_ = static_cast<size_t>(stage_) == space_->stages().size();
      if (isDone_) break;
      const auto k = static_cast<size_t>(stage_);
      stages_.emplace_back(&space_->stages()[k], space_->scope(k, kernel_));
    }
    decision_ = static_cast<Decision>(next_);
    legal_ = stage_ < 0 ? space_->options(decision_, kernel_) : stages_.back().options(decision_);
    if (legal_.size() > 1) return;
    if (legal_.empty()) {
      ++next_;
    } else {
      take(legal_[0]);
    }
  }
  legal_.clear();
}

bool Walk::choose(int64_t value) {
  if (isDone_ || std::find(legal_.begin(), legal_.end(), value) == legal_.end()) return false;
  choices_.push_back({stage_, decision_, value});
  take(value);
  advance();
  return true;
}

int64_t Walk::kernelValue(Decision decision, int64_t otherwise) const {
  return kernel_[static_cast<size_t>(decision)].value_or(otherwise);
}

schedule::Plan Walk::plan() const {
  LOCUTION_CHECK(isDone_) << "a plan of a walk that has open questions";
  schedule::Plan plan;
  if (space_->stages().empty()) return plan;
  space_->write(kernel_, &plan);
  for (const StageChoices& s : stages_) s.write(&plan);
  return plan;
}

Walk walkThrough(const Space& space, const std::function<int64_t(const Walk&)>& pick) {
  Walk walk(space);
  while (!walk.isDone()) {
    const int64_t value = pick(walk);
    LOCUTION_CHECK(walk.choose(value)) << choiceText(walk.decision(), value) << " is not legal";
  }
  return walk;
}

std::optional<schedule::Plan> planOf(const Space& space, const Choices& choices) {
  Walk walk(space);
  for (const Choice& c : choices)
    if (walk.isDone() || walk.stage() != c.stage || walk.decision() != c.decision || !walk.choose(c.value))
      return std::nullopt;
  if (!walk.isDone()) return std::nullopt;
  return walk.plan();
}

}  // namespace locution::space

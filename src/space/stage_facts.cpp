#include "space/stage_facts.h"

#include <algorithm>

#include "loop/passes.h"

namespace locution::space {

using loop::Stage;

namespace {

int64_t strideOf(const Access& a, size_t axis) { return a.spatial[axis].value_or(0); }

bool holds(const std::vector<loop::BufferRef>& list, const loop::Buffer* b) {
  return std::any_of(list.begin(), list.end(), [&](const loop::BufferRef& x) { return x.get() == b; });
}

}  // namespace

StageFacts::StageFacts(const loop::Computation& c, size_t stageIndex, const TargetSpec& t)
    : kernel(&c), stage(&c.stages[stageIndex]), target(&t), index(stageIndex) {
  all = accesses(*stage);
  operands = productOperands(*stage);
  groups.assign(stage->axes.size(), 1);
  if (!isProduct()) return;
  for (size_t v = 0; v < stage->axes.size(); ++v)
    if (!operands[0].spatial[v] || !operands[1].spatial[v]) groups[v] = groupSize(*stage, v);
  const auto* product = loop::as<loop::Binary>(stage->body);
  for (size_t k = 0; k < 2; ++k) {
    const loop::Expr& side = k == 0 ? product->a : product->b;
    const auto* widened = loop::as<loop::Cast>(side);
    isGuarded[k] = loop::as<loop::Select>(widened ? widened->value : side) != nullptr;
    isConstant[k] = holds(c.constants, operands[k].buffer);
    isInput[k] = holds(c.inputs, operands[k].buffer);
  }
  if (c.stages.size() != 1) return;
  winograd = schedule::winogradForm(*stage);
  // The transforms of floats round more than the sum does.
  if (winograd && ((t.strict && !winograd->isInteger) || !isConstant[static_cast<size_t>(1 - winograd->dataOperand)]))
    winograd.reset();
}

int StageFacts::vectorOperand(size_t axis) const {
  const bool isUnknown = !operands[0].spatial[axis] || !operands[1].spatial[axis];
  return strideOf(operands[1], axis) != 0 || isUnknown ? 1 : 0;
}

std::vector<size_t> StageFacts::spatialRun(size_t axis, const std::vector<size_t>& own) const {
  const Stage& s = *stage;
  std::vector<size_t> run{axis};
  if (groups[axis] > 1) return run;
  int64_t extent = s.axes[axis].extent;
  size_t last = axis;
  bool isOne = true;
  for (size_t i = axis; i-- > 0 && std::find(own.begin(), own.end(), i) != own.end();) {
    const int64_t steps = s.axes[i].extent;
    const bool merges = last == i + 1 && mergeable(all, i, s.axes[last].extent, false);
    if (isProduct()) {
      // Columns that the vector operand has side by side; the result may keep them apart as long as no vector crosses.
      if (isBatch(axis)) break;
      const Access &x = vectors(axis), &y = rows(axis);
      if (steps == 1 || !x.used(i)) continue;
      if (y.used(i) || !x.spatial[i] || strideOf(x, i) != strideOf(x, axis) * extent) break;
      isOne = isOne && merges;
      if (!isOne && s.axes[axis].extent % lanesFor(s, *target, s.axes[axis].extent) != 0) break;
    } else if (!merges) {
      break;
    }
    run.push_back(i);
    last = i;
    extent *= steps;
  }
  return run;
}

std::vector<size_t> StageFacts::reducedRun(size_t axis) const {
  std::vector<size_t> run{axis};
  for (size_t i = axis; i-- > 0 && mergeable(all, i, stage->reduce[i + 1].extent, true);) run.push_back(i);
  return run;
}

}  // namespace locution::space

// Convolutions that run row by row one behind the other (expand, depthwise, project): a row of the next one needs only the rows that its
// window covers, so of what lies between them a few rows are kept, in the second cache, and nothing is computed twice.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/target.h"
#include "loop/compute.h"
#include "schedule/apply.h"

namespace locution::schedule {

/// The axis of every stage that counts rows; the one before it is the batch.
constexpr size_t kRowAxis = 1;

struct RollForm {
  /// Row r of the next stage reads rows r * stride + low ... r * stride + high of the stage's own.
  struct Window {
    int64_t stride = 1, low = 0, high = 0;
  };
  std::vector<Window> windows;  ///< of each stage but the last
  std::vector<int64_t> kept;    ///< rows of each stage but the last that are held at a time: a power of two
};
/// Stages that each read the one before through a window along the rows, one of them at least of more than a row, and nobody else does.
std::optional<RollForm> rollForm(const std::vector<loop::Stage>& stages, const std::vector<loop::BufferRef>& outputs);

/// One row of stage `k`: the axes up to the rows have one element, and the variables that they had are free.
loop::Computation rowOf(const loop::Computation& kernel, size_t k);

/// The end (one past) of the stages from `first` on that are faster row by row than one after the other; `first` itself: none.
size_t rollEnd(const loop::Computation& computation, size_t first, const TargetSpec& target);

/// A plan that begins with `roll`; what follows is each stage's plan of a row.
bool isRoll(const Plan& plan);
std::variant<Lowered, ApplyError> applyRoll(const loop::Computation& kernel, const Plan& plan);

}  // namespace locution::schedule

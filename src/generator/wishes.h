// What a rule would decide about a stage: answers to a walk's questions. Where a wish is not among the legal values the nearest one
// below it is taken.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "space/space.h"

namespace locution::generator {

class Wishes {
 public:
  void set(space::Decision decision, int64_t value) { values_[static_cast<size_t>(decision)] = value; }
  /// The loops around the tile, outermost first; the first `shared` of them are shared out to threads. Those that do not arise (of one
  /// iteration) are passed over.
  void order(std::vector<int64_t> loops, size_t shared);
  int64_t answer(const space::Walk& walk) const;

 private:
  std::array<std::optional<int64_t>, space::kDecisions> values_;
  std::vector<int64_t> order_;
  size_t shared_ = 0;
};

}  // namespace locution::generator

#include "generator/wishes.h"

#include <algorithm>

namespace locution::generator {

using space::Decision;

void Wishes::order(std::vector<int64_t> loops, size_t shared) {
  order_ = std::move(loops);
  shared_ = shared;
}

int64_t Wishes::answer(const space::Walk& walk) const {
  const std::vector<int64_t>& legal = walk.legal();
  const Decision decision = walk.decision();
  if (decision == Decision::Next) {
    for (int64_t loop : order_)
      if (std::find(legal.begin(), legal.end(), loop) != legal.end()) return loop;
    return legal.front();
  }
  std::optional<int64_t> wish = values_[static_cast<size_t>(decision)];
  if (decision == Decision::Parallel && !wish) {
    wish = 0;
    for (int64_t loop : walk.current().order()) {
      auto at = std::find(order_.begin(), order_.end(), loop);
      if (at - order_.begin() >= static_cast<long>(shared_)) break;
      ++*wish;
    }
  }
  if (!wish) return legal.front();
  // Blocks are chosen to fit a cache: rather more of them.
  const bool isCount = decision == Decision::Strips || decision == Decision::ReduceParts ||
                       decision == Decision::RowBlocks || decision == Decision::ColumnBlocks;
  if (isCount) {
    auto at = std::lower_bound(legal.begin(), legal.end(), *wish);
    return at == legal.end() ? legal.back() : *at;
  }
  auto above = std::upper_bound(legal.begin(), legal.end(), *wish);
  return above == legal.begin() ? legal.front() : *(above - 1);
}

}  // namespace locution::generator

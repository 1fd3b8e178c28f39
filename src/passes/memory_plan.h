// Memory planning: offsets in one arena for buffers with known lifetimes.
#pragma once

#include <cstdint>
#include <vector>

namespace locution::passes {

/// A buffer alive from instruction `first` (which writes it) to `last` (the last to read it), both inclusive.
struct Lifetime {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
  /// A buffer whose life ends where this one's begins and whose place it may take (-1: none): the instruction reads and writes
  /// element by element.
  int32_t inPlaceOf = -1;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< multiples of 64
  int64_t arenaBytes = 0;
};

/// Greedy by size, best fit among the gaps that lifetimes leave. Deterministic.
MemoryPlan planMemory(const std::vector<Lifetime>& lifetimes);

}  // namespace locution::passes

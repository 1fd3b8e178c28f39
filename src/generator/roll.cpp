// Kernels of convolutions that run row by row: into how many tasks. Each stage is a contraction of one row.
#include <algorithm>

#include "core/saturate.h"
#include "generator/rules.h"

namespace locution::generator {

int64_t chooseRowTasks(const space::Space& space) {
  // Every task computes again what its first window reads: few tasks, and long ones.
  constexpr int64_t kTasksPerThread = 2, kLeastRows = 8;
  const int64_t threads = space.target().threads, rows = space.rolledExtent();
  if (threads == 1) return 1;
  const int64_t tasks = std::min(rows, kTasksPerThread * threads);
  return ceilDivide(rows, tasks) >= kLeastRows ? tasks : std::min(rows, threads);
}

}  // namespace locution::generator

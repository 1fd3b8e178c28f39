// Register tiles of contractions.
#pragma once

#include <cstdint>

#include "loop/compute.h"

namespace locution::generator {

struct TileQuestion {
  int64_t rows, columns;  ///< extents of the tiled axes; columns are vectorised
  int64_t lanes;
  int registers;
  bool fma;  ///< floats: two multiply-adds a cycle with a latency of four
  /// Cycles of a cache line, where each step of the reduction reads lines of its own for the rows and for each vector; 0: the operands lie
  /// along the reduction, in the first cache.
  double lineCycles = 0;
};
struct RegisterTile {
  int64_t rows = 1, vectors = 1;
};
/// The tile with the least cycles over all full and incomplete tiles, when accumulators, one row of vectors and a broadcast must
/// fit the registers, two loads and two multiply-adds start a cycle, and eight accumulators cover the latency.
RegisterTile chooseTile(const TileQuestion& q);

}  // namespace locution::generator

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
  int64_t mostRows = INT64_MAX;  ///< that the first cache holds side by side, see `rowsInCache`
  int loads = 2;                 ///< that start in a cycle, see `loadsPerCycle`
  int64_t line = 0;              ///< rows of a line, where a tile that holds parts of two costs more; 0: it does not
};
struct RegisterTile {
  int64_t rows = 1, vectors = 1;
};
/// The tile with the least cycles over all full and incomplete tiles, when accumulators, one row of vectors and a broadcast must
/// fit the registers, two loads and two multiply-adds start a cycle, and eight accumulators cover the latency.
RegisterTile chooseTile(const TileQuestion& q);
/// How many rows that lie `strideBytes` apart a tile can walk along together: the places of the first cache for lines so far apart, less two for the
/// other operand. Caches are taken to repeat every 4 KiB, the page, as those looked up before the address is translated do.
int64_t rowsInCache(int64_t strideBytes, int64_t l1Bytes);
/// Rows that lie a multiple of a kilobyte apart are read one at a time: their elements are in the same banks of the first cache. Of 24 rows a multiply-add
/// each, Zen 5 does 109 Gflop/s where rows 1,088 bytes apart give 245.
int loadsPerCycle(int64_t strideBytes);

}  // namespace locution::generator

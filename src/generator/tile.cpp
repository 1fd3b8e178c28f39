#include "generator/tile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "space/decision.h"

namespace locution::generator {

RegisterTile chooseTile(const TileQuestion& q) {
  constexpr double kLineElements = 16;
  // Code of its own, entered once: of equal cost rather tiles without.
  constexpr double kIncomplete = 1.05;
  // Every row's address is computed, and whether it is padding.
  constexpr double kCrossing = 1.08;
  auto cycles = [&](int64_t rows, int64_t vectors) {
    const auto n = static_cast<double>(rows * vectors);
    // Rows begin anywhere in a line, vectors at its beginning.
    const double lines = 1 + static_cast<double>(rows - 1) / kLineElements +
                         std::ceil(static_cast<double>(vectors * q.lanes) / kLineElements);
    return std::max({n / 2, static_cast<double>(rows + vectors) / q.loads, 4.0}) + lines * q.lineCycles;
  };
  int64_t vectorsInAll = (q.columns + q.lanes - 1) / q.lanes;
  RegisterTile best;
  double bestCost = 1e300;
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(vectorsInAll, q.rows == 1 ? 8 : 4); ++vectors)
    for (int64_t rows : space::ladderUpTo(q.rows)) {
      if (rows * vectors + vectors + 1 > q.registers || (rows > q.mostRows && rows > 1)) break;
      int64_t full = vectorsInAll / vectors, fullRows = q.rows / rows;
      auto along = [&](int64_t r) {
        double c = static_cast<double>(full) * cycles(r, vectors);
        if (vectorsInAll % vectors) c += cycles(r, vectorsInAll % vectors);
        return c;
      };
      double cost = static_cast<double>(fullRows) * along(rows);
      if (q.rows % rows) cost += kIncomplete * along(q.rows % rows);
      if (q.line > 0 && q.line % rows != 0) cost *= kCrossing;
      // Of equal cost: the larger tile reads less.
      cost *= 1 - 1e-4 * static_cast<double>(rows * vectors);
      if (cost < bestCost) {
        bestCost = cost;
        best = {rows, vectors};
      }
    }
  return best;
}

int64_t rowsInCache(int64_t strideBytes, int64_t l1Bytes) {
  constexpr int64_t kPeriod = 4096, kLine = 64;
  const int64_t apart = std::max(kLine, std::gcd(strideBytes, kPeriod));
  return kPeriod / apart * std::max<int64_t>(1, l1Bytes / kPeriod - 2);
}

int loadsPerCycle(int64_t strideBytes) {
  constexpr int64_t kBanks = 1024;
  return strideBytes % kBanks == 0 ? 1 : 2;
}

}  // namespace locution::generator

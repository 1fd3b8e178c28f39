#include "generator/tile.h"

#include <algorithm>
#include <cmath>

#include "space/decision.h"

namespace locution::generator {

RegisterTile chooseTile(const TileQuestion& q) {
  constexpr double kLineElements = 16;
  auto cycles = [&](int64_t rows, int64_t vectors) {
    const auto n = static_cast<double>(rows * vectors);
    // Rows begin anywhere in a line, vectors at its beginning.
    const double lines = 1 + static_cast<double>(rows - 1) / kLineElements +
                         std::ceil(static_cast<double>(vectors * q.lanes) / kLineElements);
    return std::max({n / 2, static_cast<double>(rows + vectors) / 2, 4.0}) + lines * q.lineCycles;
  };
  int64_t vectorsInAll = (q.columns + q.lanes - 1) / q.lanes;
  RegisterTile best;
  double bestCost = 1e300;
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(vectorsInAll, q.rows == 1 ? 8 : 4); ++vectors)
    for (int64_t rows : space::ladderUpTo(q.rows)) {
      if (rows * vectors + vectors + 1 > q.registers) break;
      int64_t full = vectorsInAll / vectors, fullRows = q.rows / rows;
      auto along = [&](int64_t r) {
        double c = static_cast<double>(full) * cycles(r, vectors);
        if (vectorsInAll % vectors) c += cycles(r, vectorsInAll % vectors);
        return c;
      };
      double cost = static_cast<double>(fullRows) * along(rows);
      if (q.rows % rows) cost += along(q.rows % rows);
      // Of equal cost: the larger tile reads less.
      cost *= 1 - 1e-4 * static_cast<double>(rows * vectors);
      if (cost < bestCost) {
        bestCost = cost;
        best = {rows, vectors};
      }
    }
  return best;
}

}  // namespace locution::generator

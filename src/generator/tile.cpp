#include "generator/tile.h"

#include <algorithm>

#include "loop/passes.h"

namespace locution::generator {

RegisterTile chooseTile(const TileQuestion& q) {
  auto cycles = [](int64_t rows, int64_t vectors) {
    double n = static_cast<double>(rows * vectors);
    return std::max({n / 2, static_cast<double>(rows + vectors) / 2, 4.0});
  };
  int64_t vectorsInAll = (q.columns + q.lanes - 1) / q.lanes;
  RegisterTile best;
  double bestCost = 1e300;
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(vectorsInAll, q.rows == 1 ? 8 : 4); ++vectors)
    for (int64_t rows = 1; rows <= q.rows && rows * vectors + vectors + 1 <= q.registers; ++rows) {
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

int64_t groupSize(const loop::Stage& stage, size_t axis) {
  int64_t size = 0;
  const loop::Var* var = stage.axes[axis].var.get();
  bool clean = true;
  loop::visit(stage.body, [&](const loop::Expr& e) {
    const auto* b = loop::as<loop::Binary>(e);
    int64_t n = 0;
    if (b && (b->op == loop::BinaryOp::FloorDiv || b->op == loop::BinaryOp::FloorMod) && b->a.get() == var &&
        loop::isConstInt(b->b, &n)) {
      clean = clean && (size == 0 || size == n);
      size = n;
    }
    return true;
  });
  return clean && size > 1 && stage.axes[axis].extent % size == 0 ? size : 1;
}

}  // namespace locution::generator

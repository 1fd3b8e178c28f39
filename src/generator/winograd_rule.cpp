// When a convolution goes through Winograd's transforms, and how: the direct form's cycles against those of the products, the
// transforms and the larger weights that come from memory.
#include <algorithm>
#include <cmath>

#include "generator/rules.h"
#include "generator/tile.h"
#include "loop/build.h"
#include "schedule/dot.h"
#include "schedule/winograd.h"

namespace locution::generator {

using schedule::WinogradForm;
using schedule::WinogradTile;
using space::Decision;

namespace {

/// Bytes a cycle that aren't hidden behind arithmetic.
constexpr double kSecondCacheRate = 64, kThirdCacheRate = 16;
constexpr double kTileCycles = 12;  ///< to enter and leave a register tile
constexpr int64_t kMaxProductBytes = 256 << 10;

struct Choice {
  WinogradTile tile;
  int64_t blocks = 1;
  double seconds = 0;
};

/// Multiply-adds against those of floats.
struct Rates {
  double direct = 0.95, multiply = 1;  ///< of the direct form, all in all; of a register tile
  double latency = 4;                  ///< cycles that a step of a register tile takes at least
  int registers = 1;                   ///< that a tile needs beside its sums and its weights
};
Rates ratesOf(const WinogradForm& form, const space::StageFacts& facts) {
  if (!form.isInteger) return {};
  // Pairs of 16 bits: an instruction multiplies, another adds. Bytes take two more a row, or one that takes all four.
  Rates r{1.3, 1.6, 1, 2};
  if (facts.target->hasVnni && schedule::mayDot(*facts.stage, {"", 1 - form.dataOperand, false})) r.direct = 3.6;
  return r;
}

/// Of a vector's transform: loads, stores and additions, two to four a cycle.
double transformCycles(int64_t m, size_t dims, bool isInput) {
  const auto e = static_cast<double>(m + 2), o = static_cast<double>(m);
  if (dims == 1) return isInput ? 3 * e : e + 2 * o;
  return isInput ? 3.4 * e * e : 2.2 * e * e + 1.5 * o * o;
}

}  // namespace

std::optional<Wishes> winogradWishes(const space::StageChoices& stage) {
  const std::optional<WinogradForm>& form = stage.facts().winograd;
  if (!form || !stage.scope().isAlone) return std::nullopt;
  const TargetSpec& t = *stage.facts().target;
  int64_t lanes = t.lanes(4);
  while (lanes > 1 && form->outputs % lanes != 0) lanes /= 2;
  int64_t channelLanes = form->isInteger ? 2 * lanes : lanes;
  while (channelLanes > 1 && form->channels % channelLanes != 0) channelLanes /= 2;
  if (lanes < 4 || channelLanes < 4) return std::nullopt;
  const double flopsPerSecond = t.peakGflops * 1e9 * static_cast<double>(lanes) / t.lanes(4);
  // Two multiply-adds of a vector a cycle.
  const double cycle = 4.0 * t.lanes(4) / (t.peakGflops * 1e9);
  double outputs = static_cast<double>(form->batchExtent), taps = 1;
  for (const WinogradForm::Window& w : form->windows) {
    outputs *= static_cast<double>(w.outExtent);
    taps *= 3;
  }
  const auto channels = static_cast<double>(form->channels), made = static_cast<double>(form->outputs);
  // Weights of a whole network don't stay in the last cache from one run to the next.
  const double readRate = t.readGbs * 1e9;
  auto total = [&](double compute, double bytes) {
    // Of one thread, whatever the number: the algorithm decides about rounding, and results are the same for all.
    const double a = compute, b = bytes / readRate;
    return std::max(a, b) + 0.5 * std::min(a, b);
  };
  const Rates rates = ratesOf(*form, stage.facts());
  const double element = form->isInteger ? 2 : 4;
  // A tile's channels lie side by side.
  const int loads = t.vectorRegisters >= 32 ? loadsPerCycle(form->channels * static_cast<int64_t>(element)) : 2;
  const double direct =
      total(2 * outputs * taps * channels * made / (flopsPerSecond * rates.direct), element * taps * channels * made);
  Choice best;
  for (int64_t m : {int64_t{2}, int64_t{4}}) {
    if (!schedule::holdsSums(*form, m)) continue;
    const auto points = static_cast<double>(form->points(m));
    const int64_t tiles = form->tiles(m);
    for (int64_t vectors = 1; vectors <= std::min<int64_t>(4, form->outputs / lanes); ++vectors)
      for (int64_t rows : space::ladderUpTo(tiles)) {
        if (rows * vectors + vectors + rates.registers > t.vectorRegisters) break;
        if (rows * vectors < 4) continue;
        const int64_t columns = vectors * lanes, groups = (tiles + rows - 1) / rows;
        for (int64_t blocks : space::ladderUpTo(groups)) {
          const int64_t block = (groups + blocks - 1) / blocks * rows;
          if ((groups + blocks - 1) / blocks * (blocks - 1) >= groups) continue;  // fewer would do
          const int64_t productBytes = 4 * form->points(m) * block * columns;
          if (productBytes > std::min<int64_t>(t.l2Bytes / 2, kMaxProductBytes)) continue;
          Choice c;
          c.tile = {m, block, rows, vectors, lanes, false};
          c.blocks = blocks;
          const auto padded = static_cast<double>(blocks * block), pieces = static_cast<double>(blocks);
          const double panels = std::ceil(made / static_cast<double>(columns));
          const double n = static_cast<double>(rows * vectors);
          const double perStep =
              std::max({n / 2, static_cast<double>(rows + vectors) / loads, rates.latency}) / rates.multiply;
          double compute =
              points * padded / static_cast<double>(rows) * panels * (channels * perStep + kTileCycles + n) * cycle;
          compute += padded * channels / static_cast<double>(channelLanes) *
                     transformCycles(m, form->windows.size(), true) * cycle;
          compute += static_cast<double>(tiles) * made / static_cast<double>(lanes) *
                     transformCycles(m, form->windows.size(), false) * cycle;
          // What the inner loop of the two reads again and again stays in the second cache, or comes anew each time.
          const double weights = element * points * channels * made, data = element * points * padded * channels;
          const double kept = static_cast<double>(t.l2Bytes) / 2 - static_cast<double>(productBytes);
          const double panelsOuter = weights * (weights / panels <= kept ? 1 : pieces) + data * panels;
          const double tilesOuter = weights * pieces + data * (data / pieces <= kept ? 1 : panels);
          c.tile.isTilesOuter = tilesOuter < panelsOuter;
          // Rows of tiles read a point's weights again from the nearest cache that holds them.
          const double slab = element * channels * static_cast<double>(columns);
          const double near =
              slab <= static_cast<double>(t.l1Bytes) / 2 ? 0 : weights * padded / static_cast<double>(rows);
          compute += (std::min(tilesOuter, panelsOuter) / kThirdCacheRate + near / kSecondCacheRate) * cycle;
          c.seconds = total(compute, weights);
          if (best.seconds == 0 || c.seconds < best.seconds) best = c;
        }
      }
  }
  constexpr double kWorthwhile = 0.9;  // its rounding errors are larger: not for nothing
  if (best.seconds == 0 || best.seconds > kWorthwhile * direct) return std::nullopt;
  Wishes wishes;
  wishes.set(Decision::Algorithm, best.tile.m);
  wishes.set(Decision::Lanes, best.tile.lanes);
  wishes.set(Decision::Vectors, best.tile.vectors);
  wishes.set(Decision::Rows, best.tile.rows);
  wishes.set(Decision::RowBlocks, best.blocks);
  wishes.order({best.tile.isTilesOuter ? space::kRowLoop : space::kColumnLoop}, 1);
  return wishes;
}

}  // namespace locution::generator

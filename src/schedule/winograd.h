// Winograd's minimal filtering for convolutions of stride 1 with windows of three (A. Lavin, S. Gray: Fast Algorithms for
// Convolutional Neural Networks, 2015): outputs come in tiles of m a dim, from m + 2 inputs a dim; both operands are transformed, and
// what was a sum over window and channels is a matrix product over channels for each of the (m + 2)^d points of a tile.
// Bytes are transformed in 16 bits, without any rounding, and multiplied in pairs: the result is the integer that the sum is.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "loop/compute.h"
#include "schedule/apply.h"

namespace locution::schedule {

/// How a stage is such a convolution.
struct WinogradForm {
  struct Window {
    size_t axis, tap, dim;  ///< of the stage's axes, of its reduction, of the data buffer
    int64_t offset;         ///< position in the data = axis + tap + offset
    int64_t inExtent, outExtent;
  };
  std::vector<Window> windows;  ///< one or two
  int64_t dataOperand = 0;
  bool isInteger = false;             ///< bytes summed in int32
  int64_t largestProduct = 0;         ///< of two integers, apart from its sign
  int64_t sumBits = 32;               ///< of an integer sum that its epilogue reads
  loop::Expr padding;                 ///< what lies outside the data; null: nothing is read there
  size_t channelTap = 0;              ///< of the reduction: the channels, innermost in the data
  std::vector<size_t> batch;          ///< axes that are neither windows nor the output channel (the last axis)
  int64_t channels = 0, outputs = 0;  ///< reduced, and made
  int64_t batchExtent = 1;

  int64_t tilesAlong(const Window& w, int64_t m) const { return (w.outExtent + m - 1) / m; }
  int64_t tiles(int64_t m) const;
  int64_t points(int64_t m) const { return windows.size() == 2 ? (m + 2) * (m + 2) : m + 2; }
};
/// Nullopt: no such convolution, or neither of float32 nor of bytes.
std::optional<WinogradForm> winogradForm(const loop::Stage& stage);
/// Whether 32 bits hold any sum of integers times the powers of two in the transforms of tiles of m outputs (floats: always).
bool holdsSums(const WinogradForm& form, int64_t m);

/// The plan's decisions.
struct WinogradTile {
  int64_t m = 4;              ///< outputs of a tile along a dim: 2 or 4
  int64_t block = 1;          ///< tiles transformed and multiplied together; a multiple of `rows`
  int64_t rows = 1;           ///< register tile: tiles ...
  int64_t vectors = 1;        ///< ... by vectors of output channels
  int64_t lanes = 1;          ///< of a vector; divides the output channels
  bool isTilesOuter = false;  ///< loops: blocks of tiles, then of output channels; or the other way round
};
/// A plan of exactly these steps, and back:
///     winograd s0 m; split s0 p block; split s0 p.i rows; split s0 o vectors * lanes; split s0 o.i lanes; reorder s0 p.o o.o
std::vector<Step> winogradSteps(const WinogradTile& tile);
bool isWinograd(const Plan& plan);
std::variant<Lowered, ApplyError> applyWinograd(const loop::Computation& computation, const Plan& plan);

}  // namespace locution::schedule

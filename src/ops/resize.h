// What Resize does to one dim: the attributes and inputs of the node, read once. Coordinates are float32 as in ONNX Runtime, so that
// ties fall alike.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace locution::ops {

struct ResizeAxis {
  int64_t dim = 0;  ///< position in memory
  int64_t in = 0, out = 0;
  float scale = 1;
  double width = 0;  ///< in * scale, the output's extent before rounding
  float roiStart = 0, roiEnd = 1;
};

struct ResizeMode {
  enum class Kind : uint8_t { Nearest, Linear, Cubic } kind = Kind::Nearest;
  std::string coordinates, nearest;
  bool antialias = false, excludeOutside = false;
  double cubicA = -0.75, extrapolation = 0;
  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

Result<ResizeMode> parseResizeMode(const graph::Node& node);
/// The coordinate in the input of output position `o`, unclamped.
float resizeCoordinate(const ResizeMode& mode, const ResizeAxis& axis, int64_t o);
/// The same as an expression: float32 of an int64.
loop::Expr resizeCoordinate(const ResizeMode& mode, const ResizeAxis& axis, const loop::Expr& o);
/// The input position that Nearest reads, clamped.
int64_t nearestIndex(const ResizeMode& mode, const ResizeAxis& axis, int64_t o);
loop::Expr nearestIndex(const ResizeMode& mode, const ResizeAxis& axis, const loop::Expr& o);

/// (o * multiplier + offset) floor-divided by divisor, when that gives `table[o]` for every o.
struct AffineIndex {
  int64_t multiplier = 1, offset = 0, divisor = 1;
};
bool fitAffine(const std::vector<int64_t>& table, int64_t multiplier, int64_t divisor, AffineIndex* out);

/// Taps of Linear and Cubic around floor(coordinate): the first tap's offset from it, and how many.
struct ResizeTaps {
  int64_t first = 0, count = 2;
  double shrink = 1;  ///< what distances are multiplied by: min(scale, 1) with antialias
};
ResizeTaps resizeTaps(const ResizeMode& mode, const ResizeAxis& axis);
/// The filter's value at a distance (not negative).
loop::Expr resizeFilter(const ResizeMode& mode, const loop::Expr& distance);

/// Where an output position of a crop lies outside the input; null when it can't.
loop::Expr outsideCrop(const ResizeMode& mode, const std::vector<ResizeAxis>& axes,
                       const std::vector<loop::Expr>& vars);
/// The stages of Linear and Cubic.
Status resizeFiltered(ComputeContext& c, const ResizeMode& mode, std::vector<ResizeAxis> axes);

}  // namespace locution::ops

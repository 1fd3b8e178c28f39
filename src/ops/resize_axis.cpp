// One dim of Resize (resize.h): coordinates, rounding and filters, as numbers and as expressions.
#include <algorithm>
#include <cmath>

#include "ops/helpers.h"
#include "ops/resize.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

Result<ResizeMode> parseResizeMode(const graph::Node& node) {
  ResizeMode m;
  std::string mode = node.stringAttr("mode", "nearest");
  m.coordinates = node.stringAttr("coordinate_transformation_mode", "half_pixel");
  m.nearest = node.stringAttr("nearest_mode", "round_prefer_floor");
  LOCUTION_RETURN_IF_ERROR(needOneOf("mode", mode, {"nearest", "linear", "cubic"}));
  LOCUTION_RETURN_IF_ERROR(needOneOf("coordinate_transformation_mode", m.coordinates,
                                     {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                      "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"}));
  LOCUTION_RETURN_IF_ERROR(
      needOneOf("nearest_mode", m.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  m.kind = mode == "nearest"  ? ResizeMode::Kind::Nearest
           : mode == "linear" ? ResizeMode::Kind::Linear
                              : ResizeMode::Kind::Cubic;
  m.antialias = node.intAttr("antialias", 0) != 0;
  if (m.antialias && m.kind == ResizeMode::Kind::Nearest)
    return Status::error("attribute antialias is set, mode is nearest");
  m.excludeOutside = node.intAttr("exclude_outside", 0) != 0;
  m.cubicA = static_cast<float>(node.floatAttr("cubic_coeff_a", -0.75));
  m.extrapolation = static_cast<float>(node.floatAttr("extrapolation_value", 0));
  return m;
}

namespace {

/// coordinate(o) = (o + shift) * factor / divisor + offset, in float32 and in this order; the parts are 0 and 1 where a mode has none.
struct Transform {
  float shift = 0, factor = 1, divisor = 1, offset = 0;
};

Transform transformOf(const ResizeMode& mode, const ResizeAxis& a) {
  const std::string& m = mode.coordinates;
  auto in = static_cast<float>(a.in);
  Transform t;
  if (m == "asymmetric") {
    t.divisor = a.scale;
  } else if (m == "align_corners") {
    t.factor = a.width == 1 ? 0 : in - 1;
    t.divisor = a.width == 1 ? 1 : static_cast<float>(a.width - 1);
  } else if (m == "tf_half_pixel_for_nn") {
    t.shift = 0.5f;
    t.divisor = a.scale;
  } else if (m == "tf_crop_and_resize") {
    if (a.out > 1) {
      t.factor = (a.roiEnd - a.roiStart) * (in - 1);
      t.divisor = static_cast<float>(a.out - 1);
      t.offset = a.roiStart * (in - 1);
    } else {
      t.factor = 0;
      t.offset = 0.5f * (a.roiStart + a.roiEnd) * (in - 1);
    }
  } else if (m == "pytorch_half_pixel" && a.out <= 1) {
    t.factor = 0;
  } else {
    t.shift = 0.5f;
    t.divisor = a.scale;
    t.offset = -0.5f;
    if (m == "half_pixel_symmetric" && a.width != 0) {
      double adjustment = static_cast<double>(a.out) / a.width;
      t.offset = static_cast<float>(static_cast<double>(a.in) / 2 * (1 - adjustment) - 0.5);
    }
  }
  return t;
}

Expr f32(double value) { return loop::constant(DType::F32, value); }

}  // namespace

float resizeCoordinate(const ResizeMode& mode, const ResizeAxis& axis, int64_t o) {
  Transform t = transformOf(mode, axis);
  if (t.factor == 0) return t.offset;
  float x = static_cast<float>(o) + t.shift;
  if (t.factor != 1) x = x * t.factor;
  if (t.divisor != 1) x = x / t.divisor;
  return x + t.offset;
}

Expr resizeCoordinate(const ResizeMode& mode, const ResizeAxis& axis, const Expr& o) {
  Transform t = transformOf(mode, axis);
  if (t.factor == 0) return f32(t.offset);
  Expr x = loop::cast(DType::F32, o);
  if (t.shift != 0) x = x + f32(t.shift);
  if (t.factor != 1) x = x * f32(t.factor);
  if (t.divisor != 1) x = x / f32(t.divisor);
  return t.offset == 0 ? x : x + f32(t.offset);
}

int64_t nearestIndex(const ResizeMode& mode, const ResizeAxis& axis, int64_t o) {
  float x = resizeCoordinate(mode, axis, o), r = 0;
  if (mode.nearest == "round_prefer_floor") r = std::ceil(x - 0.5f);
  if (mode.nearest == "round_prefer_ceil") r = std::floor(x + 0.5f);
  if (mode.nearest == "floor") r = std::floor(x);
  if (mode.nearest == "ceil") r = std::ceil(x);
  if (!(r > 0)) return 0;
  return r >= static_cast<float>(axis.in - 1) ? axis.in - 1 : static_cast<int64_t>(r);
}

Expr nearestIndex(const ResizeMode& mode, const ResizeAxis& axis, const Expr& o) {
  Expr x = resizeCoordinate(mode, axis, o);
  if (mode.nearest == "round_prefer_floor") x = loop::call("ceil", {x - f32(0.5)});
  if (mode.nearest == "round_prefer_ceil") x = loop::call("floor", {x + f32(0.5)});
  if (mode.nearest == "floor") x = loop::call("floor", {x});
  if (mode.nearest == "ceil") x = loop::call("ceil", {x});
  return minOf(maxOf(loop::cast(DType::I64, x), loop::index(0)), loop::index(axis.in - 1));
}

bool fitAffine(const std::vector<int64_t>& table, int64_t multiplier, int64_t divisor, AffineIndex* out) {
  // table[o] * divisor <= o * multiplier + offset < (table[o] + 1) * divisor for every o bounds the offset from both sides.
  int64_t low = -(int64_t{1} << 62), high = -low;
  for (size_t o = 0; o < table.size(); ++o) {
    int64_t lead = static_cast<int64_t>(o) * multiplier;
    low = std::max(low, table[o] * divisor - lead);
    high = std::min(high, (table[o] + 1) * divisor - 1 - lead);
  }
  if (low > high) return false;
  *out = {multiplier, std::clamp<int64_t>(0, low, high), divisor};
  return true;
}

ResizeTaps resizeTaps(const ResizeMode& mode, const ResizeAxis& axis) {
  double support = mode.kind == ResizeMode::Kind::Cubic ? 2 : 1;
  ResizeTaps taps;
  if (mode.antialias) taps.shrink = std::min<double>(axis.scale, 1);
  taps.first = static_cast<int64_t>(std::floor(-support / taps.shrink)) + 1;
  taps.count = 2 - 2 * taps.first;
  return taps;
}

Expr resizeFilter(const ResizeMode& mode, const Expr& distance) {
  DType type = distance->type.dtype;
  auto k = [&](double v) { return loop::constant(type, v); };
  if (mode.kind == ResizeMode::Kind::Linear) return maxOf(k(1) - distance, k(0));
  double a = mode.cubicA;
  return shared(distance, [&](const Expr& d) {
    Expr near = ((d * k(a + 2) - k(a + 3)) * d) * d + k(1);
    Expr far = ((d * k(a) - k(5 * a)) * d + k(8 * a)) * d - k(4 * a);
    return select(le(d, k(1)), near, select(lt(d, k(2)), far, k(0)));
  });
}

}  // namespace locution::ops

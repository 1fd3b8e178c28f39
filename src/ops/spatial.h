// What operators over N, C, spatial dims share: where the dims lie (channels first or last), window attributes (kernel, strides,
// dilations, pads, auto_pad) with their checks, and temporaries padded so that a window's loads need no guard.
// Invariant: a Window that `parseWindow` gave has positive kernels, strides and dilations and pads of 0 or more; extents are
// computed with saturation, so hostile attributes end in an error, never in overflow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// The value in `type`; itself when it is of that type.
loop::Expr castTo(DType type, loop::Expr value);
/// The type in which products of `type` are summed: float32 for narrower floats, int32 for narrower integers, else `type` itself.
DType accumulatorType(DType type);
/// A temporary of these extents isn't absurdly large (hostile attributes).
Status checkElements(const std::vector<int64_t>& extents, const std::string& what);

/// Where the dims of an operator's data input and output lie.
struct SpatialLayout {
  bool channelsLast = false;
  int64_t rank = 0;
  static SpatialLayout of(const graph::Node& node, int64_t rank) {
    return {node.intAttr("channels_last", 0) != 0, rank};
  }
  int64_t spatialRank() const { return rank - 2; }
  int64_t channel() const { return channelsLast ? rank - 1 : 1; }
  int64_t spatial(int64_t i) const { return channelsLast ? 1 + i : 2 + i; }
  /// The memory position of dim `logical` of N, C, spatial...
  int64_t physical(int64_t logical) const {
    if (logical == 0 || !channelsLast) return logical;
    return logical == 1 ? rank - 1 : logical - 1;
  }
  /// n, channel and spatial things in memory order.
  template <typename T>
  std::vector<T> arrange(T n, T channelThing, const std::vector<T>& spatialThings) const {
    std::vector<T> out{std::move(n)};
    if (!channelsLast) out.push_back(channelThing);
    out.insert(out.end(), spatialThings.begin(), spatialThings.end());
    if (channelsLast) out.push_back(std::move(channelThing));
    return out;
  }
  template <typename T>
  std::vector<T> spatialOf(const std::vector<T>& all) const {
    auto begin = all.begin() + spatial(0);
    return std::vector<T>(begin, begin + spatialRank());
  }
};

enum class AutoPad : uint8_t { NotSet, SameUpper, SameLower, Valid };

/// Attributes of a sliding window, one entry a spatial dim. `kernel` is empty when it isn't known yet (weights not known).
struct Window {
  std::vector<int64_t> kernel, strides, dilations, padBegin, padEnd;
  AutoPad autoPad = AutoPad::NotSet;
  bool ceilMode = false;
  size_t rank() const { return strides.size(); }
  /// Elements that the window spans, dilation included.
  int64_t span(size_t i) const;
};

/// Reads and checks the attributes for `spatialRank` dims. `weights`: the kernel that the weights have (must agree with
/// kernel_shape), nullopt when unknown.
Result<Window> parseWindow(const graph::Node& node, int64_t spatialRank,
                           const std::optional<std::vector<int64_t>>& weights);
/// Output extent of spatial dim `i`; an error when the window is larger than the padded input. Windows that would start in the end
/// padding are dropped in ceil_mode.
Result<Dim> windowOutput(const Window& window, size_t i, const Dim& in);
/// Turns auto_pad into numbers.
void resolvePads(Window& window, const std::vector<int64_t>& in);

/// What `padded` adds around each dim, in elements; a negative number drops elements.
struct Margins {
  std::vector<int64_t> begin, end;
};
/// Input `i`'s buffer with `value` around it: a stage of its own into a temporary, or the buffer itself when there is nothing to
/// add. `dilation` (empty: none) spreads the elements of a dim with dilation - 1 values between them first.
Result<loop::BufferRef> padded(ComputeContext& c, size_t i, const Margins& margins, const loop::Expr& value,
                               const std::vector<int64_t>& dilation = {});

/// One axis a dim of the window: k0, k1, ...
std::vector<loop::Axis> windowAxes(const Window& window);
/// The extents as index expressions' bounds check: 0 <= position < extent wherever `mayLeave` says that it can be violated.
struct WindowPosition {
  std::vector<loop::Expr> position;  ///< in the unpadded input, one a spatial dim
  loop::Expr inside;                 ///< null when every position is inside
};
WindowPosition windowPosition(const Window& window, const std::vector<loop::Expr>& out,
                              const std::vector<loop::Expr>& kernel, const std::vector<int64_t>& inExtents,
                              const std::vector<int64_t>& outExtents);

/// `a` and `b`, where a null one is true.
loop::Expr both(loop::Expr a, loop::Expr b);

}  // namespace locution::ops

// Slice: numpy's basic slicing, by inputs that are constants, symbolic dims, or data (then every index is clamped).
#include <limits>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

constexpr int64_t kFar = int64_t{1} << 30;  ///< what exporters mean by "to the end" is at least this

/// One axis of a slice whose start, end and step are numbers, on an extent that is one.
struct NumberSlice {
  int64_t start, count;
};
NumberSlice clampSlice(int64_t start, int64_t end, int64_t step, int64_t extent) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  auto clampOne = [&](int64_t v) {
    if (v < 0) v = saturatingAdd(v, extent);
    return std::min(std::max(v, low), high);
  };
  int64_t s = clampOne(start), e = clampOne(end);
  if (step < 0 && extent == 0) return {0, 0};
  int64_t span = step > 0 ? e - s : s - e, magnitude = step > 0 ? step : saturatingSub(0, step);
  return {s, span <= 0 ? 0 : (span - 1) / magnitude + 1};
}

/// Position of `v` within [0, extent] as numpy clamps it for positive steps; nullopt: can't be told.
std::optional<Dim> position(const Dim& v, const Dim& extent) {
  if (v.isKnown() && v.value() >= kFar) return extent;
  if (v.isNonNegative()) return minDim(v, extent);
  if (v.isKnown() && v.value() <= -kFar) return Dim(0);
  if (v.isKnown()) return maxDim(extent + v, Dim(0));
  return std::nullopt;
}

/// The extent after slicing; nullopt: depends on data.
std::optional<Dim> slicedDim(const std::optional<Dim>& start, const std::optional<Dim>& end,
                             const std::optional<int64_t>& step, const Dim& extent) {
  if (!start || !end || !step) return std::nullopt;
  if (start->isKnown() && end->isKnown() && extent.isKnown())
    return Dim(clampSlice(start->value(), end->value(), *step, extent.value()).count);
  if (*step < 0) {
    bool whole =
        start->isKnown() && (start->value() == -1 || start->value() >= kFar) && end->isKnown() && end->value() <= -kFar;
    return whole ? std::optional(ceilDiv(extent, Dim(saturatingSub(0, *step)))) : std::nullopt;
  }
  std::optional<Dim> s = position(*start, extent), e = position(*end, extent);
  if (!s || !e) return std::nullopt;
  Dim span = *e - *s;
  // To the end from a number: extent - min(start, extent) is max(extent - start, 0).
  if (*e == extent && start->isNonNegative()) span = extent - *start;
  if (*e == extent && start->isKnown() && start->value() < 0) span = minDim(Dim(0) - *start, extent);
  if (!span.isNonNegative()) span = maxDim(span, Dim(0));
  return ceilDiv(span, Dim(*step));
}

Result<std::vector<int64_t>> sliceAxes(const std::optional<std::vector<int64_t>>& given, size_t count, int64_t rank) {
  std::vector<int64_t> axes;
  if (given) return normaliseAxes(*given, rank);
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return normaliseAxes(axes, rank);
}

std::optional<Dim> entry(const std::optional<std::vector<Dim>>& list, size_t i) {
  return list && i < list->size() ? std::optional((*list)[i]) : std::nullopt;
}

}  // namespace

Status inferSlice(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  for (size_t i : {1, 2, 3, 4}) {
    LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isInteger, "integers"));
    LOCUTION_RETURN_IF_ERROR(needRank(c, i, 1));
  }
  const Shape& in = c.input(0).shape;
  auto giveUp = [&] {
    Shape out = in;
    for (int64_t i = 0; in.isRanked() && i < in.rank(); ++i) out[i] = c.freshDim();
    c.setOutput(0, c.input(0).dtype, std::move(out));
    return Status::ok();
  };
  if (!in.isRanked()) return giveUp();
  std::optional<std::vector<Dim>> starts = c.inputDims(1), ends = c.inputDims(2), steps;
  std::optional<std::vector<int64_t>> axesGiven = c.hasInput(3) ? knownInts(c, 3) : std::nullopt;
  if (c.hasInput(4)) steps = c.inputDims(4);
  if (c.hasInput(3) && !axesGiven) return giveUp();
  size_t count = 0;
  if (axesGiven)
    count = axesGiven->size();
  else if (starts)
    count = starts->size();
  else if (ends)
    count = ends->size();
  else if (c.input(1).shape.isStatic())
    count = static_cast<size_t>(std::min(c.input(1).shape[0].value(), in.rank() + 1));
  else
    return giveUp();
  auto needCount = [&](const std::optional<std::vector<Dim>>& list, const char* what) {
    if (!list || list->size() == count) return Status::ok();
    return Status::error("expected " + std::to_string(count) + " " + what + ", got " + std::to_string(list->size()));
  };
  LOCUTION_RETURN_IF_ERROR(needCount(starts, "starts"));
  LOCUTION_RETURN_IF_ERROR(needCount(ends, "ends"));
  LOCUTION_RETURN_IF_ERROR(needCount(steps, "steps"));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, sliceAxes(axesGiven, count, in.rank()));

  Shape out = in;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<int64_t> step = c.hasInput(4) ? std::nullopt : std::optional<int64_t>(1);
    if (std::optional<Dim> d = entry(steps, i); d && d->isKnown()) step = d->value();
    if (step && *step == 0) return Status::error("the step of axis " + std::to_string(axes[i]) + " is 0");
    std::optional<Dim> d = slicedDim(entry(starts, i), entry(ends, i), step, in[axes[i]]);
    out[axes[i]] = d ? *d : c.freshDim();
  }
  if (in.rank() == 1 && axes.size() == 1 && out.isStatic())
    if (std::optional<std::vector<Dim>> contents = c.inputDims(0);
        contents && in.isStatic() && entry(starts, 0)->isKnown()) {
      int64_t step = steps ? steps->front().value() : 1;
      NumberSlice s = clampSlice(starts->front().value(), ends->front().value(), step, in[0].value());
      std::vector<Dim> kept;
      for (int64_t k = 0; k < s.count; ++k) kept.push_back((*contents)[static_cast<size_t>(s.start + k * step)]);
      c.setOutputDims(0, std::move(kept));
    }
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computeSlice(ComputeContext& c) {
  std::vector<int64_t> in = c.inputExtents(0), to = c.outputExtents();
  auto rank = static_cast<int64_t>(in.size());
  std::optional<std::vector<int64_t>> given;
  if (c.hasInput(3)) {
    LOCUTION_ASSIGN_OR_RETURN(given, constantInts(c, 3, "axes"));
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes,
                            sliceAxes(given, static_cast<size_t>(c.inputExtents(1).at(0)), rank));
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    for (size_t i = 0; i < axes.size(); ++i) {
      auto a = static_cast<size_t>(axes[i]);
      Expr start = intElement(c, 1, static_cast<int64_t>(i)), end = intElement(c, 2, static_cast<int64_t>(i));
      Expr step = c.hasInput(4) ? intElement(c, 4, static_cast<int64_t>(i)) : loop::index(1);
      int64_t s = 0, e = 0, by = 0;
      if (loop::isConstInt(start, &s) && loop::isConstInt(end, &e) && loop::isConstInt(step, &by) && by != 0) {
        // With at most one element a step may be too large to multiply with.
        int64_t first = clampSlice(s, e, by, in[a]).start;
        at[a] = to[a] <= 1 ? loop::index(first) : out[a] * by + loop::index(first);
        continue;
      }
      // Where numbers come as data, what the shapes promise is enforced by clamping.
      Expr zero = loop::index(0), last = loop::index(in[a] - 1);
      Expr first = shared(wrapNegative(start, in[a]), [&](const Expr& v) {
        return minOf(maxOf(v, zero), loop::select(lt(step, zero), last, loop::index(in[a])));
      });
      at[a] = minOf(maxOf(first + out[a] * step, zero), last);
    }
    return c.at(0, std::move(at));
  });
}

}  // namespace locution::ops

// Pad (constant, reflect, edge, wrap; negative pads crop) and CenterCropPad.
#include <algorithm>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<std::vector<int64_t>> padAxes(const std::optional<std::vector<int64_t>>& given, int64_t rank) {
  if (given) return normaliseAxes(*given, rank);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

Expr absolute(const Expr& x) { return loop::call("abs", {x}); }

/// Where index `i` (counted from the unpadded start) reads along an axis of `extent`, for the modes that never leave it.
Expr mirrored(const std::string& mode, const Expr& i, int64_t extent, bool farOut) {
  Expr zero = loop::index(0), last = loop::index(extent - 1);
  if (extent == 1) return zero;
  if (mode == "edge") return minOf(maxOf(i, zero), last);
  if (mode == "wrap") return floorMod(i, loop::index(extent));
  if (!farOut) return last - absolute(last - absolute(i));
  // Pads longer than the axis bounce back and forth: a triangle wave.
  Expr phase = floorMod(i, loop::index(2 * (extent - 1)));
  return last - absolute(last - phase);
}

}  // namespace

Status inferPad(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 3, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(
      needOneOf("mode", c.node().stringAttr("mode", "constant"), {"constant", "reflect", "edge", "wrap"}));
  const Shape& in = c.input(0).shape;
  Shape out = in;
  std::optional<std::vector<Dim>> pads = c.inputDims(1);
  std::optional<std::vector<int64_t>> given = c.hasInput(3) ? knownInts(c, 3) : std::nullopt;
  bool known = in.isRanked() && pads && (!c.hasInput(3) || given);
  if (!known) {
    for (int64_t i = 0; in.isRanked() && i < in.rank(); ++i) out[i] = c.freshDim();
    c.setOutput(0, c.input(0).dtype, std::move(out));
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, padAxes(given, in.rank()));
  if (pads->size() != 2 * axes.size())
    return Status::error("expected " + std::to_string(2 * axes.size()) + " pads, got " + std::to_string(pads->size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    out[axes[i]] = in[axes[i]] + (*pads)[i] + (*pads)[axes.size() + i];
    if (out[axes[i]].isKnown() && out[axes[i]].value() < 0)
      return Status::error("the pads " + (*pads)[i].str() + " and " + (*pads)[axes.size() + i].str() +
                           " leave nothing of dimension " + std::to_string(axes[i]) + " of " + in.str());
  }
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computePad(ComputeContext& c) {
  std::string mode = c.node().stringAttr("mode", "constant");
  std::vector<int64_t> in = c.inputExtents(0), to = c.outputExtents();
  std::optional<std::vector<int64_t>> given;
  if (c.hasInput(3)) {
    LOCUTION_ASSIGN_OR_RETURN(given, constantInts(c, 3, "axes"));
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, padAxes(given, static_cast<int64_t>(in.size())));
  if (mode != "constant")
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] == 0 && to[i] > 0) return Status::error("mode '" + mode + "' can't pad an extent of 0");
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    Expr inside;
    for (size_t k = 0; k < axes.size(); ++k) {
      auto a = static_cast<size_t>(axes[k]);
      Expr begin = intElement(c, 1, static_cast<int64_t>(k));
      int64_t before = 0;
      bool told = loop::isConstInt(begin, &before);
      int64_t after = saturatingSub(saturatingSub(to[a], in[a]), before);
      if (told && before == 0 && after == 0) continue;
      at[a] = out[a] - begin;
      if (mode != "constant") {
        bool farOut = !told || before >= in[a] || after >= in[a];
        at[a] = mirrored(mode, at[a], in[a], farOut);
        continue;
      }
      if (!told || before > 0) inside = both(inside, le(loop::index(0), at[a]));
      if (!told || after > 0) inside = both(inside, lt(at[a], loop::index(in[a])));
    }
    Expr value = c.at(0, std::move(at));
    if (!inside) return value;
    Expr filler = loop::constant(c.input(0).dtype, 0);
    if (c.hasInput(2)) filler = c.at(2, std::vector<Expr>(c.inputExtents(2).size(), loop::index(0)));
    if (std::optional<double> number = constantScalar(c, 2); number && !isInteger(c.input(0).dtype))
      filler = loop::constant(c.input(0).dtype, *number);
    return loop::select(inside, value, filler);
  });
}

Status inferCenterCropPad(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape& in = c.input(0).shape;
  Shape out = in;
  if (in.isRanked()) {
    std::vector<int64_t> listed = c.node().intsAttr("axes");
    LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes,
                              padAxes(c.node().hasAttr("axes") ? std::optional(listed) : std::nullopt, in.rank()));
    std::optional<std::vector<Dim>> target = c.inputDims(1);
    if (target && target->size() != axes.size())
      return Status::error("input 1 (shape): expected " + std::to_string(axes.size()) + " extents, got " +
                           std::to_string(target->size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      out[axes[i]] = target ? (*target)[i] : c.freshDim();
      if (out[axes[i]].isKnown() && out[axes[i]].value() < 0)
        return Status::error("input 1 (shape) has the extent " + out[axes[i]].str());
    }
  }
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computeCenterCropPad(ComputeContext& c) {
  std::vector<int64_t> in = c.inputExtents(0), to = c.outputExtents();
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    Expr inside;
    for (size_t i = 0; i < in.size(); ++i) {
      if (to[i] <= in[i]) {
        at[i] = out[i] + loop::index((in[i] - to[i]) / 2);
      } else {
        at[i] = out[i] - loop::index((to[i] - in[i]) / 2);
        inside = both(inside, logicalAnd(le(loop::index(0), at[i]), lt(at[i], loop::index(in[i]))));
      }
    }
    Expr value = c.at(0, std::move(at));
    return inside ? loop::select(inside, value, loop::constant(c.output(0).dtype, 0)) : value;
  });
}

}  // namespace locution::ops

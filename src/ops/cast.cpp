// Changes of element type: Cast, CastLike, BitCast; and Identity, which changes nothing.
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<DType> targetType(const graph::Node& node) {
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> to, dtypeAttr(node, "to"));
  if (!to) return Status::error("attribute 'to' is missing");
  return *to;
}

Result<RoundMode> roundMode(const graph::Node& node) {
  std::string mode = node.stringAttr("round_mode", "up");
  LOCUTION_RETURN_IF_ERROR(needOneOf("round_mode", mode, {"up", "down", "nearest"}));
  return mode == "up" ? RoundMode::Up : mode == "down" ? RoundMode::Down : RoundMode::Nearest;
}

Status inferConversion(InferContext& c, DType to) {
  LOCUTION_RETURN_IF_ERROR(roundMode(c.node()).status());
  if (dtypeClass(to) == DTypeClass::Complex || dtypeClass(c.input(0).dtype) == DTypeClass::Complex)
    return Status::error("complex numbers can't be cast");
  if (isIntOrBool(to) && isIntOrBool(c.input(0).dtype))
    propagateDims(c, [to](const std::vector<Dim>& a) -> std::optional<Dim> {
      if (to == DType::Bool) {
        if (!a[0].isKnown()) return std::nullopt;
        return Dim(a[0].value() != 0 ? 1 : 0);
      }
      // A known number may wrap; an extent fits 32 bits and more.
      if (dtypeBits(to) >= 32 && !a[0].isKnown()) return a[0];
      if (!a[0].isKnown()) return std::nullopt;
      int64_t v = a[0].value();
      if (dtypeBits(to) == 64) return a[0];
      int64_t span = int64_t{1} << dtypeBits(to), low = isSignedInt(to) ? -span / 2 : 0;
      if (v < low || v >= low + span) return std::nullopt;
      return a[0];
    });
  c.setOutput(0, to, c.input(0).shape);
  return Status::ok();
}

Status computeConversion(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(RoundMode round, roundMode(c.node()));
  bool saturate = c.node().intAttr("saturate", 1) != 0;
  return injective(c, 0, [&](const std::vector<Expr>& indices) {
    return convert(c.output(0).dtype, c.at(0, indices), saturate, round);
  });
}

}  // namespace

Status inferCast(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_ASSIGN_OR_RETURN(DType to, targetType(c.node()));
  return inferConversion(c, to);
}
Status computeCast(ComputeContext& c) { return computeConversion(c); }

Status inferCastLike(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  DType to = c.input(1).dtype;
  LOCUTION_RETURN_IF_ERROR(inferConversion(c, to));
  return Status::ok();
}
Status computeCastLike(ComputeContext& c) { return computeConversion(c); }

Status inferBitCast(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_ASSIGN_OR_RETURN(DType to, targetType(c.node()));
  DType from = c.input(0).dtype;
  if (dtypeBits(from) == 0 || dtypeBits(from) != dtypeBits(to))
    return Status::error("attribute 'to': expected a type as wide as " + std::string(dtypeName(from)) + ", got " +
                         std::string(dtypeName(to)));
  return inferLike(c, to);
}

Status computeBitCast(ComputeContext& c) {
  DType from = c.input(0).dtype, to = c.output(0).dtype;
  return injective(c, 0, [&](const std::vector<Expr>& indices) {
    Expr x = c.at(0, indices);
    if (from == to) return x;
    // A bool is a byte of 0 or 1.
    if (from == DType::Bool) x = loop::cast(DType::U8, x);
    if (to == DType::Bool) return loop::cast(DType::Bool, from == DType::U8 ? x : loop::bitcast(DType::U8, x));
    return x->type.dtype == to ? x : loop::bitcast(to, x);
  });
}

Status inferIdentity(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  c.setOutput(0, c.input(0));
  if (c.input(0).kind == ValueKind::Tensor)
    if (std::optional<std::vector<Dim>> dims = c.inputDims(0)) c.setOutputDims(0, *dims);
  return Status::ok();
}
Status computeIdentity(ComputeContext& c) {
  return injective(c, 0, [&](const std::vector<Expr>& indices) { return c.at(0, indices); });
}

}  // namespace locution::ops

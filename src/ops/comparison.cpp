// Equal, Less, LessOrEqual, Greater, GreaterOrEqual: bool out, false where a NaN takes part.
#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

Status inferEqual(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  if (isIntOrBool(c.input(0).dtype))
    propagateDims(c, [](const std::vector<Dim>& a) -> std::optional<Dim> {
      std::optional<bool> same = decideEqual(a[0], a[1]);
      if (!same) return std::nullopt;
      return Dim(*same ? 1 : 0);
    });
  return inferBroadcast(c, DType::Bool);
}

Status inferOrder(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  for (size_t i : {0, 1}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  const std::string& op = c.node().op;
  bool swapped = op.starts_with("Greater"), orEqual = op.ends_with("OrEqual");
  if (isInteger(c.input(0).dtype))
    propagateDims(c, [&](const std::vector<Dim>& a) -> std::optional<Dim> {
      // big - small >= 0, or > 0, whatever the symbols are.
      Dim difference = swapped ? a[0] - a[1] : a[1] - a[0];
      if ((orEqual ? difference : difference - 1).isNonNegative()) return Dim(1);
      Dim opposite = Dim(0) - difference;
      if ((orEqual ? opposite - 1 : opposite).isNonNegative()) return Dim(0);
      return std::nullopt;
    });
  return inferBroadcast(c, DType::Bool);
}

Status computeEqual(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& a) { return eq(a[0], a[1]); });
}
Status computeLess(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& a) { return lt(a[0], a[1]); });
}
Status computeLessOrEqual(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& a) { return le(a[0], a[1]); });
}
Status computeGreater(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& a) { return lt(a[1], a[0]); });
}
Status computeGreaterOrEqual(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& a) { return le(a[1], a[0]); });
}

}  // namespace locution::ops

// ArgMax, ArgMin, Hardmax: a stage for the largest value, then one for the place where it stands. A NaN counts as the largest and
// the smallest, as in numpy.
#include <limits>

#include "ops/families.h"
#include "ops/reducer.h"

namespace locution::ops {

using loop::Combiner;
using loop::Expr;

namespace {

struct Place {
  Combiner combiner;
  Reducer::Body body;
  Reducer::Epilogue epilogue;
};

/// The stage body and combiner that find the index along `axis` of the largest (smallest) element.
Place placeOf(ComputeContext& c, Reducer& r, int64_t axis, bool isMax, bool last) {
  auto value = [&c](const std::vector<Expr>& full) { return widened(c, 0, full); };
  loop::BufferRef best = r.temporary(isMax ? "max" : "min", isMax ? Combiner::Max : Combiner::Min, value);
  // 32-bit indices give twice the lanes.
  bool narrow = c.inputExtents(0)[static_cast<size_t>(axis)] < std::numeric_limits<int32_t>::max();
  DType type = narrow ? DType::I32 : DType::I64;
  Place p;
  p.combiner = last ? Combiner::Max : Combiner::Min;
  p.body = [&c, &r, best, axis, last, type](const std::vector<Expr>& full) {
    return shared(widened(c, 0, full), [&](const Expr& x) {
      Expr match = eq(x, r.at(best, full));
      // Where one is NaN, so is the best, and nothing equals it.
      if (isFloat(x->type.dtype)) match = logicalOr(match, loop::call("isnan", {x}));
      double none = last ? -1 : type == DType::I32 ? std::numeric_limits<int32_t>::max() : 0x1p62;
      return loop::select(match, loop::cast(type, full[static_cast<size_t>(axis)]), loop::constant(type, none));
    });
  };
  p.epilogue = [](const Expr& acc, const std::vector<Expr>&) { return loop::cast(DType::I64, acc); };
  return p;
}

Status computeArg(ComputeContext& c, bool isMax) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), c.input(0).shape.rank()));
  if (c.inputExtents(0)[static_cast<size_t>(axis)] == 0 && c.output(0).shape.elements() > 0)
    return Status::error("axis " + std::to_string(axis) + " of " + c.input(0).shape.str() +
                         " is empty: there is no index to give");
  Reducer r(c, c.inputExtents(0), {axis});
  Place p = placeOf(c, r, axis, isMax, c.node().intAttr("select_last_index", 0) != 0);
  r.output(0, c.node().intAttr("keepdims", 1) != 0, p.combiner, p.body, p.epilogue);
  return Status::ok();
}

}  // namespace

Status inferArg(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  Shape out = c.input(0).shape;
  if (out.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), out.rank()));
    std::vector<Dim> dims = out.dims();
    if (c.node().intAttr("keepdims", 1) != 0)
      dims[static_cast<size_t>(axis)] = Dim(1);
    else
      dims.erase(dims.begin() + axis);
    out = Shape(std::move(dims));
  }
  c.setOutput(0, DType::I64, std::move(out));
  return Status::ok();
}

Status computeArgMax(ComputeContext& c) { return computeArg(c, true); }
Status computeArgMin(ComputeContext& c) { return computeArg(c, false); }

Status computeHardmax(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), c.input(0).shape.rank()));
  Reducer r(c, c.inputExtents(0), {axis});
  Place p = placeOf(c, r, axis, true, false);
  loop::BufferRef place = r.temporary("place", p.combiner, p.body, p.epilogue);
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    DType type = c.output(0).dtype;
    return loop::select(eq(at[static_cast<size_t>(axis)], r.at(place, at)), loop::constant(type, 1),
                        loop::constant(type, 0));
  });
}

}  // namespace locution::ops

// DeformConv (2-D): the input is sampled at the kernel's shifted positions, times the mask, into columns; a convolution over the columns
// is one contraction. Sampling is bilinear, zero outside the input.
#include <array>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

Status inferDeformConv(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2, 3, 4}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  for (size_t i = 0; i < 3; ++i) LOCUTION_RETURN_IF_ERROR(needRank(c, i, 4));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 3, 1));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 4, 4));
  const Shape &x = c.input(0).shape, &w = c.input(1).shape, &offset = c.input(2).shape;
  if (c.node().intAttr("channels_last", 0) != 0) return Status::error("DeformConv has no channels-last form");
  int64_t group = c.node().intAttr("group", 1), offsetGroup = c.node().intAttr("offset_group", 1);
  if (group < 1 || offsetGroup < 1) return Status::error("attributes group and offset_group must be at least 1");
  if (!x.isRanked() || !w.isRanked() || !offset.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  std::optional<std::vector<int64_t>> kernel;
  if (w[2].isKnown() && w[3].isKnown()) kernel = {w[2].value(), w[3].value()};
  LOCUTION_ASSIGN_OR_RETURN(Window window, parseWindow(c.node(), 2, kernel));
  LOCUTION_RETURN_IF_ERROR(
      needSameDim(x[1], w[1] * Dim(group), "channels of the input and of the weights times group"));
  if (w[0].isKnown() && w[0].value() % group != 0)
    return Status::error("weights have " + w[0].str() + " output channels, not divisible by group " +
                         std::to_string(group));
  if (x[1].isKnown() && x[1].value() % offsetGroup != 0)
    return Status::error("input has " + x[1].str() + " channels, not divisible by offset_group " +
                         std::to_string(offsetGroup));
  std::vector<Dim> dims{x[0], w[0], offset[2], offset[3]};
  LOCUTION_RETURN_IF_ERROR(needSameDim(offset[0], x[0], "batches of offset and input"));
  if (!window.kernel.empty()) {
    Dim points = Dim(window.kernel[0]) * Dim(window.kernel[1]) * Dim(offsetGroup);
    LOCUTION_RETURN_IF_ERROR(
        needSameDim(offset[1], points * Dim(2), "channels of offset and twice the kernel positions"));
    for (size_t i = 0; i < 2; ++i) {
      LOCUTION_ASSIGN_OR_RETURN(Dim extent, windowOutput(window, i, x[2 + static_cast<int64_t>(i)]));
      LOCUTION_RETURN_IF_ERROR(
          needSameDim(offset[2 + static_cast<int64_t>(i)], extent, "extents of offset and output"));
      dims[2 + i] = extent;
    }
    if (c.hasInput(4) && c.input(4).shape.isRanked()) {
      const Shape& mask = c.input(4).shape;
      LOCUTION_RETURN_IF_ERROR(needSameDim(mask[0], x[0], "batches of mask and input"));
      LOCUTION_RETURN_IF_ERROR(needSameDim(mask[1], points, "channels of mask and kernel positions"));
      for (int64_t i = 2; i < 4; ++i)
        LOCUTION_RETURN_IF_ERROR(needSameDim(mask[i], dims[static_cast<size_t>(i)], "extents of mask and output"));
    }
  }
  if (c.hasInput(3) && c.input(3).shape.isRanked())
    LOCUTION_RETURN_IF_ERROR(needSameDim(c.input(3).shape[0], w[0], "elements of the bias and output channels"));
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeDeformConv(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0), w = c.inputExtents(1), out = c.outputExtents();
  LOCUTION_ASSIGN_OR_RETURN(Window window, parseWindow(c.node(), 2, std::vector<int64_t>{w[2], w[3]}));
  int64_t group = c.node().intAttr("group", 1), offsetGroup = c.node().intAttr("offset_group", 1);
  DType dtype = c.output(0).dtype, type = accumulatorType(dtype);

  std::vector<int64_t> columnDims{x[0], x[1], w[2], w[3], out[2], out[3]};
  LOCUTION_RETURN_IF_ERROR(checkElements(columnDims, "the sampled input"));
  loop::Stage columns;
  columns.out = c.temporary("columns", type, columnDims);
  columns.axes = makeAxes(columnDims);
  std::vector<Expr> v = varsOf(columns.axes);
  Expr offsetIndex = floorDiv(v[1], loop::index(std::max<int64_t>(1, x[1] / offsetGroup))),
       kernelIndex = (offsetIndex * w[2] + v[2]) * w[3] + v[3];
  std::array<Expr, 2> base, fraction;
  for (size_t d = 0; d < 2; ++d) {
    Expr shift = castTo(type, c.at(2, {v[0], kernelIndex * 2 + static_cast<int64_t>(d), v[4], v[5]}));
    Expr position =
        loop::cast(type, v[4 + d] * window.strides[d] + v[2 + d] * window.dilations[d] - window.padBegin[d]) + shift;
    Expr whole = loop::call("floor", {position});
    base[d] = loop::cast(DType::I64, whole);
    fraction[d] = position - whole;
  }
  // The expressions of position and fraction are named, since each of the four taps uses them.
  Expr one = loop::constant(type, 1), zero = loop::constant(type, 0);
  Expr value = shared(base[0], [&](const Expr& y0) {
    return shared(base[1], [&](const Expr& x0) {
      return shared(fraction[0], [&](const Expr& fy) {
        return shared(fraction[1], [&](const Expr& fx) {
          Expr sum;
          for (int64_t dy = 0; dy < 2; ++dy) {
            for (int64_t dx = 0; dx < 2; ++dx) {
              Expr py = y0 + dy, px = x0 + dx;
              Expr inside = logicalAnd(logicalAnd(le(loop::index(0), py), lt(py, loop::index(x[2]))),
                                       logicalAnd(le(loop::index(0), px), lt(px, loop::index(x[3]))));
              // Outside, the weight may be infinity minus itself.
              Expr weight = (dy ? fy : one - fy) * (dx ? fx : one - fx);
              Expr term = select(inside, castTo(type, c.at(0, {v[0], v[1], py, px})) * weight, zero);
              sum = sum ? sum + term : term;
            }
          }
          return sum;
        });
      });
    });
  });
  if (c.hasInput(4)) value = value * castTo(type, c.at(4, {v[0], kernelIndex, v[4], v[5]}));
  columns.body = value;
  loop::BufferRef sampled = columns.out;
  c.addStage(std::move(columns));

  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(out);
  stage.reduce = {{loop::makeVar("ic"), w[1]}, {loop::makeVar("k0"), w[2]}, {loop::makeVar("k1"), w[3]}};
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> o = varsOf(stage.axes), r = varsOf(stage.reduce);
  Expr channel = group == 1 ? r[0] : floorDiv(o[1], loop::index(w[0] / group)) * w[1] + r[0];
  stage.body = load(sampled, {o[0], channel, r[1], r[2], o[2], o[3]}) * castTo(type, c.at(1, {o[1], r[0], r[1], r[2]}));
  if (c.hasInput(3) || type != dtype) {
    stage.acc = loop::makeVar("acc", {type, 1});
    Expr sum = stage.acc;
    if (c.hasInput(3)) sum = sum + castTo(type, c.at(3, {o[1]}));
    stage.epilogue = castTo(dtype, sum);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

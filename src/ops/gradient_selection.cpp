// Gradients of operators that read some elements, once or often: zeros, to which what came back is added where it was read.
#include <algorithm>
#include <numeric>

#include "ops/gradient.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

/// Zeros of `dims`, with the rows of `updates` (indices' dims, then the rest of `dims`) added at `indices` of the first axis. Element
/// after element in the order of the indices: the same bits every time.
Term addRows(Builder& b, const std::vector<int64_t>& dims, const Term& indices, const Term& updates) {
  std::vector<int64_t> tuple = indices.dims();
  tuple.push_back(1);
  return b.node("ScatterND", {b.full(updates.dtype(), dims, 0), reshape(cast(indices, DType::I64), tuple), updates},
                {{"reduction", std::string("add")}});
}

/// The gradient of reading `indices` along `axis` of a tensor of `dims`.
Term addAlong(Builder& b, const std::vector<int64_t>& dims, int64_t axis, const Term& indices, Term updates) {
  if (axis == 0) return addRows(b, dims, indices, updates);
  // The axis to the front and back.
  const int64_t rank = static_cast<int64_t>(dims.size()), many = indices.rank();
  std::vector<int64_t> forth(static_cast<size_t>(updates.rank())), back(dims.size()), moved = dims;
  std::iota(forth.begin(), forth.end(), 0);
  std::rotate(forth.begin(), forth.begin() + axis, forth.begin() + axis + many);
  std::rotate(moved.begin(), moved.begin() + axis, moved.begin() + axis + 1);
  for (int64_t i = 0; i < rank; ++i) back[static_cast<size_t>(i)] = i < axis ? i + 1 : i == axis ? 0 : i;
  return transpose(addRows(b, moved, indices, transpose(updates, forth)), back);
}

}  // namespace

Status gradientSlice(GradientContext& c) {
  const std::vector<int64_t> in = c.input(0).dims();
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> starts, c.ints(1));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.hasInput(3)) {
    LOCUTION_ASSIGN_OR_RETURN(axes, c.ints(3));
  }
  if (c.hasInput(4)) {
    LOCUTION_ASSIGN_OR_RETURN(steps, c.ints(4));
  }
  LOCUTION_ASSIGN_OR_RETURN(axes, normaliseAxes(axes, static_cast<int64_t>(in.size())));
  Builder& b = c.builder();
  Term g = c.gradient();
  // Steps first, each along its axis; then zeros around the rest.
  std::vector<int64_t> before(in.size(), 0), after(in.size(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const int64_t extent = in[axis], taken = g.dims()[axis], step = steps[k];
    const int64_t from = starts[k] < 0 ? starts[k] + extent : starts[k];
    const int64_t start = step > 0 ? std::clamp<int64_t>(from, 0, extent) : std::clamp<int64_t>(from, 0, extent - 1);
    if (step == 1) {
      before[axis] = start;
      after[axis] = extent - start - taken;
      continue;
    }
    std::vector<int64_t> places(static_cast<size_t>(taken)), dims = g.dims();
    for (int64_t i = 0; i < taken; ++i) places[static_cast<size_t>(i)] = start + i * step;
    dims[axis] = extent;
    g = addAlong(b, dims, axes[k], b.ints(places), g);
  }
  std::vector<int64_t> pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; }))
    g = b.node("Pad", {g, b.ints(pads), b.scalar(g.dtype(), 0)});
  c.give(0, g);
  return Status::ok();
}

Status gradientPad(GradientContext& c) {
  const std::string mode = c.node().stringAttr("mode", "constant");
  if (mode != "constant") return Status::error("the mode " + mode);
  if (c.wants(2)) return Status::error("a fill value that is to be differentiated");
  const std::vector<int64_t> in = c.input(0).dims();
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> pads, c.ints(1));
  std::vector<int64_t> axes(in.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (c.hasInput(3)) {
    LOCUTION_ASSIGN_OR_RETURN(axes, c.ints(3));
    LOCUTION_ASSIGN_OR_RETURN(axes, normaliseAxes(axes, static_cast<int64_t>(in.size())));
  }
  Term g = c.gradient();
  for (size_t k = 0; k < axes.size(); ++k) {
    if (pads[k] < 0 || pads[axes.size() + k] < 0) return Status::error("negative pads");
    const int64_t extent = in[static_cast<size_t>(axes[k])];
    g = slice(g, axes[k], pads[k], pads[k] + extent);
  }
  c.give(0, g);
  return Status::ok();
}

Status gradientGather(GradientContext& c) {
  const std::vector<int64_t> data = c.input(0).dims();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                            normaliseAxis(c.node().intAttr("axis", 0), static_cast<int64_t>(data.size())));
  c.give(0, addAlong(c.builder(), data, axis, c.input(1), c.gradient()));
  return Status::ok();
}

/// One element a row (the label's log probability) comes back as a comparison with all places of the row, which is computed where the
/// gradient is used; several are added one after another.
Status gradientGatherElements(GradientContext& c) {
  Builder& b = c.builder();
  Term data = c.input(0), indices = cast(c.input(1), DType::I64), dy = c.gradient();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), data.rank()));
  std::vector<int64_t> rows = data.dims(), along(rows.size(), 1);
  const auto a = static_cast<size_t>(axis);
  const int64_t extent = rows[a];
  rows[a] = 1;
  if (indices.dims() != rows) {
    c.give(0, b.node("ScatterElements", {b.full(dy.dtype(), data.dims(), 0), indices, dy},
                     {{"axis", axis}, {"reduction", std::string("add")}}));
    return Status::ok();
  }
  std::vector<int64_t> places(static_cast<size_t>(extent));
  std::iota(places.begin(), places.end(), 0);
  along[a] = extent;
  Term zero = b.constant(Tensor::scalarI64(0)), size = b.constant(Tensor::scalarI64(extent));
  Term at = where(call("Less", indices, zero), indices + size, indices);
  c.give(0, whereOrZero(call("Equal", at, reshape(b.ints(places), along)), dy));
  return Status::ok();
}

Status gradientGatherND(GradientContext& c) {
  if (c.node().intAttr("batch_dims", 0) != 0) return Status::error("batch_dims other than 0");
  Builder& b = c.builder();
  c.give(0, b.node("ScatterND",
                   {b.full(c.gradient().dtype(), c.input(0).dims(), 0), cast(c.input(1), DType::I64), c.gradient()},
                   {{"reduction", std::string("add")}}));
  return Status::ok();
}

}  // namespace locution::ops

// Elements picked by index tensors: Gather, GatherElements, GatherND, OneHot. Negative indices count from the end; one that is out of
// range is an error before the kernel runs.
#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/index_checks.h"

namespace locution::ops {

using loop::Expr;

Status inferGather(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
  if (!data.isRanked() || !indices.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), data.rank()));
  std::vector<Dim> out(data.dims().begin(), data.dims().begin() + axis);
  out.insert(out.end(), indices.dims().begin(), indices.dims().end());
  out.insert(out.end(), data.dims().begin() + axis + 1, data.dims().end());
  std::optional<std::vector<Dim>> contents = c.inputDims(0);
  std::optional<std::vector<int64_t>> picks = knownInts(c, 1);
  if (contents && picks && data.rank() == 1 && indices.rank() <= 1) {
    std::vector<Dim> picked;
    auto n = static_cast<int64_t>(contents->size());
    for (int64_t i : *picks) {
      if (i < -n || i >= n)
        return Status::error("index " + std::to_string(i) + " is outside [" + std::to_string(-n) + ", " +
                             std::to_string(n - 1) + "]");
      picked.push_back((*contents)[static_cast<size_t>(i < 0 ? i + n : i)]);
    }
    c.setOutputDims(0, std::move(picked));
  }
  c.setOutput(0, c.input(0).dtype, Shape(std::move(out)));
  return Status::ok();
}

Status computeGather(ComputeContext& c) {
  std::vector<int64_t> data = c.inputExtents(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                            normaliseAxis(c.node().intAttr("axis", 0), static_cast<int64_t>(data.size())));
  auto a = static_cast<size_t>(axis);
  size_t rank = c.inputExtents(1).size();
  checkIndexInput(c, 1, data[a]);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    auto first = out.begin() + axis, last = first + static_cast<std::ptrdiff_t>(rank);
    std::vector<Expr> at(out.begin(), first);
    at.push_back(dataIndex(c, 1, {first, last}, data[a]));
    at.insert(at.end(), last, out.end());
    return c.at(0, std::move(at));
  });
}

Status inferGatherElements(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
  if (data.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needRank(c, 1, data.rank()));
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), data.rank()));
    for (int64_t i = 0; indices.isRanked() && i < data.rank(); ++i)
      if (i != axis && indices[i].isKnown() && data[i].isKnown() && indices[i].value() > data[i].value())
        return Status::error("the indices " + indices.str() + " exceed the data " + data.str() + " in dimension " +
                             std::to_string(i));
  }
  c.setOutput(0, c.input(0).dtype, indices);
  return Status::ok();
}

Status computeGatherElements(ComputeContext& c) {
  std::vector<int64_t> data = c.inputExtents(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                            normaliseAxis(c.node().intAttr("axis", 0), static_cast<int64_t>(data.size())));
  auto a = static_cast<size_t>(axis);
  checkIndexInput(c, 1, data[a]);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    at[a] = dataIndex(c, 1, out, data[a]);
    return c.at(0, std::move(at));
  });
}

Status inferGatherND(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
  if (!data.isRanked() || !indices.isRanked() || (indices.rank() > 0 && !indices[indices.rank() - 1].isKnown())) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  int64_t batch = c.node().intAttr("batch_dims", 0), q = indices.rank(), r = data.rank();
  if (q < 1 || r < 1)
    return Status::error("data and indices need a dimension at least, got " + data.str() + " and " + indices.str());
  if (batch < 0 || batch >= std::min(q, r))
    return Status::error("attribute 'batch_dims': expected 0 to " + std::to_string(std::min(q, r) - 1) + ", got " +
                         std::to_string(batch));
  int64_t depth = indices[q - 1].value();
  if (depth < 1 || depth > r - batch)
    return Status::error("the indices' last extent: expected 1 to " + std::to_string(r - batch) + ", got " +
                         std::to_string(depth));
  for (int64_t i = 0; i < batch; ++i)
    LOCUTION_RETURN_IF_ERROR(needSameDim(data[i], indices[i], "batch dimension " + std::to_string(i)));
  std::vector<Dim> out(indices.dims().begin(), indices.dims().end() - 1);
  out.insert(out.end(), data.dims().begin() + batch + depth, data.dims().end());
  c.setOutput(0, c.input(0).dtype, Shape(std::move(out)));
  return Status::ok();
}

Status computeGatherND(ComputeContext& c) {
  std::vector<int64_t> data = c.inputExtents(0), indices = c.inputExtents(1);
  auto batch = static_cast<size_t>(c.node().intAttr("batch_dims", 0)), depth = static_cast<size_t>(indices.back());
  std::vector<int64_t> indexed(data.begin() + static_cast<std::ptrdiff_t>(batch),
                               data.begin() + static_cast<std::ptrdiff_t>(batch + depth));
  LOCUTION_RETURN_IF_ERROR(checkIndexTuples(c, 1, indexed));
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    auto tupleEnd = out.begin() + (static_cast<std::ptrdiff_t>(indices.size()) - 1);
    std::vector<Expr> tuple(out.begin(), tupleEnd);
    std::vector<Expr> at(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(batch));
    for (Expr& e : tupleIndices(c, 1, tuple, indexed)) at.push_back(std::move(e));
    at.insert(at.end(), tupleEnd, out.end());
    return c.at(0, std::move(at));
  });
}

Status inferOneHot(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  if (c.input(2).shape.isStatic() && c.input(2).shape.elements() != 2)
    return Status::error("input 2 (values): expected 2 elements (off and on), got shape " + c.input(2).shape.str());
  const Shape& in = c.input(0).shape;
  Shape out = Shape::unranked();
  if (in.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), in.rank() + 1));
    std::optional<Dim> depth;
    if (std::optional<std::vector<Dim>> dims = c.inputDims(1); dims && dims->size() == 1) depth = dims->front();
    // The depth may be given as a float.
    const Tensor* constant = c.constant(1);
    if (!depth && constant && constant->elements() == 1 && isFloat(constant->dtype())) {
      double number = constant->elementAsDouble(0);
      if (!(number >= 0 && number < 0x1p31)) return Status::error("input 1 (depth): expected a number of 0 or more");
      depth = Dim(static_cast<int64_t>(number));
    }
    if (depth && depth->isKnown() && depth->value() < 0) return Status::error("input 1 (depth) is " + depth->str());
    std::vector<Dim> dims = in.dims();
    dims.insert(dims.begin() + axis, depth ? *depth : c.freshDim());
    out = Shape(std::move(dims));
  }
  c.setOutput(0, c.input(2).dtype, std::move(out));
  return Status::ok();
}

Status computeOneHot(ComputeContext& c) {
  std::vector<int64_t> to = c.outputExtents();
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), static_cast<int64_t>(to.size())));
  int64_t depth = to[static_cast<size_t>(axis)];
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    at.erase(at.begin() + axis);
    // What lies outside [-depth, depth - 1] matches nothing: all off.
    Expr wanted = wrapNegative(loop::cast(DType::I64, widened(c, 0, at)), depth);
    return loop::select(eq(wanted, out[static_cast<size_t>(axis)]), c.at(2, {loop::index(1)}),
                        c.at(2, {loop::index(0)}));
  });
}

}  // namespace locution::ops

// The same bytes under another shape: Reshape, Flatten, Squeeze, Unsqueeze. Compute gives index maps, so that fusion can inline them.
#include <algorithm>

#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Contents pass through as long as the output is a scalar or a vector.
void passContents(InferContext& c, const Shape& shape) {
  if (shape.isRanked() && shape.rank() <= 1)
    if (std::optional<std::vector<Dim>> dims = c.inputDims(0)) c.setOutputDims(0, *dims);
}

Status setShape(InferContext& c, Shape shape) {
  passContents(c, shape);
  c.setOutput(0, c.input(0).dtype, std::move(shape));
  return Status::ok();
}

Dim product(const std::vector<Dim>& dims) {
  Dim out(1);
  for (const Dim& d : dims) out = out * d;
  return out;
}

Shape freshShape(InferContext& c, int64_t rank) {
  std::vector<Dim> dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(c.freshDim());
  return Shape(std::move(dims));
}

/// The extent that -1 stands for: all of `in` over all of `others`, with common factors taken out first.
Result<Dim> remaining(std::vector<Dim> in, std::vector<Dim> others, const std::string& message) {
  for (auto it = others.begin(); it != others.end();) {
    auto same = std::find(in.begin(), in.end(), *it);
    if (same == in.end() || (it->isKnown() && it->value() == 0)) {
      ++it;
      continue;
    }
    in.erase(same);
    it = others.erase(it);
  }
  Dim total = product(in), divisor = product(others);
  if (divisor.isKnown() && divisor.value() == 0) return Status::error(message + ": -1 stands beside an extent of 0");
  if (total.isKnown() && divisor.isKnown() && total.value() % divisor.value() != 0)
    return Status::error(message + ": the number of elements doesn't divide");
  return floorDiv(total, divisor);
}

Status aliasCompute(ComputeContext& c) {
  std::vector<int64_t> from = c.inputExtents(0), to = c.outputExtents();
  if (c.input(0).shape.elements() != c.output(0).shape.elements())
    return Status::error("can't reshape " + c.input(0).shape.str() + " to " + c.output(0).shape.str());
  return injective(c, 0, [&](const std::vector<Expr>& indices) { return c.at(0, reshapeIndices(from, to, indices)); });
}

}  // namespace

Status inferReshape(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 1));
  const Shape& in = c.input(0).shape;
  std::optional<std::vector<Dim>> target = c.inputDims(1);
  if (!target) {
    const Shape& length = c.input(1).shape;
    if (!length.isStatic() || length.rank() != 1 || length[0].value() > 64) return setShape(c, Shape::unranked());
    // One dim can only be all the elements.
    if (length[0].value() == 1 && in.isRanked()) return setShape(c, Shape{product(in.dims())});
    return setShape(c, freshShape(c, length[0].value()));
  }
  bool allowZero = c.node().intAttr("allowzero", 0) != 0;
  std::vector<Dim> out;
  std::optional<size_t> open;
  for (size_t i = 0; i < target->size(); ++i) {
    const Dim& d = (*target)[i];
    if (d.isKnown() && d.value() == 0 && !allowZero) {
      if (in.isRanked() && static_cast<int64_t>(i) >= in.rank())
        return Status::error("0 at position " + std::to_string(i) + " copies a dimension that the input " + in.str() +
                             " doesn't have");
      out.push_back(in.isRanked() ? in[static_cast<int64_t>(i)] : c.freshDim());
    } else if (d.isKnown() && d.value() == -1) {
      if (open) return Status::error("the new shape has more than one -1");
      open = i;
      out.emplace_back(1);
    } else if (d.isKnown() && d.value() < 0) {
      return Status::error("the new shape has the extent " + d.str());
    } else {
      out.push_back(d);
    }
  }
  std::string message = "can't reshape " + in.str() + " to " + Shape(*target).str();
  if (open && in.isRanked()) {
    std::vector<Dim> others = out;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*open));
    LOCUTION_ASSIGN_OR_RETURN(out[*open], remaining(in.dims(), std::move(others), message));
  } else if (open) {
    out[*open] = c.freshDim();
  }
  Shape shape(std::move(out));
  if (in.isStatic() && shape.isStatic() && in.elements() != shape.elements())
    return Status::error(message + ": " + std::to_string(in.elements()) + " and " + std::to_string(shape.elements()) +
                         " elements");
  return setShape(c, std::move(shape));
}
Status computeReshape(ComputeContext& c) { return aliasCompute(c); }

Status inferFlatten(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) return setShape(c, freshShape(c, 2));
  int64_t axis = c.node().intAttr("axis", 1);
  if (axis < -in.rank() || axis > in.rank())
    return Status::error("attribute 'axis': expected " + std::to_string(-in.rank()) + " to " +
                         std::to_string(in.rank()) + ", got " + std::to_string(axis));
  if (axis < 0) axis += in.rank();
  auto split = in.dims().begin() + axis;
  return setShape(c, Shape{product({in.dims().begin(), split}), product({split, in.dims().end()})});
}
Status computeFlatten(ComputeContext& c) { return aliasCompute(c); }

Status inferSqueeze(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) return setShape(c, Shape::unranked());
  std::vector<bool> drop(static_cast<size_t>(in.rank()), false);
  if (c.hasInput(1)) {
    LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
    std::optional<std::vector<int64_t>> known = knownInts(c, 1);
    if (!known) {
      const Shape& length = c.input(1).shape;
      bool hasLength = length.isStatic() && length.rank() == 1 && length[0].value() <= in.rank();
      return setShape(c, hasLength ? freshShape(c, in.rank() - length[0].value()) : Shape::unranked());
    }
    LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, normaliseAxes(*known, in.rank()));
    for (int64_t axis : axes) {
      if (in[axis].isKnown() && in[axis].value() != 1)
        return Status::error("dimension " + std::to_string(axis) + " of " + in.str() +
                             " isn't 1 and can't be squeezed");
      drop[static_cast<size_t>(axis)] = true;
    }
  } else {
    for (int64_t i = 0; i < in.rank(); ++i) drop[static_cast<size_t>(i)] = in[i].isKnown() && in[i].value() == 1;
  }
  std::vector<Dim> out;
  for (int64_t i = 0; i < in.rank(); ++i)
    if (!drop[static_cast<size_t>(i)]) out.push_back(in[i]);
  return setShape(c, Shape(std::move(out)));
}
Status computeSqueeze(ComputeContext& c) { return aliasCompute(c); }

Status inferUnsqueeze(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape& in = c.input(0).shape;
  std::optional<std::vector<int64_t>> known = knownInts(c, 1);
  if (!in.isRanked()) return setShape(c, Shape::unranked());
  if (!known) {
    const Shape& length = c.input(1).shape;
    bool hasLength = length.isStatic() && length.rank() == 1 && length[0].value() <= 64;
    return setShape(c, hasLength ? freshShape(c, in.rank() + length[0].value()) : Shape::unranked());
  }
  int64_t rank = in.rank() + static_cast<int64_t>(known->size());
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, normaliseAxes(*known, rank));
  std::vector<bool> isNew(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) isNew[static_cast<size_t>(axis)] = true;
  std::vector<Dim> out;
  int64_t next = 0;
  for (int64_t i = 0; i < rank; ++i) out.push_back(isNew[static_cast<size_t>(i)] ? Dim(1) : in[next++]);
  return setShape(c, Shape(std::move(out)));
}
Status computeUnsqueeze(ComputeContext& c) { return aliasCompute(c); }

}  // namespace locution::ops

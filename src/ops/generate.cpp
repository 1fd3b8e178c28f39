// Tensors made from shapes and scalars: Shape, Size, ConstantOfShape, Range, EyeLike.
#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// start and end of Shape's attributes, clamped to [0, rank].
std::pair<int64_t, int64_t> shapeRange(const graph::Node& node, int64_t rank) {
  auto clamp = [&](int64_t v) { return std::min(std::max(v < 0 ? v + rank : v, int64_t{0}), rank); };
  int64_t start = clamp(node.intAttr("start", 0)), end = clamp(node.intAttr("end", rank));
  return {start, std::max(start, end)};
}

}  // namespace

Status inferShape(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) {
    c.setOutput(0, DType::I64, Shape{c.freshDim()});
    return Status::ok();
  }
  auto [start, end] = shapeRange(c.node(), in.rank());
  c.setOutputDims(0, {in.dims().begin() + start, in.dims().begin() + end});
  c.setOutput(0, DType::I64, Shape{Dim(end - start)});
  return Status::ok();
}

Status computeShape(ComputeContext& c) {
  std::vector<int64_t> in = c.inputExtents(0);
  auto [start, end] = shapeRange(c.node(), static_cast<int64_t>(in.size()));
  return injective(c, 0, [&, start = start, end = end](const std::vector<Expr>& out) {
    Expr value = loop::index(0);
    for (int64_t i = end; i-- > start;) {
      Expr extent = loop::index(in[static_cast<size_t>(i)]);
      value = i == end - 1 ? extent : loop::select(eq(out[0], loop::index(i - start)), extent, value);
    }
    return value;
  });
}

Status inferSize(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (in.isRanked()) {
    Dim total(1);
    for (const Dim& d : in.dims()) total = total * d;
    c.setOutputDims(0, {total});
  }
  c.setOutput(0, DType::I64, Shape());
  return Status::ok();
}

Status computeSize(ComputeContext& c) {
  return injective(c, 0, [&](const std::vector<Expr>&) { return loop::index(c.input(0).shape.elements()); });
}

namespace {

/// The attribute 'value' of ConstantOfShape: one element; null when absent (float32 zero).
Result<const Tensor*> fillValue(const graph::Node& node) {
  auto it = node.attrs.find("value");
  if (it == node.attrs.end()) return static_cast<const Tensor*>(nullptr);
  const auto* tensor = std::get_if<Tensor>(&it->second);
  if (!tensor || tensor->elements() != 1) return Status::error("attribute 'value': expected a tensor of one element");
  return tensor;
}

}  // namespace

Status inferConstantOfShape(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 1));
  LOCUTION_ASSIGN_OR_RETURN(const Tensor* value, fillValue(c.node()));
  DType type = value ? value->dtype() : DType::F32;
  Shape out = Shape::unranked();
  if (std::optional<std::vector<Dim>> dims = c.inputDims(0)) {
    for (const Dim& d : *dims)
      if (d.isKnown() && d.value() < 0) return Status::error("the shape has the extent " + d.str());
    out = Shape(*dims);
  } else if (c.input(0).shape.isStatic() && c.input(0).shape.rank() == 1 && c.input(0).shape[0].value() <= 64) {
    std::vector<Dim> fresh;
    for (int64_t i = 0; i < c.input(0).shape[0].value(); ++i) fresh.push_back(c.freshDim());
    out = Shape(std::move(fresh));
  }
  if (isInteger(type) && out.isStatic() && out.rank() <= 1 && out.elements() <= 64)
    c.setOutputDims(0, std::vector<Dim>(static_cast<size_t>(out.elements()), Dim(value->elementAsInt(0))));
  c.setOutput(0, type, std::move(out));
  return Status::ok();
}

Status computeConstantOfShape(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(const Tensor* value, fillValue(c.node()));
  DType type = c.output(0).dtype;
  return injective(c, 0, [&](const std::vector<Expr>&) {
    if (!value) return loop::constant(type, 0);
    return isFloat(type) ? loop::floatImm(type, value->elementAsDouble(0)) : loop::intImm(type, value->elementAsInt(0));
  });
}

Status inferRange(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  for (size_t i : {0, 1, 2})
    if (c.input(i).shape.isStatic() && c.input(i).shape.elements() != 1)
      return Status::error("input " + std::to_string(i) + ": expected a scalar, got shape " + c.input(i).shape.str());
  std::optional<Dim> count;
  if (isFloat(c.input(0).dtype)) {
    const Tensor *start = c.constant(0), *limit = c.constant(1), *delta = c.constant(2);
    if (start && limit && delta) {
      double n = std::ceil((limit->elementAsDouble(0) - start->elementAsDouble(0)) / delta->elementAsDouble(0));
      if (!(std::abs(n) < 0x1p40)) return Status::error("a range of " + std::to_string(n) + " elements");
      count = Dim(n < 0 ? 0 : static_cast<int64_t>(n));
    }
  } else {
    auto scalar = [&](size_t i) -> std::optional<Dim> {
      std::optional<std::vector<Dim>> dims = c.inputDims(i);
      return dims && dims->size() == 1 ? std::optional(dims->front()) : std::nullopt;
    };
    std::optional<Dim> start = scalar(0), limit = scalar(1), delta = scalar(2);
    if (delta && delta->isKnown() && delta->value() == 0) return Status::error("input 2 (delta) is 0");
    if (start && limit && delta && delta->isKnown()) {
      bool up = delta->value() > 0;
      Dim span = up ? *limit - *start : *start - *limit;
      if (!span.isNonNegative()) span = maxDim(span, Dim(0));
      count = ceilDiv(span, up ? *delta : Dim(0) - *delta);
      if (count->isKnown() && count->value() <= 64) {
        std::vector<Dim> contents;
        for (int64_t i = 0; i < count->value(); ++i) contents.push_back(*start + *delta * Dim(i));
        c.setOutputDims(0, std::move(contents));
      }
    }
  }
  c.setOutput(0, c.input(0).dtype, Shape{count ? *count : c.freshDim()});
  return Status::ok();
}

Status computeRange(ComputeContext& c) {
  auto scalar = [&](size_t i) { return widened(c, i, std::vector<Expr>(c.inputExtents(i).size(), loop::index(0))); };
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    Expr start = scalar(0);
    return start + loop::cast(start->type.dtype, out[0]) * scalar(2);
  });
}

Status inferEyeLike(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 2));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "dtype"));
  return inferLike(c, type.value_or(c.input(0).dtype));
}

Status computeEyeLike(ComputeContext& c) {
  int64_t k = c.node().intAttr("k", 0);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    DType type = c.output(0).dtype;
    return loop::select(eq(out[1] - out[0], loop::index(k)), loop::constant(type, 1), loop::constant(type, 0));
  });
}

}  // namespace locution::ops

// Types of the operators on sequences and optionals. A sequence's shape is what all its elements have in common: dims that may differ
// are symbols that say nothing, and an element taken out gets symbols of its own.
#include <algorithm>

#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

ValueType sequenceOf(DType dtype, Shape shape) {
  ValueType t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.kind = ValueKind::Sequence;
  return t;
}

/// What two elements have in common.
Shape common(InferContext& c, const Shape& a, const Shape& b) {
  if (!a.isRanked() || !b.isRanked() || a.rank() != b.rank()) return Shape::unranked();
  Shape out = a;
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) out[i] = c.freshDim();
  }
  return out;
}

/// One element's shape: its unknown dims are its own.
Shape anElement(InferContext& c, const Shape& shape) {
  Shape out = shape;
  for (int64_t i = 0; i < out.rank(); ++i) {
    if (!out[i].isKnown()) out[i] = c.freshDim();
  }
  return out;
}

Status needSequence(const InferContext& c, size_t i) {
  if (c.input(i).kind != ValueKind::Tensor) return Status::ok();
  return Status::error("input " + std::to_string(i) + ": expected a sequence, got " + c.input(i).str());
}

Status needTensorInput(const InferContext& c, size_t i) {
  if (c.input(i).kind != ValueKind::Sequence) return Status::ok();
  return Status::error("input " + std::to_string(i) + ": expected a tensor, got " + c.input(i).str());
}

}  // namespace

Status inferSequenceConstruct(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, std::max<size_t>(1, c.inputCount())));
  Shape shape = c.input(0).shape;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    LOCUTION_RETURN_IF_ERROR(needTensorInput(c, i));
    LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, i}));
    shape = common(c, shape, c.input(i).shape);
  }
  c.setOutput(0, sequenceOf(c.input(0).dtype, shape));
  return Status::ok();
}

Status inferSequenceEmpty(InferContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "dtype"));
  c.setOutput(0, sequenceOf(type.value_or(DType::F32), Shape::unranked()));
  return Status::ok();
}

Status inferSequenceInsert(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSequence(c, 0));
  LOCUTION_RETURN_IF_ERROR(needTensorInput(c, 1));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  c.setOutput(0, sequenceOf(c.input(0).dtype, common(c, c.input(0).shape, c.input(1).shape)));
  return Status::ok();
}

Status inferSequenceErase(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needSequence(c, 0));
  c.setOutput(0, sequenceOf(c.input(0).dtype, c.input(0).shape));
  return Status::ok();
}

Status inferSequenceAt(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSequence(c, 0));
  c.setOutput(0, c.input(0).dtype, anElement(c, c.input(0).shape));
  return Status::ok();
}

Status inferSequenceLength(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needSequence(c, 0));
  c.setOutput(0, DType::I64, Shape{});
  return Status::ok();
}

Status inferConcatFromSequence(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needSequence(c, 0));
  const Shape& element = c.input(0).shape;
  int64_t newAxis = c.node().intAttr("new_axis", 0);
  if (newAxis != 0 && newAxis != 1)
    return Status::error("attribute new_axis is " + std::to_string(newAxis) + ", expected 0 or 1");
  if (!c.node().hasAttr("axis")) return Status::error("attribute axis is missing");
  Shape out = Shape::unranked();
  if (element.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), element.rank() + newAxis));
    // Dims off the axis are equal in all elements, known or not; their symbols are new all the same.
    std::vector<Dim> dims = anElement(c, element).dims();
    if (newAxis) {
      dims.insert(dims.begin() + axis, c.freshDim());
    } else {
      dims[static_cast<size_t>(axis)] = c.freshDim();
    }
    out = Shape(dims);
  }
  c.setOutput(0, c.input(0).dtype, out);
  return Status::ok();
}

Status inferSplitToSequence(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needTensorInput(c, 0));
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, sequenceOf(c.input(0).dtype, Shape::unranked()));
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), x.rank()));
  Shape element = x;
  if (!c.hasInput(1)) {
    element[axis] = Dim(1);
    if (c.node().intAttr("keepdims", 1) == 0) {
      std::vector<Dim> dims = x.dims();
      dims.erase(dims.begin() + axis);
      element = Shape(dims);
    }
    c.setOutput(0, sequenceOf(c.input(0).dtype, element));
    return Status::ok();
  }
  std::optional<std::vector<int64_t>> split = knownInts(c, 1);
  element[axis] = c.freshDim();
  if (split && !split->empty()) {
    int64_t sum = 0;
    for (int64_t s : *split) {
      if (s < 0) return Status::error("split has the entry " + std::to_string(s));
      sum = saturatingAdd(sum, s);
    }
    bool scalar = c.input(1).shape.isRanked() && c.input(1).shape.rank() == 0;
    if (scalar && sum == 0) return Status::error("split is 0, expected at least 1");
    if (!scalar && x[axis].isKnown() && sum != x[axis].value()) {
      return Status::error("the entries of split sum to " + std::to_string(sum) + ", the axis has " + x[axis].str() +
                           " elements");
    }
    bool even = scalar ? x[axis].isKnown() && x[axis].value() % sum == 0
                       : std::all_of(split->begin(), split->end(), [&](int64_t s) { return s == split->front(); });
    if (even) element[axis] = Dim(split->front());
  }
  c.setOutput(0, sequenceOf(c.input(0).dtype, element));
  return Status::ok();
}

Status inferOptional(InferContext& c) {
  // An optional that holds something is typed as that something; only the empty one is of the kind.
  if (c.hasInput(0)) {
    c.setOutput(0, c.input(0));
    return Status::ok();
  }
  ValueType empty;
  empty.kind = ValueKind::Optional;
  empty.shape = Shape::unranked();
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "dtype"));
  if (type) empty.dtype = *type;
  c.setOutput(0, empty);
  return Status::ok();
}

Status inferOptionalGetElement(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  ValueType type = c.input(0);
  if (type.kind == ValueKind::Optional) {
    type.kind = ValueKind::Tensor;
    type.shape = anElement(c, type.shape);
  }
  c.setOutput(0, type);
  return Status::ok();
}

Status inferOptionalHasElement(InferContext& c) {
  c.setOutput(0, DType::Bool, Shape{});
  return Status::ok();
}

}  // namespace locution::ops

#include "ops/elementwise.h"

#include <algorithm>

namespace locution::ops {

Status inferBroadcast(InferContext& c, DType dtype) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.inputCount(); ++i)
    if (c.hasInput(i)) shapes.push_back(c.input(i).shape);
  LOCUTION_ASSIGN_OR_RETURN(Shape shape, broadcastShapes(shapes));
  c.setOutput(0, dtype, std::move(shape));
  return Status::ok();
}

Status inferLike(InferContext& c, DType dtype) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  c.setOutput(0, dtype, c.input(0).shape);
  return Status::ok();
}

Status inferFloatUnary(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  return inferLike(c, c.input(0).dtype);
}

void propagateDims(InferContext& c, const DimFunction& f) {
  std::vector<std::vector<Dim>> contents;
  size_t count = 1;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    if (!c.hasInput(i)) continue;
    std::optional<std::vector<Dim>> dims = c.inputDims(i);
    if (!dims || !c.input(i).shape.isRanked() || c.input(i).shape.rank() > 1) return;
    if (dims->size() != 1) {
      if (count != 1 && count != dims->size()) return;
      count = dims->size();
    }
    contents.push_back(std::move(*dims));
  }
  std::vector<Dim> out;
  for (size_t k = 0; k < count; ++k) {
    std::vector<Dim> args;
    for (const std::vector<Dim>& one : contents) args.push_back(one[one.size() == 1 ? 0 : k]);
    std::optional<Dim> value = f(args);
    if (!value) return;
    out.push_back(*value);
  }
  c.setOutputDims(0, std::move(out));
}

std::optional<bool> decideEqual(const Dim& a, const Dim& b) {
  if (a == b) return true;
  Dim difference = a - b;
  if (difference.isKnown()) return difference.value() == 0;
  // Extents are never negative.
  if (a.isKnown() && a.value() < 0 && b.isNonNegative()) return false;
  if (b.isKnown() && b.value() < 0 && a.isNonNegative()) return false;
  return std::nullopt;
}

}  // namespace locution::ops

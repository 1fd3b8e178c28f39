// Shape inference of operators that run on the host and give tensors: selection by data, strings, random numbers, determinants. An
// extent that depends on data becomes a fresh symbol.
#include <algorithm>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"
#include "support/strings.h"

namespace locution::ops {

namespace {

bool isString(DType t) { return t == DType::String; }
bool isI64(DType t) { return t == DType::I64; }

/// Product of the dims.
Dim elementsOf(const Shape& shape) {
  Dim n(1);
  for (const Dim& d : shape.dims()) n = n * d;
  return n;
}

/// The known single integer of input i.
std::optional<Dim> knownInt(const InferContext& c, size_t i) {
  if (!c.hasInput(i)) return std::nullopt;
  std::optional<std::vector<Dim>> dims = c.inputDims(i);
  if (!dims || dims->size() != 1) return std::nullopt;
  return dims->front();
}

}  // namespace

Status inferNonZero(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& x = c.input(0).shape;
  Dim count = c.freshDim();
  c.setOutput(0, DType::I64, Shape{x.isRanked() ? Dim(x.rank()) : c.freshDim(), count});
  return Status::ok();
}

Status inferUnique(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& x = c.input(0).shape;
  Dim count = c.freshDim(), length = c.freshDim();
  Shape y{count};
  if (c.node().hasAttr("axis")) {
    if (!x.isRanked()) {
      y = Shape::unranked();
    } else {
      LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), x.rank()));
      y = x;
      y[axis] = count;
      length = x[axis];
    }
  } else if (x.isRanked()) {
    length = elementsOf(x);
  }
  c.setOutput(0, c.input(0).dtype, y);
  c.setOutput(1, DType::I64, Shape{count});
  c.setOutput(2, DType::I64, Shape{length});
  c.setOutput(3, DType::I64, Shape{count});
  return Status::ok();
}

Status inferNonMaxSuppression(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 3));
  const Shape &boxes = c.input(0).shape, &scores = c.input(1).shape;
  if (boxes.isRanked()) LOCUTION_RETURN_IF_ERROR(needSameDim(boxes[2], Dim(4), "coordinates of a box and 4"));
  if (boxes.isRanked() && scores.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(boxes[0], scores[0], "batches of boxes and scores"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(boxes[1], scores[2], "numbers of boxes and scores"));
  }
  c.setOutput(0, DType::I64, Shape{c.freshDim(), Dim(3)});
  return Status::ok();
}

Status inferTopK(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isI64, "int64"));
  const Shape& x = c.input(0).shape;
  Shape out = Shape::unranked();
  if (x.isRanked()) {
    if (x.rank() == 0) return Status::error("the input is a scalar, expected at least one dim");
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), x.rank()));
    std::optional<Dim> k = knownInt(c, 1);
    if (k && k->isKnown() && (k->value() < 0 || (x[axis].isKnown() && k->value() > x[axis].value()))) {
      return Status::error("K is " + k->str() + ", the axis has " + x[axis].str() + " elements");
    }
    out = x;
    out[axis] = k ? *k : c.freshDim();
  }
  c.setOutput(0, c.input(0).dtype, out);
  c.setOutput(1, DType::I64, out);
  return Status::ok();
}

Status inferCompress(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isBool, "bool"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 1));
  const Shape& x = c.input(0).shape;
  if (!c.node().hasAttr("axis")) {
    c.setOutput(0, c.input(0).dtype, Shape{c.freshDim()});
    return Status::ok();
  }
  Shape out = x;
  if (x.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), x.rank()));
    out[axis] = c.freshDim();
  }
  c.setOutput(0, c.input(0).dtype, out);
  return Status::ok();
}

Status inferStringNormalizer(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isString, "string"));
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, DType::String, Shape::unranked());
    return Status::ok();
  }
  if (x.rank() != 1 && x.rank() != 2)
    return Status::error("the input has the shape " + x.str() + ", expected one dim, or two of which the first is 1");
  if (x.rank() == 2) LOCUTION_RETURN_IF_ERROR(needSameDim(x[0], Dim(1), "first dim of the input and 1"));
  Shape out = x;
  // Words may be dropped, and an empty result holds one empty string.
  out[x.rank() - 1] = c.freshDim();
  c.setOutput(0, DType::String, out);
  return Status::ok();
}

Status inferStringConcat(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isString, "string"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isString, "string"));
  LOCUTION_ASSIGN_OR_RETURN(Shape shape, broadcastShapes({c.input(0).shape, c.input(1).shape}));
  c.setOutput(0, DType::String, shape);
  return Status::ok();
}

Status inferStringSplit(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isString, "string"));
  const Shape& x = c.input(0).shape;
  Shape parts = x;
  if (x.isRanked()) {
    std::vector<Dim> dims = x.dims();
    dims.push_back(c.freshDim());
    parts = Shape(dims);
  }
  c.setOutput(0, DType::String, parts);
  c.setOutput(1, DType::I64, x);
  return Status::ok();
}

Status inferRegexFullMatch(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isString, "string"));
  c.setOutput(0, DType::Bool, c.input(0).shape);
  return Status::ok();
}

Status inferTfIdfVectorizer(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  std::vector<int64_t> indexes = c.node().intsAttr("ngram_indexes");
  if (indexes.empty()) return Status::error("attribute ngram_indexes is missing");
  int64_t largest = *std::max_element(indexes.begin(), indexes.end()),
          smallest = *std::min_element(indexes.begin(), indexes.end());
  if (smallest < 0 || largest >= (int64_t{1} << 40))
    return Status::error("attribute ngram_indexes has an entry out of range");
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, DType::F32, Shape::unranked());
  } else if (x.rank() <= 1) {
    c.setOutput(0, DType::F32, Shape{Dim(largest + 1)});
  } else if (x.rank() == 2) {
    c.setOutput(0, DType::F32, Shape{x[0], Dim(largest + 1)});
  } else {
    return Status::error("the input has the shape " + x.str() + ", expected one or two dims");
  }
  return Status::ok();
}

namespace {

/// The element type of a random operator: attribute dtype, else `fallback`.
Result<DType> randomType(const InferContext& c, DType fallback) {
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "dtype"));
  return type ? *type : fallback;
}

Status inferRandom(InferContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(DType type, randomType(c, DType::F32));
  std::vector<int64_t> dims = c.node().intsAttr("shape");
  for (int64_t d : dims) {
    if (d < 0) return Status::error("attribute shape has the entry " + std::to_string(d));
  }
  LOCUTION_RETURN_IF_ERROR(checkElements(dims, "the output"));
  c.setOutput(0, type, Shape::of(dims));
  return Status::ok();
}

Status inferRandomLike(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_ASSIGN_OR_RETURN(DType type, randomType(c, c.input(0).dtype));
  c.setOutput(0, type, c.input(0).shape);
  return Status::ok();
}

}  // namespace

Status inferRandomNormal(InferContext& c) { return inferRandom(c); }
Status inferRandomUniform(InferContext& c) { return inferRandom(c); }
Status inferRandomNormalLike(InferContext& c) { return inferRandomLike(c); }
Status inferRandomUniformLike(InferContext& c) { return inferRandomLike(c); }
Status inferBernoulli(InferContext& c) { return inferRandomLike(c); }

Status inferMultinomial(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 2));
  LOCUTION_ASSIGN_OR_RETURN(DType type, randomType(c, DType::I32));
  int64_t samples = c.node().intAttr("sample_size", 1);
  if (samples < 0 || samples > (int64_t{1} << 40))
    return Status::error("attribute sample_size is " + std::to_string(samples));
  const Shape& x = c.input(0).shape;
  c.setOutput(0, type, Shape{x.isRanked() ? x[0] : c.freshDim(), Dim(samples)});
  return Status::ok();
}

Status inferDet(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  if (x.rank() < 2) return Status::error("the input has the shape " + x.str() + ", expected at least two dims");
  LOCUTION_RETURN_IF_ERROR(needSameDim(x[x.rank() - 2], x[x.rank() - 1], "rows and columns of the matrices"));
  c.setOutput(0, c.input(0).dtype, Shape(std::vector<Dim>(x.dims().begin(), x.dims().end() - 2)));
  return Status::ok();
}

}  // namespace locution::ops

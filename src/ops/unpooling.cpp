// MaxUnpool (a scatter by index) and Col2Im (the sum of overlapping blocks, read back element by element).
#include "core/saturate.h"
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/raw.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// The shape that the indices of MaxUnpool count in: that of the pooled tensor's source, as the attributes give it.
Result<Shape> unpooledShape(const graph::Node& node, const Shape& x) {
  LOCUTION_ASSIGN_OR_RETURN(Window w, parseWindow(node, x.rank() - 2, std::nullopt));
  if (w.kernel.empty()) return Status::error("attribute kernel_shape is missing");
  std::vector<Dim> dims{x[0], x[1]};
  for (size_t i = 0; i < w.rank(); ++i) {
    Dim extent = (x[2 + static_cast<int64_t>(i)] - Dim(1)) * Dim(w.strides[i]) + Dim(w.kernel[i]) - Dim(w.padBegin[i]) -
                 Dim(w.padEnd[i]);
    if (extent.isKnown() && extent.value() < 0)
      return Status::error("the output would have " + extent.str() + " elements in spatial dim " + std::to_string(i));
    dims.push_back(extent);
  }
  return Shape(dims);
}

}  // namespace

Status inferMaxUnpool(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(
      c, 1, [](DType t) { return t == DType::I64; }, "int64"));
  const Shape& x = c.input(0).shape;
  if (!x.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  const Shape& indices = c.input(1).shape;
  if (indices.isRanked() && indices.isStatic() && x.isStatic() && !(indices == x)) {
    return Status::error("the indices have the shape " + indices.str() + ", the input has " + x.str());
  }
  LOCUTION_ASSIGN_OR_RETURN(Shape inferred, unpooledShape(c.node(), x));
  if (!c.hasInput(2)) {
    c.setOutput(0, c.input(0).dtype, inferred);
    return Status::ok();
  }
  std::optional<std::vector<Dim>> given = c.inputDims(2);
  std::vector<Dim> dims;
  if (given) {
    if (static_cast<int64_t>(given->size()) != x.rank()) {
      return Status::error("output_shape has " + std::to_string(given->size()) + " entries, expected " +
                           std::to_string(x.rank()));
    }
    dims = *given;
    for (int64_t i = 0; i < x.rank(); ++i) {
      const Dim& d = dims[static_cast<size_t>(i)];
      if (d.isKnown() && inferred[i].isKnown() && d.value() < inferred[i].value()) {
        return Status::error("output_shape has " + d.str() + " in dim " + std::to_string(i) +
                             ", the attributes want at least " + inferred[i].str());
      }
    }
  } else {
    for (int64_t i = 0; i < x.rank(); ++i) dims.push_back(c.freshDim());
  }
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeMaxUnpool(ComputeContext& c) {
  std::vector<int64_t> xDims = c.inputExtents(0), outDims = c.outputExtents();
  LOCUTION_ASSIGN_OR_RETURN(Shape inferred, unpooledShape(c.node(), c.input(0).shape));
  std::vector<loop::Axis> clear = makeAxes(outDims, "o"), read = makeAxes(xDims, "i");
  Expr zero = loop::constant(c.input(0).dtype, 0);
  loop::Stmt fill = nest(clear, store(c.outputBuffer(0), varsOf(clear), zero));
  c.checkIndices(1, 0, inferred.elements() - 1);
  loop::VarRef flat = loop::makeVar("flat");
  loop::Stmt scatter = store(c.outputBuffer(0), unflattenIndex(inferred.extents(), flat), c.at(0, varsOf(read)));
  c.setRaw(loop::block({fill, nest(read, loop::letStmt(flat, c.at(1, varsOf(read)), scatter))}));
  return Status::ok();
}

namespace {

/// Blocks along each spatial dim.
Result<std::vector<int64_t>> blockCounts(const Window& w, const std::vector<int64_t>& image) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < w.rank(); ++i) {
    LOCUTION_ASSIGN_OR_RETURN(Dim count, windowOutput(w, i, Dim(image[i])));
    counts.push_back(count.value());
  }
  return counts;
}

Status checkImage(const std::vector<int64_t>& image, const std::vector<int64_t>& block) {
  if (image.empty() || image.size() != block.size()) {
    return Status::error("image_shape has " + std::to_string(image.size()) + " entries, block_shape " +
                         std::to_string(block.size()));
  }
  for (size_t i = 0; i < image.size(); ++i) {
    if (image[i] < 0 || block[i] < 1 || image[i] > (int64_t{1} << 40) || block[i] > (int64_t{1} << 40)) {
      return Status::error("image_shape " + std::to_string(image[i]) + " or block_shape " + std::to_string(block[i]) +
                           " in dim " + std::to_string(i) + " is out of range");
    }
  }
  return Status::ok();
}

}  // namespace

Status inferCol2Im(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 3));
  const Shape& x = c.input(0).shape;
  std::optional<std::vector<int64_t>> image = knownInts(c, 1), block = knownInts(c, 2);
  Dim n = x.isRanked() ? x[0] : c.freshDim();
  if (!image || !block) {
    const Shape& list = c.input(1).shape;
    if (!list.isRanked() || list.rank() != 1 || !list[0].isKnown()) {
      c.setOutput(0, c.input(0).dtype, Shape::unranked());
      return Status::ok();
    }
    std::vector<Dim> dims{n};
    for (int64_t i = 0; i < std::min<int64_t>(64, list[0].value()) + 1; ++i) dims.push_back(c.freshDim());
    c.setOutput(0, c.input(0).dtype, Shape(dims));
    return Status::ok();
  }
  LOCUTION_RETURN_IF_ERROR(checkImage(*image, *block));
  LOCUTION_ASSIGN_OR_RETURN(Window w, parseWindow(c.node(), static_cast<int64_t>(image->size()), *block));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> counts, blockCounts(w, *image));
  int64_t blockSize = Shape::of(*block).elements(), blocks = Shape::of(counts).elements();
  Dim channels = c.freshDim();
  if (x.isRanked()) {
    if (x[1].isKnown() && x[1].value() % blockSize != 0) {
      return Status::error("the input has " + x[1].str() + " rows, not a multiple of the block's " +
                           std::to_string(blockSize) + " elements");
    }
    LOCUTION_RETURN_IF_ERROR(needSameDim(x[2], Dim(blocks), "blocks of the input and of the image"));
    channels = floorDiv(x[1], Dim(blockSize));
  }
  std::vector<Dim> dims{n, channels};
  dims.insert(dims.end(), image->begin(), image->end());
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeCol2Im(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> image, constantInts(c, 1, "image_shape"));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> block, constantInts(c, 2, "block_shape"));
  LOCUTION_RETURN_IF_ERROR(checkImage(image, block));
  LOCUTION_ASSIGN_OR_RETURN(Window w, parseWindow(c.node(), static_cast<int64_t>(image.size()), block));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> counts, blockCounts(w, image));
  DType type = c.output(0).dtype, accumulator = accumulatorType(type);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  stage.reduce = windowAxes(w);
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> vars = varsOf(stage.axes), k = varsOf(stage.reduce), blockIndex;
  Expr inside;
  for (size_t i = 0; i < w.rank(); ++i) {
    // The block in which kernel element k lies on this pixel, if there is one.
    Expr start = vars[2 + i] + w.padBegin[i] - k[i] * w.dilations[i];
    Expr number = floorDiv(start, loop::index(w.strides[i]));
    if (w.strides[i] > 1) inside = both(inside, eq(floorMod(start, loop::index(w.strides[i])), loop::index(0)));
    inside = both(inside, logicalAnd(le(loop::index(0), start), lt(number, loop::index(counts[i]))));
    blockIndex.push_back(number);
  }
  Expr row = vars[1] * Shape::of(block).elements() + flattenIndex(block, k);
  Expr element = castTo(accumulator, c.at(0, {vars[0], row, flattenIndex(counts, blockIndex)}));
  stage.body = select(inside, element, loop::constant(accumulator, 0));
  if (accumulator != type) {
    stage.acc = loop::makeVar("acc", {accumulator, 1});
    stage.epilogue = castTo(type, stage.acc);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

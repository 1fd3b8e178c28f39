// DepthToSpace, SpaceToDepth, Trilu, ReverseSequence: index maps over images, matrices and batches of sequences.
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<int64_t> blockSize(const graph::Node& node) {
  int64_t block = node.intAttr("blocksize", 0);
  if (block < 1 || block > (1 << 15))
    return Status::error("attribute 'blocksize': expected 1 or more, got " + std::to_string(block));
  return block;
}

Status inferBlocks(InferContext& c, bool toSpace) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 4));
  LOCUTION_ASSIGN_OR_RETURN(int64_t block, blockSize(c.node()));
  Shape out = c.input(0).shape;
  if (out.isRanked()) {
    SpatialLayout layout = SpatialLayout::of(c.node(), 4);
    auto divide = [&](int64_t d, int64_t by) {
      if (out[d].isKnown() && out[d].value() % by != 0)
        return Status::error("dimension " + std::to_string(d) + " of " + c.input(0).shape.str() +
                             " isn't a multiple of " + std::to_string(by));
      out[d] = floorDiv(out[d], Dim(by));
      return Status::ok();
    };
    auto multiply = [&](int64_t d, int64_t by) { out[d] = out[d] * Dim(by); };
    if (toSpace)
      LOCUTION_RETURN_IF_ERROR(divide(layout.channel(), block * block));
    else
      multiply(layout.channel(), block * block);
    for (int64_t i : {0, 1}) {
      if (toSpace)
        multiply(layout.spatial(i), block);
      else
        LOCUTION_RETURN_IF_ERROR(divide(layout.spatial(i), block));
    }
  }
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

size_t at(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

Status inferDepthToSpace(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needOneOf("mode", c.node().stringAttr("mode", "DCR"), {"DCR", "CRD"}));
  return inferBlocks(c, true);
}

Status computeDepthToSpace(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t block, blockSize(c.node()));
  bool depthFirst = c.node().stringAttr("mode", "DCR") == "DCR";
  SpatialLayout layout = SpatialLayout::of(c.node(), 4);
  int64_t channels = c.outputExtents()[at(layout.channel())];
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> in = out;
    Expr b = loop::index(block);
    const Expr& channel = out[at(layout.channel())];
    const Expr &h = out[at(layout.spatial(0))], &w = out[at(layout.spatial(1))];
    Expr offset = floorMod(h, b) * block + floorMod(w, b);
    in[at(layout.channel())] = depthFirst ? offset * channels + channel : channel * (block * block) + offset;
    in[at(layout.spatial(0))] = floorDiv(h, b);
    in[at(layout.spatial(1))] = floorDiv(w, b);
    return c.at(0, std::move(in));
  });
}

Status inferSpaceToDepth(InferContext& c) { return inferBlocks(c, false); }

Status computeSpaceToDepth(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t block, blockSize(c.node()));
  SpatialLayout layout = SpatialLayout::of(c.node(), 4);
  int64_t channels = c.inputExtents(0)[at(layout.channel())];
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> in = out;
    if (channels == 0) return c.at(0, std::move(in));
    const Expr& channel = out[at(layout.channel())];
    Expr offset = floorDiv(channel, loop::index(channels));
    in[at(layout.channel())] = floorMod(channel, loop::index(channels));
    in[at(layout.spatial(0))] = out[at(layout.spatial(0))] * block + floorDiv(offset, loop::index(block));
    in[at(layout.spatial(1))] = out[at(layout.spatial(1))] * block + floorMod(offset, loop::index(block));
    return c.at(0, std::move(in));
  });
}

Status inferTrilu(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (in.isRanked() && in.rank() < 2) return Status::error("expected 2 or more dimensions, got shape " + in.str());
  if (c.hasInput(1) && c.input(1).shape.isStatic() && c.input(1).shape.elements() != 1)
    return Status::error("input 1 (k): expected a scalar, got shape " + c.input(1).shape.str());
  c.setOutput(0, c.input(0).dtype, in);
  return Status::ok();
}

Status computeTrilu(ComputeContext& c) {
  bool upper = c.node().intAttr("upper", 1) != 0;
  Expr k = c.hasInput(1) ? intElement(c, 1, 0) : loop::index(0);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    const Expr &row = out[out.size() - 2], &column = out.back();
    // Extreme k must not wrap: it counts no more than the matrix has diagonals.
    std::vector<int64_t> extents = c.outputExtents();
    int64_t rows = extents[extents.size() - 2], columns = extents.back();
    Expr diagonal = minOf(maxOf(k, loop::index(-rows - 1)), loop::index(columns + 1));
    Expr keep = upper ? le(row + diagonal, column) : le(column, row + diagonal);
    return loop::select(keep, c.at(0, out), loop::constant(c.output(0).dtype, 0));
  });
}

Status inferReverseSequence(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 1));
  int64_t batch = c.node().intAttr("batch_axis", 1), time = c.node().intAttr("time_axis", 0);
  if (!((batch == 0 && time == 1) || (batch == 1 && time == 0)))
    return Status::error("attributes 'batch_axis' and 'time_axis': expected 0 and 1 in either order, got " +
                         std::to_string(batch) + " and " + std::to_string(time));
  const Shape& in = c.input(0).shape;
  if (in.isRanked() && in.rank() < 2) return Status::error("expected 2 or more dimensions, got shape " + in.str());
  if (in.isRanked() && c.input(1).shape.isRanked())
    LOCUTION_RETURN_IF_ERROR(
        needSameDim(in[batch], c.input(1).shape[0], "the batch and the number of sequence lengths"));
  c.setOutput(0, c.input(0).dtype, in);
  return Status::ok();
}

Status computeReverseSequence(ComputeContext& c) {
  size_t batch = at(c.node().intAttr("batch_axis", 1)), time = at(c.node().intAttr("time_axis", 0));
  c.checkIndices(1, 0, c.inputExtents(0)[time]);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> in = out;
    Expr length = loop::cast(DType::I64, c.at(1, {out[batch]}));
    in[time] =
        shared(length, [&](const Expr& n) { return loop::select(lt(out[time], n), n - 1 - out[time], out[time]); });
    return c.at(0, std::move(in));
  });
}

}  // namespace locution::ops

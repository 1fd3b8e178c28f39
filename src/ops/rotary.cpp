// RotaryEmbedding: each pair of features is turned by the angle of its position, whose cosine and sine come from tables. One stage.
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

Status inferRotaryEmbedding(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 3, isInteger, "int64"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 3, 2));
  int64_t tableRank = c.hasInput(3) ? 2 : 3;
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, tableRank));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, tableRank));
  const Shape& x = c.input(0).shape;
  c.setOutput(0, c.input(0).dtype, x);
  if (!x.isRanked()) return Status::ok();
  if (x.rank() != 3 && x.rank() != 4)
    return Status::error("the input has the shape " + x.str() + ", expected 3 or 4 dims");
  Dim size = x[x.rank() - 1];
  if (x.rank() == 3) {
    int64_t heads = c.node().intAttr("num_heads", 0);
    if (heads < 1) return Status::error("a 3-D input needs the attribute num_heads of at least 1");
    if (size.isKnown() && size.value() % heads != 0)
      return Status::error("the input has " + size.str() + " features, not divisible by num_heads " +
                           std::to_string(heads));
    size = floorDiv(size, Dim(heads));
  }
  int64_t rotated = c.node().intAttr("rotary_embedding_dim", 0);
  if (rotated < 0 || (size.isKnown() && rotated > size.value()))
    return Status::error("attribute rotary_embedding_dim is " + std::to_string(rotated) + ", the head size is " +
                         size.str());
  if (rotated == 0 && size.isKnown()) rotated = size.value();
  if (rotated % 2 != 0)
    return Status::error("the rotated head size is " + std::to_string(rotated) + ", expected an even number");
  for (size_t i = 1; i < 3; ++i) {
    const Shape& table = c.input(i).shape;
    if (table.isRanked() && rotated > 0)
      LOCUTION_RETURN_IF_ERROR(
          needSameDim(table[tableRank - 1], Dim(rotated / 2), "columns of the tables and half of the rotated size"));
  }
  const Shape &cosines = c.input(1).shape, &sines = c.input(2).shape;
  if (cosines.isRanked() && sines.isRanked()) {
    for (int64_t d = 0; d < tableRank; ++d) {
      LOCUTION_RETURN_IF_ERROR(
          needSameDim(cosines[d], sines[d], "dim " + std::to_string(d) + " of cos_cache and sin_cache"));
    }
  }
  Dim batch = x[0], length = x[x.rank() == 4 ? 2 : 1];
  const Shape& rows = c.input(c.hasInput(3) ? 3 : 1).shape;
  if (rows.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(needSameDim(rows[0], batch, "batches of the positions and the input"));
    LOCUTION_RETURN_IF_ERROR(needSameDim(rows[1], length, "lengths of the positions and the input"));
  }
  return Status::ok();
}

Status computeRotaryEmbedding(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0);
  bool flat = x.size() == 3, interleaved = c.node().intAttr("interleaved", 0) != 0;
  int64_t size = flat ? x[2] / c.node().intAttr("num_heads", 1) : x[3];
  int64_t rotated = c.node().intAttr("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  int64_t half = rotated / 2;
  DType dtype = c.output(0).dtype, type = accumulatorType(dtype);
  if (c.hasInput(3)) c.checkIndices(3, 0, c.inputExtents(1)[0] - 1);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(x);
  std::vector<Expr> at = varsOf(stage.axes);
  Expr position = flat ? at[1] : at[2], feature = at.back();
  if (flat && size != x[2] && size > 0) feature = floorMod(feature, loop::index(size));
  // The feature's partner, its place in the tables, and whether it is the first of its pair.
  Expr pair, first, offset;
  if (interleaved) {
    Expr odd = floorMod(feature, loop::index(2));
    pair = floorDiv(feature, loop::index(2));
    first = eq(odd, loop::index(0));
    offset = loop::index(1) - odd * 2;
  } else {
    first = lt(feature, loop::index(half));
    pair = select(first, feature, feature - half);
    offset = select(first, loop::index(half), loop::index(-half));
  }
  auto tableAt = [&](size_t i) {
    Expr value = c.hasInput(3) ? c.at(i, {loop::cast(DType::I64, c.at(3, {at[0], position})), pair})
                               : c.at(i, {at[0], position, pair});
    return castTo(type, value);
  };
  std::vector<Expr> partner = at;
  partner.back() = at.back() + offset;
  Expr own = castTo(type, c.at(0, at)), other = castTo(type, c.at(0, partner)) * tableAt(2);
  Expr turned = castTo(dtype, own * tableAt(1) + select(first, loop::constant(type, 0) - other, other));
  stage.body = rotated < size ? select(lt(feature, loop::index(rotated)), turned, c.at(0, at)) : turned;
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

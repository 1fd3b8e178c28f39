// Writes to computed places: ScatterElements and ScatterND (raw loops, in the order of the indices), TensorScatter (an index map).
#include <algorithm>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/index_checks.h"

namespace locution::ops {

using loop::Expr;
using loop::Stmt;

namespace {

Status needReduction(const graph::Node& node) {
  return needOneOf("reduction", node.stringAttr("reduction", "none"), {"none", "add", "mul", "max", "min"});
}

/// Serial loops over `axes` around `body`.
Stmt nest(const std::vector<loop::Axis>& axes, Stmt body) {
  for (size_t i = axes.size(); i-- > 0;)
    body = loop::forLoop(axes[i].var, loop::index(0), loop::index(axes[i].extent), loop::LoopKind::Serial,
                         std::move(body));
  return body;
}

Stmt copyData(ComputeContext& c) {
  std::vector<loop::Axis> axes = makeAxes(c.outputExtents());
  return nest(axes, loop::store(c.outputBuffer(0), varsOf(axes), c.at(0, varsOf(axes))));
}

/// out[at] = update, or what the reduction makes of the two.
Stmt combine(ComputeContext& c, const std::vector<Expr>& at, const Expr& update) {
  std::string reduction = c.node().stringAttr("reduction", "none");
  DType type = c.output(0).dtype, wide = computeType(type);
  Expr value = update;
  if (reduction != "none") {
    loop::BinaryOp op = reduction == "add"   ? loop::BinaryOp::Add
                        : reduction == "mul" ? loop::BinaryOp::Mul
                        : reduction == "max" ? loop::BinaryOp::Max
                                             : loop::BinaryOp::Min;
    // On bool, add and max are or, mul and min are and.
    if (type == DType::Bool) op = reduction == "add" || reduction == "max" ? loop::BinaryOp::Or : loop::BinaryOp::And;
    Expr old = loop::load(c.outputBuffer(0), at);
    value = loop::cast(type, loop::binary(op, loop::cast(wide, old), loop::cast(wide, update)));
  }
  return loop::store(c.outputBuffer(0), at, value);
}

}  // namespace

Status inferScatterElements(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needReduction(c.node()));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape, &updates = c.input(2).shape;
  if (data.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), data.rank()));
    LOCUTION_RETURN_IF_ERROR(needRank(c, 1, data.rank()));
    LOCUTION_RETURN_IF_ERROR(needRank(c, 2, data.rank()));
    for (int64_t i = 0; indices.isRanked() && i < data.rank(); ++i) {
      if (i != axis && indices[i].isKnown() && data[i].isKnown() && indices[i].value() > data[i].value())
        return Status::error("the indices " + indices.str() + " exceed the data " + data.str() + " in dimension " +
                             std::to_string(i));
      if (updates.isRanked())
        LOCUTION_RETURN_IF_ERROR(
            needSameDim(indices[i], updates[i], "dimension " + std::to_string(i) + " of the indices and the updates"));
    }
  }
  c.setOutput(0, c.input(0).dtype, data);
  return Status::ok();
}

Status computeScatterElements(ComputeContext& c) {
  std::vector<int64_t> data = c.inputExtents(0);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                            normaliseAxis(c.node().intAttr("axis", 0), static_cast<int64_t>(data.size())));
  auto a = static_cast<size_t>(axis);
  checkIndexInput(c, 1, data[a]);
  std::vector<loop::Axis> axes = makeAxes(c.inputExtents(1), "u");
  std::vector<Expr> from = varsOf(axes), to = from;
  loop::VarRef place = loop::makeVar("place");
  to[a] = place;
  Stmt update = loop::letStmt(place, dataIndex(c, 1, from, data[a]), combine(c, to, c.at(2, from)));
  c.setRaw(loop::block({copyData(c), nest(axes, update)}));
  return Status::ok();
}

Status inferScatterND(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needReduction(c.node()));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape, &updates = c.input(2).shape;
  if (data.isRanked() && indices.isRanked() && (indices.rank() == 0 || indices[indices.rank() - 1].isKnown())) {
    int64_t q = indices.rank(), r = data.rank();
    if (q < 1 || r < 1)
      return Status::error("data and indices need a dimension at least, got " + data.str() + " and " + indices.str());
    int64_t depth = indices[q - 1].value();
    if (depth < 1 || depth > r)
      return Status::error("the indices' last extent: expected 1 to " + std::to_string(r) + ", got " +
                           std::to_string(depth));
    LOCUTION_RETURN_IF_ERROR(needRank(c, 2, q - 1 + r - depth));
    for (int64_t i = 0; updates.isRanked() && i < updates.rank(); ++i)
      LOCUTION_RETURN_IF_ERROR(needSameDim(updates[i], i < q - 1 ? indices[i] : data[i - (q - 1) + depth],
                                           "dimension " + std::to_string(i) + " of the updates"));
  }
  c.setOutput(0, c.input(0).dtype, data);
  return Status::ok();
}

Status computeScatterND(ComputeContext& c) {
  std::vector<int64_t> data = c.inputExtents(0), indices = c.inputExtents(1);
  auto depth = static_cast<size_t>(indices.back());
  std::vector<int64_t> indexed(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(depth));
  LOCUTION_RETURN_IF_ERROR(checkIndexTuples(c, 1, indexed));
  std::vector<loop::Axis> axes = makeAxes(c.inputExtents(2), "u");
  std::vector<Expr> from = varsOf(axes);
  auto tupleEnd = from.begin() + (static_cast<std::ptrdiff_t>(indices.size()) - 1);
  std::vector<Expr> places = tupleIndices(c, 1, {from.begin(), tupleEnd}, indexed), to;
  std::vector<loop::VarRef> vars;
  for (size_t k = 0; k < places.size(); ++k) {
    vars.push_back(loop::makeVar("place" + std::to_string(k)));
    to.emplace_back(vars.back());
  }
  to.insert(to.end(), tupleEnd, from.end());
  Stmt update = combine(c, to, c.at(2, from));
  // The places hold for a whole slice: they are read outside its loops.
  auto outer = axes.begin() + (static_cast<std::ptrdiff_t>(indices.size()) - 1);
  update = nest({outer, axes.end()}, update);
  for (size_t k = places.size(); k-- > 0;) update = loop::letStmt(vars[k], places[k], update);
  c.setRaw(loop::block({copyData(c), nest({axes.begin(), outer}, update)}));
  return Status::ok();
}

Status inferTensorScatter(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 2, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, 1));
  LOCUTION_RETURN_IF_ERROR(needOneOf("mode", c.node().stringAttr("mode", "linear"), {"linear", "circular"}));
  const Shape &cache = c.input(0).shape, &update = c.input(1).shape;
  if (cache.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -2), cache.rank()));
    if (axis == 0) return Status::error("attribute 'axis' can't be the batch dimension");
    LOCUTION_RETURN_IF_ERROR(needRank(c, 1, cache.rank()));
    for (int64_t i = 0; update.isRanked() && i < cache.rank(); ++i) {
      if (i != axis)
        LOCUTION_RETURN_IF_ERROR(
            needSameDim(cache[i], update[i], "dimension " + std::to_string(i) + " of cache and update"));
      else if (cache[i].isKnown() && update[i].isKnown() && update[i].value() > cache[i].value())
        return Status::error("the update " + update.str() + " is longer than the cache " + cache.str());
    }
    if (c.hasInput(2) && c.input(2).shape.isRanked())
      LOCUTION_RETURN_IF_ERROR(needSameDim(cache[0], c.input(2).shape[0], "the batch and the number of write indices"));
  }
  c.setOutput(0, c.input(0).dtype, cache);
  return Status::ok();
}

Status computeTensorScatter(ComputeContext& c) {
  std::vector<int64_t> cache = c.inputExtents(0), update = c.inputExtents(1);
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                            normaliseAxis(c.node().intAttr("axis", -2), static_cast<int64_t>(cache.size())));
  auto a = static_cast<size_t>(axis);
  bool circular = c.node().stringAttr("mode", "linear") == "circular";
  if (c.hasInput(2) && !circular) c.checkIndices(2, 0, cache[a] - update[a]);
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    Expr offset = out[a];
    if (c.hasInput(2)) offset = offset - loop::cast(DType::I64, c.at(2, {out[0]}));
    if (circular) offset = floorMod(offset, loop::index(cache[a]));
    return shared(offset, [&](const Expr& o) {
      std::vector<Expr> at = out;
      at[a] = o;
      Expr inside = logicalAnd(le(loop::index(0), o), lt(o, loop::index(update[a])));
      return loop::select(inside, c.at(1, at), c.at(0, out));
    });
  });
}

}  // namespace locution::ops

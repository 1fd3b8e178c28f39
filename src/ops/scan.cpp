// CumSum and CumProd: a scan stage over the axis put last, then an index map back (none when the axis is last already).
#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<int64_t> scanAxis(const ComputeContext& c) {
  int64_t rank = c.input(0).shape.rank();
  if (rank == 1 && !c.constant(1)) return 0;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, constantInts(c, 1, "axis"));
  if (axes.size() != 1) return Status::error("input 1 (axis): expected one number, got " + std::to_string(axes.size()));
  return normaliseAxis(axes[0], rank);
}

Status computeScan(ComputeContext& c, loop::Combiner combiner) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, scanAxis(c));
  std::vector<int64_t> extents = c.inputExtents(0);
  DType type = computeType(c.output(0).dtype);
  bool direct = axis + 1 == static_cast<int64_t>(extents.size()) && type == c.output(0).dtype;

  // Dim `axis` goes last.
  auto moved = [&](auto list) {
    auto value = list[static_cast<size_t>(axis)];
    list.erase(list.begin() + axis);
    list.push_back(value);
    return list;
  };
  std::vector<loop::Axis> axes = makeAxes(extents);
  loop::Stage stage;
  stage.axes = moved(axes);
  stage.out = direct ? c.outputBuffer(0) : c.temporary("scan", type, moved(extents));
  stage.combiner = combiner;
  stage.body = widened(c, 0, varsOf(axes));
  stage.scan = true;
  stage.scanExclusive = c.node().intAttr("exclusive", 0) != 0;
  stage.scanReverse = c.node().intAttr("reverse", 0) != 0;
  loop::BufferRef scanned = stage.out;
  c.addStage(std::move(stage));
  if (direct) return Status::ok();
  return injective(c, 0, [&](const std::vector<Expr>& out) { return loop::load(scanned, moved(out)); });
}

}  // namespace

Status inferScan(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape& in = c.input(0).shape;
  if (in.isRanked() && in.rank() == 0) return Status::error("input 0: a scalar has no axis");
  if (std::optional<std::vector<int64_t>> axis = knownInts(c, 1); axis && axis->size() == 1 && in.isRanked())
    LOCUTION_RETURN_IF_ERROR(normaliseAxis(axis->front(), in.rank()).status());
  c.setOutput(0, c.input(0).dtype, in);
  return Status::ok();
}

Status computeCumSum(ComputeContext& c) { return computeScan(c, loop::Combiner::Sum); }
Status computeCumProd(ComputeContext& c) { return computeScan(c, loop::Combiner::Product); }

}  // namespace locution::ops

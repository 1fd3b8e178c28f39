// MatMul and Gemm: one stage each, a sum over k of products, batch dims broadcast by index 0.
#include "ops/contraction.h"

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

Result<Shape> matMulShape(const Shape& a, const Shape& b) {
  if (!a.isRanked() || !b.isRanked()) return Shape::unranked();
  if (a.rank() == 0 || b.rank() == 0) return Status::error("MatMul of a scalar: shapes " + a.str() + " and " + b.str());
  const Dim& ka = a[a.rank() - 1];
  const Dim& kb = b[b.rank() == 1 ? 0 : b.rank() - 2];
  if (ka.isKnown() && kb.isKnown() && ka != kb) {
    return Status::error("shapes " + a.str() + " and " + b.str() + " don't fit: the inner dims are " + ka.str() +
                         " and " + kb.str());
  }
  std::vector<Dim> batchA, batchB;
  for (int64_t i = 0; i + 2 < a.rank(); ++i) batchA.push_back(a[i]);
  for (int64_t i = 0; i + 2 < b.rank(); ++i) batchB.push_back(b[i]);
  LOCUTION_ASSIGN_OR_RETURN(Shape batch, broadcastShapes({Shape(batchA), Shape(batchB)}));
  std::vector<Dim> dims = batch.dims();
  if (a.rank() > 1) dims.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) dims.push_back(b[b.rank() - 1]);
  return Shape(dims);
}

MatMulIndices matMulIndices(const std::vector<int64_t>& a, const std::vector<int64_t>& b, const std::vector<Expr>& out,
                            const Expr& k) {
  size_t columns = b.size() > 1 ? 1 : 0, rows = a.size() > 1 ? 1 : 0;
  std::vector<Expr> batch(out.begin(), out.end() - static_cast<int64_t>(rows + columns));
  MatMulIndices r;
  if (rows) {
    r.row = out[batch.size()];
    r.a = broadcastIndices(std::vector<int64_t>(a.begin(), a.end() - 2), batch);
    r.a.push_back(r.row);
  }
  r.a.push_back(k);
  if (columns) {
    r.column = out.back();
    r.b = broadcastIndices(std::vector<int64_t>(b.begin(), b.end() - 2), batch);
  }
  r.b.push_back(k);
  if (columns) r.b.push_back(r.column);
  return r;
}

loop::Axis matMulReduction(const std::vector<int64_t>& a) { return {loop::makeVar("k"), a.back()}; }

Status inferMatMul(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_ASSIGN_OR_RETURN(Shape shape, matMulShape(c.input(0).shape, c.input(1).shape));
  c.setOutput(0, c.input(0).dtype, shape);
  return Status::ok();
}

Status computeMatMul(ComputeContext& c) {
  std::vector<int64_t> a = c.inputExtents(0), b = c.inputExtents(1);
  DType type = c.output(0).dtype, accumulator = accumulatorType(type);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  stage.reduce = {matMulReduction(a)};
  stage.combiner = loop::Combiner::Sum;
  MatMulIndices at = matMulIndices(a, b, varsOf(stage.axes), stage.reduce[0].var);
  stage.body = castTo(accumulator, c.at(0, at.a)) * castTo(accumulator, c.at(1, at.b));
  if (accumulator != type) {
    stage.acc = loop::makeVar("acc", {accumulator, 1});
    stage.epilogue = castTo(type, stage.acc);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

Status inferGemm(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 2));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 2));
  const Shape &a = c.input(0).shape, &b = c.input(1).shape;
  int64_t transA = c.node().intAttr("transA", 0) != 0, transB = c.node().intAttr("transB", 0) != 0;
  if (a.isRanked() && b.isRanked()) {
    const Dim &ka = a[1 - transA], &kb = b[transB];
    if (ka.isKnown() && kb.isKnown() && ka != kb) {
      return Status::error("shapes " + a.str() + " (transA " + std::to_string(transA) + ") and " + b.str() +
                           " (transB " + std::to_string(transB) + ") don't fit: the inner dims are " + ka.str() +
                           " and " + kb.str());
    }
  }
  Dim m = a.isRanked() ? a[transA] : c.freshDim(), n = b.isRanked() ? b[1 - transB] : c.freshDim();
  if (c.hasInput(2)) LOCUTION_RETURN_IF_ERROR(needBroadcastTo(c.input(2).shape, Shape{m, n}, "C"));
  c.setOutput(0, c.input(0).dtype, Shape{m, n});
  return Status::ok();
}

namespace {

/// value * factor, by way of float64 where `value` is an integer.
Expr scaled(const Expr& value, double factor) {
  if (factor == 1) return value;
  DType type = value->type.dtype;
  if (isFloat(type)) return value * loop::constant(type, factor);
  if (factor == static_cast<double>(static_cast<int64_t>(factor)))
    return value * loop::intImm(type, static_cast<int64_t>(factor));
  return loop::cast(type, loop::cast(DType::F64, value) * loop::constant(DType::F64, factor));
}

}  // namespace

Status computeGemm(ComputeContext& c) {
  std::vector<int64_t> a = c.inputExtents(0);
  bool transA = c.node().intAttr("transA", 0) != 0, transB = c.node().intAttr("transB", 0) != 0;
  double alpha = c.node().floatAttr("alpha", 1), beta = c.node().floatAttr("beta", 1);
  DType type = c.output(0).dtype, accumulator = accumulatorType(type);
  if (!isFloat(type) && !(std::abs(alpha) < 0x1p62))
    return Status::error("attribute alpha is out of range for integers");
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  stage.reduce = {{loop::makeVar("k"), a[transA ? 0 : 1]}};
  stage.combiner = loop::Combiner::Sum;
  Expr m = stage.axes[0].var, n = stage.axes[1].var, k = stage.reduce[0].var;
  Expr x = transA ? c.at(0, {k, m}) : c.at(0, {m, k}), y = transB ? c.at(1, {n, k}) : c.at(1, {k, n});
  stage.body = castTo(accumulator, x) * castTo(accumulator, y);
  bool biased = c.hasInput(2) && beta != 0;
  if (alpha != 1 || biased || accumulator != type) {
    stage.acc = loop::makeVar("acc", {accumulator, 1});
    Expr sum = scaled(stage.acc, alpha);
    if (biased) sum = sum + scaled(castTo(accumulator, c.at(2, broadcastIndices(c.inputExtents(2), {m, n}))), beta);
    stage.epilogue = castTo(type, sum);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

}  // namespace locution::ops

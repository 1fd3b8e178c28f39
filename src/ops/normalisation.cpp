// Softmax and LogSoftmax, and normalisations over the last dims or chosen axes: LayerNormalization, RMSNormalization,
// MeanVarianceNormalization, LpNormalization. All compute in float32 at least.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/moments.h"
#include "ops/reducer.h"

namespace locution::ops {

using loop::Combiner;
using loop::Expr;

Status inferSoftmax(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferFloatUnary(c));
  if (c.input(0).shape.isRanked())
    LOCUTION_RETURN_IF_ERROR(normaliseAxis(c.node().intAttr("axis", -1), c.input(0).shape.rank()).status());
  return Status::ok();
}

namespace {

Status softmax(ComputeContext& c, bool isLog) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), c.input(0).shape.rank()));
  Reducer r(c, c.inputExtents(0), {axis});
  loop::BufferRef largest =
      r.temporary("max", Combiner::Max, [&](const std::vector<Expr>& full) { return widened(c, 0, full); });
  auto shifted = [&](const std::vector<Expr>& full) { return widened(c, 0, full) - r.at(largest, full); };
  // Nothing is over the largest; saying so spares exp half of its range.
  auto exponential = [&](const std::vector<Expr>& full) {
    Expr x = shifted(full);
    return loop::call("exp", {loop::minOf(x, loop::constant(x->type.dtype, 0))});
  };
  // The division is done once a row.
  loop::BufferRef total = r.temporary(
      isLog ? "logsum" : "scale", Combiner::Sum, exponential, [&](const Expr& sum, const std::vector<Expr>&) {
        return isLog ? loop::call("log", {sum}) : loop::constant(sum->type.dtype, 1) / sum;
      });
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    return isLog ? shifted(at) - r.at(total, at) : exponential(at) * r.at(total, at);
  });
}

}  // namespace

Status computeSoftmax(ComputeContext& c) { return softmax(c, false); }
Status computeLogSoftmax(ComputeContext& c) { return softmax(c, true); }

namespace {

std::vector<int64_t> axesFrom(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

/// Input i, broadcast to input 0, in `type`; null when absent.
Expr parameter(ComputeContext& c, size_t i, const std::vector<Expr>& at, DType type) {
  if (!c.hasInput(i)) return nullptr;
  return loop::cast(type, widened(c, i, broadcastIndices(c.inputExtents(i), at)));
}

}  // namespace

Status inferLayerNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  for (size_t i : {0, 1, 2}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> stash, dtypeAttr(c.node(), "stash_type"));
  const Shape& in = c.input(0).shape;
  Shape row = Shape::unranked();
  if (in.isRanked()) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), in.rank()));
    std::vector<Dim> dims = in.dims();
    for (int64_t i = axis; i < in.rank(); ++i) dims[static_cast<size_t>(i)] = Dim(1);
    row = Shape(std::move(dims));
    LOCUTION_RETURN_IF_ERROR(needBroadcastTo(c.input(1).shape, in, "the scale"));
    if (c.hasInput(2)) LOCUTION_RETURN_IF_ERROR(needBroadcastTo(c.input(2).shape, in, "the bias"));
  }
  c.setOutput(0, c.input(0).dtype, in);
  c.setOutput(1, stash.value_or(DType::F32), row);
  c.setOutput(2, stash.value_or(DType::F32), row);
  return Status::ok();
}

Status computeLayerNormalization(ComputeContext& c) {
  std::vector<int64_t> extents = c.inputExtents(0);
  auto rank = static_cast<int64_t>(extents.size());
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), rank));
  DType type = computeType(c.input(0).dtype);
  Reducer r(c, extents, axesFrom(axis, rank));
  auto x = [&](const std::vector<Expr>& full) { return widened(c, 0, full); };
  Moments m = moments(
      r, x, [&](const Expr& variance) { return inverseDeviation(variance, c.node().floatAttr("epsilon", 1e-5)); });
  if (c.wantsOutput(0))
    LOCUTION_RETURN_IF_ERROR(injective(c, 0, [&](const std::vector<Expr>& at) {
      Expr y = (x(at) - r.at(m.mean, at)) * r.at(m.scale, at) * parameter(c, 1, at, type);
      Expr bias = parameter(c, 2, at, type);
      return bias ? y + bias : y;
    }));
  if (c.wantsOutput(1)) r.copyOut(1, true, m.mean);
  if (c.wantsOutput(2)) r.copyOut(2, true, m.scale);
  return Status::ok();
}

Status inferRMSNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  for (size_t i : {0, 1}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(dtypeAttr(c.node(), "stash_type").status());
  const Shape& in = c.input(0).shape;
  if (in.isRanked()) {
    LOCUTION_RETURN_IF_ERROR(normaliseAxis(c.node().intAttr("axis", -1), in.rank()).status());
    LOCUTION_RETURN_IF_ERROR(needBroadcastTo(c.input(1).shape, in, "the scale"));
  }
  c.setOutput(0, c.input(1).dtype, in);
  return Status::ok();
}

Status computeRMSNormalization(ComputeContext& c) {
  std::vector<int64_t> extents = c.inputExtents(0);
  auto rank = static_cast<int64_t>(extents.size());
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), rank));
  DType type = computeType(c.input(0).dtype);
  Reducer r(c, extents, axesFrom(axis, rank));
  auto x = [&](const std::vector<Expr>& full) { return widened(c, 0, full); };
  loop::BufferRef scale = r.temporary(
      "scale", Combiner::Sum,
      [&](const std::vector<Expr>& full) { return shared(x(full), [](const Expr& v) { return v * v; }); },
      [&](const Expr& sum, const std::vector<Expr>&) {
        return inverseDeviation(sum / loop::constant(type, static_cast<double>(r.count())),
                                c.node().floatAttr("epsilon", 1e-5));
      });
  return injective(c, 0,
                   [&](const std::vector<Expr>& at) { return x(at) * r.at(scale, at) * parameter(c, 1, at, type); });
}

namespace {

Result<std::vector<int64_t>> varianceAxes(const graph::Node& node, int64_t rank) {
  return normaliseAxes(node.hasAttr("axes") ? node.intsAttr("axes") : std::vector<int64_t>{0, 2, 3}, rank);
}

}  // namespace

Status inferMeanVarianceNormalization(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferFloatUnary(c));
  if (c.input(0).shape.isRanked()) LOCUTION_RETURN_IF_ERROR(varianceAxes(c.node(), c.input(0).shape.rank()).status());
  return Status::ok();
}

Status computeMeanVarianceNormalization(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, varianceAxes(c.node(), c.input(0).shape.rank()));
  Reducer r(c, c.inputExtents(0), axes);
  auto x = [&](const std::vector<Expr>& full) { return widened(c, 0, full); };
  Moments m = moments(r, x, [](const Expr& variance) {
    DType type = variance->type.dtype;
    return loop::constant(type, 1) / (loop::call("sqrt", {variance}) + loop::constant(type, 1e-9));
  });
  return injective(c, 0, [&](const std::vector<Expr>& at) { return (x(at) - r.at(m.mean, at)) * r.at(m.scale, at); });
}

Status inferLpNormalization(InferContext& c) {
  int64_t p = c.node().intAttr("p", 2);
  if (p != 1 && p != 2) return Status::error("attribute 'p': expected 1 or 2, got " + std::to_string(p));
  return inferSoftmax(c);
}

Status computeLpNormalization(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", -1), c.input(0).shape.rank()));
  bool isSquare = c.node().intAttr("p", 2) == 2;
  Reducer r(c, c.inputExtents(0), {axis});
  auto term = [&](const std::vector<Expr>& full) {
    return shared(widened(c, 0, full), [&](const Expr& x) { return isSquare ? x * x : loop::call("abs", {x}); });
  };
  loop::BufferRef norm = r.temporary("norm", Combiner::Sum, term, [&](const Expr& sum, const std::vector<Expr>&) {
    return isSquare ? loop::call("sqrt", {sum}) : sum;
  });
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    return shared(r.at(norm, at), [&](const Expr& n) {
      Expr zero = loop::constant(n->type.dtype, 0);
      return loop::select(eq(n, zero), zero, widened(c, 0, at) / n);
    });
  });
}

}  // namespace locution::ops

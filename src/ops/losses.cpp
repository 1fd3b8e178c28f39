// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (with its log-probabilities).
#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Scores [N, C, d...], labels [N, d...], weights [C]; sets output 0.
Status inferLoss(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "int32 or int64"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, 1));
  std::string reduction = c.node().stringAttr("reduction", "mean");
  LOCUTION_RETURN_IF_ERROR(needOneOf("reduction", reduction, {"none", "sum", "mean"}));
  const Shape &x = c.input(0).shape, &labels = c.input(1).shape;
  if (x.isRanked()) {
    if (x.rank() < 2) return Status::error("the scores have the shape " + x.str() + ", expected at least two dims");
    if (labels.isRanked()) {
      if (labels.rank() != x.rank() - 1)
        return Status::error("the scores have the shape " + x.str() + ", the labels " + labels.str());
      for (int64_t i = 0; i < labels.rank(); ++i) {
        LOCUTION_RETURN_IF_ERROR(needSameDim(labels[i], x[i == 0 ? 0 : i + 1],
                                             "dim " + std::to_string(i) + " of the labels and the scores"));
      }
    }
    if (c.hasInput(2) && c.input(2).shape.isRanked())
      LOCUTION_RETURN_IF_ERROR(needSameDim(c.input(2).shape[0], x[1], "weights and classes"));
  }
  c.setOutput(0, c.input(0).dtype, reduction == "none" ? labels : Shape{});
  return Status::ok();
}

/// Adds the loss over log-probabilities `logProbability(indices into the scores)`, of accumulator type.
Status addLoss(ComputeContext& c, const std::function<Expr(const std::vector<Expr>&)>& logProbability) {
  const graph::Node& node = c.node();
  DType dtype = c.input(0).dtype, type = accumulatorType(dtype);
  std::vector<int64_t> labels = c.inputExtents(1);
  int64_t classes = c.inputExtents(0)[1];
  bool ignores = node.hasAttr("ignore_index");
  int64_t ignored = node.intAttr("ignore_index", 0);
  std::string reduction = node.stringAttr("reduction", "mean");
  if (classes == 0 && Shape::of(labels).elements() != 0) return Status::error("there are labels, but no classes");
  if (!ignores) c.checkIndices(1, 0, classes - 1);
  Expr zero = loop::constant(type, 0), one = loop::constant(type, 1);
  auto labelAt = [&](const std::vector<Expr>& at) { return loop::cast(DType::I64, c.at(1, at)); };
  // Labels that may be anything when ignored are kept in range for the loads.
  auto classAt = [&](const Expr& label) {
    return ignores ? minOf(maxOf(label, loop::index(0)), loop::index(classes - 1)) : label;
  };
  auto guarded = [&](const Expr& label, const Expr& value) {
    return ignores ? select(eq(label, loop::index(ignored)), zero, value) : value;
  };
  auto weightOf = [&](const Expr& cls) { return c.hasInput(2) ? castTo(type, c.at(2, {cls})) : one; };
  auto lossAt = [&](const std::vector<Expr>& at) {
    Expr label = labelAt(at), cls = classAt(label);
    std::vector<Expr> indices = at;
    indices.insert(indices.begin() + 1, cls);
    Expr loss = zero - logProbability(indices);
    return guarded(label, c.hasInput(2) ? loss * weightOf(cls) : loss);
  };
  loop::Stage stage;
  if (reduction == "none") {
    stage.out = c.outputBuffer(0);
    stage.axes = makeAxes(labels);
    stage.body = castTo(dtype, lossAt(varsOf(stage.axes)));
    c.addStage(std::move(stage));
    return Status::ok();
  }
  auto total = [&](loop::BufferRef out, const std::function<Expr(const std::vector<Expr>&)>& term,
                   const std::function<Expr(const Expr&)>& finish) {
    loop::Stage s;
    s.out = std::move(out);
    s.reduce = makeAxes(labels, "r");
    s.combiner = loop::Combiner::Sum;
    s.body = term(varsOf(s.reduce));
    s.acc = loop::makeVar("acc", {type, 1});
    s.epilogue = finish(s.acc);
    c.addStage(std::move(s));
  };
  if (reduction == "sum") {
    total(c.outputBuffer(0), lossAt, [&](const Expr& sum) { return castTo(dtype, sum); });
  } else if (!c.hasInput(2) && !ignores) {
    auto count = loop::constant(type, static_cast<double>(Shape::of(labels).elements()));
    total(c.outputBuffer(0), lossAt, [&](const Expr& sum) { return castTo(dtype, sum / count); });
  } else {
    loop::BufferRef weights = c.temporary("weights", type, {});
    total(
        weights,
        [&](const std::vector<Expr>& at) {
          Expr label = labelAt(at);
          return guarded(label, weightOf(classAt(label)));
        },
        [](const Expr& sum) { return sum; });
    total(c.outputBuffer(0), lossAt, [&](const Expr& sum) { return castTo(dtype, sum / load(weights, {})); });
  }
  return Status::ok();
}

}  // namespace

Status inferNegativeLogLikelihoodLoss(InferContext& c) { return inferLoss(c); }

Status computeNegativeLogLikelihoodLoss(ComputeContext& c) {
  DType type = accumulatorType(c.input(0).dtype);
  return addLoss(c, [&](const std::vector<Expr>& at) { return castTo(type, c.at(0, at)); });
}

Status inferSoftmaxCrossEntropyLoss(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferLoss(c));
  c.setOutput(1, c.input(0).dtype, c.input(0).shape);
  return Status::ok();
}

Status computeSoftmaxCrossEntropyLoss(ComputeContext& c) {
  DType dtype = c.input(0).dtype, type = accumulatorType(dtype);
  std::vector<int64_t> x = c.inputExtents(0), labels = c.inputExtents(1);
  // Over the classes: the maximum, then the logarithm of the sum of exponentials.
  auto overClasses = [&](const std::string& name, loop::Combiner combiner,
                         const std::function<Expr(const Expr& score, const std::vector<Expr>& at)>& term) {
    loop::Stage s;
    s.out = c.temporary(name, type, labels);
    s.axes = makeAxes(labels);
    s.reduce = {{loop::makeVar("cls"), x[1]}};
    s.combiner = combiner;
    std::vector<Expr> at = varsOf(s.axes), indices = at;
    indices.insert(indices.begin() + 1, s.reduce[0].var);
    s.body = term(castTo(type, c.at(0, indices)), at);
    return s;
  };
  loop::Stage largest =
      overClasses("largest", loop::Combiner::Max, [](const Expr& score, const std::vector<Expr>&) { return score; });
  loop::BufferRef top = largest.out;
  c.addStage(std::move(largest));
  loop::Stage sums = overClasses(
      "logarithms", loop::Combiner::Sum,
      [&](const Expr& score, const std::vector<Expr>& at) { return loop::call("exp", {score - load(top, at)}); });
  sums.acc = loop::makeVar("acc", {type, 1});
  sums.epilogue = loop::call("log", {sums.acc});
  loop::BufferRef logarithms = sums.out;
  c.addStage(std::move(sums));
  auto logProbability = [&](const std::vector<Expr>& at) {
    std::vector<Expr> rest = at;
    rest.erase(rest.begin() + 1);
    return castTo(type, c.at(0, at)) - load(top, rest) - load(logarithms, rest);
  };
  if (c.wantsOutput(1))
    LOCUTION_RETURN_IF_ERROR(
        injective(c, 1, [&](const std::vector<Expr>& at) { return castTo(dtype, logProbability(at)); }));
  return c.wantsOutput(0) ? addLoss(c, logProbability) : Status::ok();
}

}  // namespace locution::ops

// Gradients of losses.cpp: (probability - 1 at the label) times what came back, computed from the scores in one go.
#include <numeric>

#include "ops/gradient.h"

namespace locution::ops {

namespace {

struct Labels {
  Term isLabel;  ///< of the scores' dims
  Term weight;   ///< what came back for a label, with its weight: labels' dims with a class dim of 1
};

Result<Labels> labelsOf(GradientContext& c) {
  if (c.wants(2)) return Status::error("class weights that are to be differentiated");
  Builder& b = c.builder();
  Term scores = c.input(0), labels = cast(c.input(1), DType::I64);
  const std::string reduction = c.node().stringAttr("reduction", "mean");
  const std::vector<int64_t> dims = scores.dims();
  std::vector<int64_t> rows = dims, along(dims.size(), 1), places(static_cast<size_t>(dims[1]));
  rows[1] = 1;
  along[1] = dims[1];
  std::iota(places.begin(), places.end(), 0);
  labels = reshape(labels, rows);

  const bool ignores = c.node().hasAttr("ignore_index");
  Term weight;
  if (ignores) {
    Term ignored = b.constant(Tensor::scalarI64(c.node().intAttr("ignore_index", 0)));
    weight = cast(call("Not", call("Equal", labels, ignored)), scores.dtype());
  }
  if (c.hasInput(2)) {
    // What is ignored may be no class at all.
    Term first = b.constant(Tensor::scalarI64(0)), last = b.constant(Tensor::scalarI64(dims[1] - 1));
    Term known = ignores ? call("Min", call("Max", labels, first), last) : labels;
    Term ofClass = b.node("Gather", {c.input(2), known});
    weight = weight ? weight * ofClass : ofClass;
  }
  Term g = reduction == "none" ? reshape(c.gradient(), rows) : reshape(c.gradient(), {});
  if (weight) {
    g = g * weight;
    if (reduction == "mean") {
      std::vector<int64_t> all(dims.size());
      std::iota(all.begin(), all.end(), 0);
      g = g / reduce("ReduceSum", weight, all, false);
    }
  } else if (reduction == "mean") {
    g = g / static_cast<double>(Shape::of(rows).elements());
  }
  Term isLabel = call("Equal", labels, reshape(b.ints(places), along));
  return Labels{isLabel, g};
}

}  // namespace

Status gradientNegativeLogLikelihoodLoss(GradientContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(Labels labels, labelsOf(c));
  c.give(0, whereOrZero(labels.isLabel, -labels.weight));
  return Status::ok();
}

Status gradientSoftmaxCrossEntropyLoss(GradientContext& c) {
  if (c.outputCount() > 1 && c.gradient(1)) return Status::error("the log probabilities as an output");
  if (!c.gradient(0)) return Status::ok();
  LOCUTION_ASSIGN_OR_RETURN(Labels labels, labelsOf(c));
  Term probability = c.builder().node("Softmax", {c.input(0)}, {{"axis", int64_t{1}}});
  c.give(0, (probability - cast(labels.isLabel, probability.dtype())) * labels.weight);
  return Status::ok();
}

}  // namespace locution::ops

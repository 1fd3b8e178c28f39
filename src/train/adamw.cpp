#include "train/adamw.h"

#include <cmath>
#include <numeric>

namespace locution::train {

using ops::Term;

AdamWScalars adamWScalars(const AdamWOptions& o, double learningRate, int64_t step) {
  const auto t = static_cast<double>(step);
  AdamWScalars s;
  s.rate = static_cast<float>(learningRate / (1 - std::pow(o.beta1, t)));
  s.decay = static_cast<float>(1 - learningRate * o.weightDecay);
  s.correction = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
  return s;
}

Term globalNorm(const std::vector<Term>& gradients) {
  Term sum;
  for (const Term& g : gradients) {
    std::vector<int64_t> axes(static_cast<size_t>(g.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    Term square = axes.empty() ? g * g : reduce("ReduceSumSquare", g, axes, false);
    sum = sum ? sum + square : square;
  }
  return call("Sqrt", sum);
}

Term clipFactor(const Term& norm, double most) {
  // The usual guard against a norm of 0.
  constexpr double kLeast = 1e-6;
  return call("Min", most / (norm + kLeast), norm.builder().scalar(norm.dtype(), 1));
}

AdamWOutputs adamW(const AdamWOptions& o, const AdamWTerms& step, const AdamWInputs& in, const Term& factor) {
  Term g = factor ? in.gradient * factor : in.gradient;
  AdamWOutputs out;
  out.first = in.first * o.beta1 + g * (1 - o.beta1);
  out.second = in.second * o.beta2 + g * g * (1 - o.beta2);
  const bool decays = o.weightDecay != 0 && in.parameter.rank() >= o.leastDecayedRank;
  Term kept = decays ? in.parameter * step.decay : in.parameter;
  out.parameter = kept - step.rate * out.first / (call("Sqrt", out.second) * step.correction + o.epsilon);
  return out;
}

}  // namespace locution::train

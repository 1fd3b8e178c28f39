// AdamW (Loshchilov & Hutter 2019) as nodes of a training step's graph: decoupled weight decay, bias correction, and before it the
// gradients cut to a global norm (Pascanu et al. 2013). What changes from step to step comes as three scalars.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/builder.h"

namespace locution::train {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.01;
  /// Only parameters of so many dims decay: matrices, not biases and gains.
  int64_t leastDecayedRank = 2;
  /// Of all gradients together; 0: they stay as they are.
  double mostNorm = 1;
};

/// Scalars of a step, computed in double.
struct AdamWScalars {
  float rate = 0;        ///< learning rate over the first moment's bias correction
  float decay = 1;       ///< what is left of a decayed parameter
  float correction = 1;  ///< 1 / sqrt(1 - beta2^step)
};
/// `step` counts from 1.
AdamWScalars adamWScalars(const AdamWOptions& options, double learningRate, int64_t step);

struct AdamWInputs {
  ops::Term parameter, gradient, first, second;
};
struct AdamWOutputs {
  ops::Term parameter, first, second;
};
struct AdamWTerms {
  ops::Term rate, decay, correction;
};

/// The norm of all gradients together.
ops::Term globalNorm(const std::vector<ops::Term>& gradients);
/// What gradients of that norm are multiplied by, so that it stays below `most`.
ops::Term clipFactor(const ops::Term& norm, double most);
/// `factor` may be none.
AdamWOutputs adamW(const AdamWOptions& options, const AdamWTerms& step, const AdamWInputs& in, const ops::Term& factor);

}  // namespace locution::train

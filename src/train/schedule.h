// How the learning rate goes with the steps: up a line, then down half a cosine (Loshchilov & Hutter 2017).
#pragma once

#include <cstdint>

namespace locution::train {

struct LearningRate {
  double peak = 1e-3;
  double last = 1e-4;    ///< of the last step
  int64_t warmup = 100;  ///< steps up to the peak
  int64_t steps = 1000;  ///< of the whole training; past them it stays at `last`
  /// Of a step counted from 0.
  double at(int64_t step) const;
};

}  // namespace locution::train

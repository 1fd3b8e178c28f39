#include "train/schedule.h"

#include <cmath>

namespace locution::train {

double LearningRate::at(int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (step >= steps) return last;
  const double way = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return last + (peak - last) * 0.5 * (1 + std::cos(M_PI * way));
}

}  // namespace locution::train

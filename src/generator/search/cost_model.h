// A model of how long plans take, learnt from those that were measured: gradient boosted trees (XGBoost) from the features of kernel and
// plan (features.h) to log(time / the incumbent's time). One thread and a fixed seed: equal observations give equal predictions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "support/status.h"

namespace locution::generator {

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// A measured plan. `logRatio`: of its time to the incumbent's.
  virtual void add(const std::vector<float>& features, double logRatio) = 0;
  /// Of each row what log(time / incumbent's time) is likely; null as long as too little was measured to tell.
  virtual std::optional<std::vector<double>> predict(const std::vector<std::vector<float>>& rows) = 0;
};

/// Errors: XGBoost is not installed.
Result<std::shared_ptr<CostModel>> makeBoostedTrees();

}  // namespace locution::generator

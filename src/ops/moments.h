// Mean and variance of rows in two passes: the variance is the mean of squared distances from the mean, which loses nothing.
#pragma once

#include <functional>

#include "ops/reducer.h"

namespace locution::ops {

struct Moments {
  loop::BufferRef mean;
  loop::BufferRef scale;  ///< what `finish` makes of the variance
};
Moments moments(Reducer& r, const Reducer::Body& x,
                const std::function<loop::Expr(const loop::Expr& variance)>& finish);

/// 1 / sqrt(variance + epsilon)
loop::Expr inverseDeviation(const loop::Expr& variance, double epsilon);

}  // namespace locution::ops

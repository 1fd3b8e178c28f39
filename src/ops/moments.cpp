#include "ops/moments.h"

namespace locution::ops {

using loop::Combiner;
using loop::Expr;

Moments moments(Reducer& r, const Reducer::Body& x, const std::function<Expr(const Expr& variance)>& finish) {
  auto average = [&r](const Expr& sum) {
    return sum / loop::constant(sum->type.dtype, static_cast<double>(r.count()));
  };
  Moments m;
  m.mean =
      r.temporary("mean", Combiner::Sum, x, [&](const Expr& sum, const std::vector<Expr>&) { return average(sum); });
  m.scale = r.temporary(
      "scale", Combiner::Sum,
      [&](const std::vector<Expr>& full) {
        return shared(x(full) - r.at(m.mean, full), [](const Expr& d) { return d * d; });
      },
      [&](const Expr& sum, const std::vector<Expr>&) { return finish(average(sum)); });
  return m;
}

Expr inverseDeviation(const Expr& variance, double epsilon) {
  DType type = variance->type.dtype;
  return loop::constant(type, 1) / loop::call("sqrt", {variance + loop::constant(type, epsilon)});
}

}  // namespace locution::ops

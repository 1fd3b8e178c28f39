// Random operators. Numbers come from Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): element i
// of a node depends on the seed and i alone, the same on every machine and in every run. A node without a seed gets one from
// its name.
#include <algorithm>
#include <bit>
#include <cmath>

#include "hostops/helpers.h"
#include "hostops/ops.h"
#include "hostops/philox.h"

namespace locution::hostops {
namespace {

uint64_t seedOf(const HostCall& call) {
  if (!hasAttr(call.attrs, "seed")) return call.defaultSeed;
  return std::bit_cast<uint64_t>(floatAttr(call.attrs, "seed", 0) + 0.0);
}

Status fill(const HostCall& call, std::vector<HostValue>& outputs, std::vector<int64_t> dims, DType fallback,
            bool normal) {
  LOCUTION_ASSIGN_OR_RETURN(DType dtype, dtypeAttr(call.attrs, "dtype", fallback));
  if (!isFloat(dtype)) return Status::error("random numbers of type " + std::string(dtypeName(dtype)));
  LOCUTION_RETURN_IF_ERROR(checkSize(dtype, dims));
  double first = normal ? floatAttr(call.attrs, "mean", 0) : floatAttr(call.attrs, "low", 0);
  double second = normal ? floatAttr(call.attrs, "scale", 1) : floatAttr(call.attrs, "high", 1) - first;
  Philox random(seedOf(call));
  Tensor y(dtype, std::move(dims));
  for (int64_t i = 0; i < y.elements(); ++i) {
    auto n = static_cast<uint64_t>(i);
    double value = first + second * (normal ? random.normal(n) : random.uniform(n));
    // Rounding to the output's type must not reach the open end of the range.
    if (!normal && dtype == DType::F32 && second > 0)
      value = std::min<double>(value, std::nextafter(static_cast<float>(first + second), static_cast<float>(first)));
    y.setElement(i, value);
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace

Status randomNormal(const HostCall& call, std::vector<HostValue>& outputs) {
  return fill(call, outputs, intsAttr(call.attrs, "shape"), DType::F32, true);
}
Status randomUniform(const HostCall& call, std::vector<HostValue>& outputs) {
  return fill(call, outputs, intsAttr(call.attrs, "shape"), DType::F32, false);
}
Status randomNormalLike(const HostCall& call, std::vector<HostValue>& outputs) {
  return fill(call, outputs, call.tensor(0).dims(), call.tensor(0).dtype(), true);
}
Status randomUniformLike(const HostCall& call, std::vector<HostValue>& outputs) {
  return fill(call, outputs, call.tensor(0).dims(), call.tensor(0).dtype(), false);
}

/// 1 with the probability that the input gives.
Status bernoulli(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& p = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(DType dtype, dtypeAttr(call.attrs, "dtype", p.dtype()));
  if (!isFloat(p.dtype()) || dtype == DType::String) return Status::error("probabilities must be of a float type");
  Philox random(seedOf(call));
  Tensor y(dtype, p.dims());
  for (int64_t i = 0; i < y.elements(); ++i) {
    double probability = p.elementAsDouble(i);
    if (!(probability >= 0 && probability <= 1))
      return Status::error("the probability of element " + std::to_string(i) + " is " + std::to_string(probability));
    y.setElement(i, random.uniform(static_cast<uint64_t>(i)) < probability ? 1 : 0);
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

/// [batch, sample_size] classes, drawn by the softmax of each row of unnormalised log-probabilities.
Status multinomial(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_ASSIGN_OR_RETURN(DType dtype, dtypeAttr(call.attrs, "dtype", DType::I32));
  int64_t samples = intAttr(call.attrs, "sample_size", 1);
  if (!isFloat(x.dtype()) || x.rank() != 2 || x.dims()[1] == 0)
    return Status::error("the input must be floats of [batch, classes], but is " + std::string(dtypeName(x.dtype())) +
                         "[" + dimsText(x.dims()) + "]");
  if (dtype != DType::I32 && dtype != DType::I64) return Status::error("samples must be int32 or int64");
  LOCUTION_RETURN_IF_ERROR(checkSize(dtype, {x.dims()[0], samples}));
  int64_t classes = x.dims()[1];
  Tensor y(dtype, {x.dims()[0], samples});
  Philox random(seedOf(call));
  for (int64_t b = 0; b < x.dims()[0]; ++b) {
    std::vector<double> sums(static_cast<size_t>(classes));
    double highest = -HUGE_VAL, sum = 0;
    for (int64_t c = 0; c < classes; ++c) highest = std::max(highest, x.elementAsDouble(b * classes + c));
    for (int64_t c = 0; c < classes; ++c) {
      sum += std::exp(x.elementAsDouble(b * classes + c) - highest);
      sums[static_cast<size_t>(c)] = sum;
    }
    if (!std::isfinite(sum))
      return Status::error("row " + std::to_string(b) + " has no probabilities: NaN or infinities");
    for (int64_t s = 0; s < samples; ++s) {
      double u = random.uniform(static_cast<uint64_t>(b * samples + s)) * sum;
      auto at = std::upper_bound(sums.begin(), sums.end() - 1, u) - sums.begin();
      y.setElementInt(b * samples + s, at);
    }
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace locution::hostops

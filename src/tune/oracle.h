// What a kernel's outputs must be: the interpreter's, at all places of a small kernel and at sampled ones of a large one, with how far
// rounding may take a correct plan from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::tune {

class Oracle {
 public:
  /// Beyond `maxPoints` evaluated points only places drawn with `seed` are known, the first and the last among them. Sums of floats
  /// are interpreted in float64 and may differ by 8 sqrt(K) eps sum|terms|, and by what the epilogue makes of that; other kernels as in
  /// `differenceOf`. Errors: what the interpreter finds, such as an index out of range.
  static Result<Oracle> make(const loop::Computation& kernel, const std::vector<Tensor>& inputs, double maxPoints,
                             uint64_t seed);

  /// Empty when all known places are right, else the worst. `isWinograd`: 16 times the rounding, that of the largest sum everywhere.
  /// `isPartial`: elements that still hold poison have not been computed.
  std::string check(const std::vector<Tensor>& outputs, bool isWinograd, bool isPartial = false) const;
  /// Two results of correct plans, at all places.
  std::string compare(const std::vector<Tensor>& want, const std::vector<Tensor>& have, bool isWinograd,
                      bool isPartial = false) const;

  /// Every byte of outputs that nobody has written.
  static constexpr int kPoison = 0xFF;

  size_t places() const { return places_.size(); }
  /// Of the places, those whose value is neither infinite nor NaN.
  double finiteShare() const;

 private:
  struct Place {
    uint32_t output = 0;
    int64_t index = 0;
    double want = 0, slack = 0;
  };
  struct Bound {
    double relative = 0, absolute = 0;  ///< besides a place's slack
    double anywhere = 0;                ///< the largest slack of a place
    double winograd = 0;
  };
  Status sampleSum(const loop::Computation& kernel, const std::vector<Tensor>& inputs, const Tensor& rows);
  Status sampleRows(const loop::Computation& kernel, const std::vector<Tensor>& inputs, const Tensor& rows);

  std::vector<Place> places_;
  std::vector<Bound> bounds_;  ///< of each output
};

}  // namespace locution::tune

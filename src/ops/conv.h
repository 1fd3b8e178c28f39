// Convolution as stages, shared by Conv and its quantised forms.
#pragma once

#include <functional>

#include "ops/op.h"

namespace locution::ops {

/// What differs between the forms: where the operands are and how elements enter and leave the sum.
struct ConvOperands {
  size_t x = 0, w = 1;  ///< input indices
  DType accumulator = DType::F32;
  loop::Expr padValue;                                     ///< of x's type
  std::function<loop::Expr(loop::Expr)> mapX;              ///< element of x to accumulator type
  std::function<loop::Expr(loop::Expr, loop::Expr)> mapW;  ///< element of w and its output channel to accumulator type
  std::function<loop::Expr(loop::Expr, loop::Expr)> finish;  ///< sum and output channel to output type
};

/// Sets output 0 from inputs `x`, `w` and the attributes; checks channels, groups and window. `bias`: input index or -1.
Status inferConvolution(InferContext& c, size_t x, size_t w, int64_t bias, DType output);
/// out[n, oc, o] = finish(sum over ic, k of x[n, g * icg + ic, o * s + k * d] * w[oc, ic, k]), from a padded copy of x when pads need one.
Status computeConvolution(ComputeContext& c, const ConvOperands& operands);

/// A convolution in one group whose window, of three in some dims and of one in others, moves by one: what minimal filtering may take.
bool movesWindowOfThree(const graph::Node& node, const std::vector<int64_t>& weights);

}  // namespace locution::ops

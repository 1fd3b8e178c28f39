// Shapes and indices of matrix products, shared by MatMul and its quantised forms.
#pragma once

#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// NumPy's matmul: 1-D operands lose their dim, leading dims are broadcast.
Result<Shape> matMulShape(const Shape& a, const Shape& b);

struct MatMulIndices {
  std::vector<loop::Expr> a, b;
  loop::Expr row, column;  ///< null where the operand is 1-D
};
MatMulIndices matMulIndices(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                            const std::vector<loop::Expr>& out, const loop::Expr& k);
loop::Axis matMulReduction(const std::vector<int64_t>& a);

}  // namespace locution::ops

// Indices that come as data: the check before the kernel, and the expression inside it.
#pragma once

#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// Every element of input i must lie in [-extent, extent - 1].
void checkIndexInput(ComputeContext& c, size_t i, int64_t extent);
/// in_i[at] as a position along `extent`: int64, negative ones counted from the end (no test where a constant has none).
loop::Expr dataIndex(ComputeContext& c, size_t i, std::vector<loop::Expr> at, int64_t extent);

/// The same for tuples along the last dim of input i, component k against extents[k]: one check a component, in order. Several checks of
/// one value by one node always mean this.
Status checkIndexTuples(ComputeContext& c, size_t i, const std::vector<int64_t>& extents);
std::vector<loop::Expr> tupleIndices(ComputeContext& c, size_t i, const std::vector<loop::Expr>& tuple,
                                     const std::vector<int64_t>& extents);

}  // namespace locution::ops

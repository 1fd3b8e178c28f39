// What op families share: axes, broadcasting, element-wise stages, and checks with good messages.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// -rank <= axis < rank, made non-negative; the message says axis and rank.
Result<int64_t> normaliseAxis(int64_t axis, int64_t rank);
Result<std::vector<int64_t>> normaliseAxes(const std::vector<int64_t>& axes, int64_t rank);
/// Numpy's rule over symbolic dims; a dim that can't be decided between a symbol and 1 takes the symbol.
Result<Shape> broadcastShapes(const std::vector<Shape>& shapes);
/// One loop axis an extent: i0, i1, ...
std::vector<loop::Axis> makeAxes(const std::vector<int64_t>& extents, const std::string& stem = "i");
std::vector<loop::Expr> varsOf(const std::vector<loop::Axis>& axes);
/// Indices into a tensor of `extents` that is broadcast to the (longer or equal) index list `full`: drops leading indices, 0 where the extent is 1.
std::vector<loop::Expr> broadcastIndices(const std::vector<int64_t>& extents, const std::vector<loop::Expr>& full);
/// Row-major offset of `indices` in `extents`, and the inverse.
loop::Expr flattenIndex(const std::vector<int64_t>& extents, const std::vector<loop::Expr>& indices);
std::vector<loop::Expr> unflattenIndex(const std::vector<int64_t>& extents, const loop::Expr& flat);

/// out = f(inputs...) element by element with broadcasting; absent inputs are not passed.
Status elementwise(ComputeContext& c, const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f);
/// Output `o` = make(indices of the output).
Status injective(ComputeContext& c, size_t o, const std::function<loop::Expr(const std::vector<loop::Expr>&)>& make);

/// The integers of input i: constant at compute time; an error that says it must be known at compile time otherwise.
Result<std::vector<int64_t>> constantInts(const ComputeContext& c, size_t i, std::string_view what);
/// Same for inference; nullopt when not known yet.
std::optional<std::vector<int64_t>> knownInts(const InferContext& c, size_t i);

}  // namespace locution::ops

// What op families share: axes, broadcasting, element-wise stages, attributes, and checks with good messages.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace locution::ops {

/// -rank <= axis < rank, made non-negative; the message says axis and rank.
Result<int64_t> normaliseAxis(int64_t axis, int64_t rank);
/// The same for a list; an axis that occurs twice is an error.
Result<std::vector<int64_t>> normaliseAxes(const std::vector<int64_t>& axes, int64_t rank);
/// Numpy's rule over symbolic dims; a dim that can't be decided between a symbol and 1 takes the symbol, one between a symbol and
/// another number the number, one between two symbols their maximum.
Result<Shape> broadcastShapes(const std::vector<Shape>& shapes);
/// One loop axis an extent: i0, i1, ...
std::vector<loop::Axis> makeAxes(const std::vector<int64_t>& extents, const std::string& stem = "i");
std::vector<loop::Expr> varsOf(const std::vector<loop::Axis>& axes);
/// Indices into a tensor of `extents` that is broadcast to the (longer or equal) index list `full`: drops leading indices, 0 where the extent is 1.
std::vector<loop::Expr> broadcastIndices(const std::vector<int64_t>& extents, const std::vector<loop::Expr>& full);
/// Row-major offset of `indices` in `extents`, and the inverse.
loop::Expr flattenIndex(const std::vector<int64_t>& extents, const std::vector<loop::Expr>& indices);
std::vector<loop::Expr> unflattenIndex(const std::vector<int64_t>& extents, const loop::Expr& flat);
/// Indices into `from` of the element that lies at `indices` of `to`, the same bytes under other extents. Dims that the two have in
/// common pass through, so that most reshapes need no division.
std::vector<loop::Expr> reshapeIndices(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                       const std::vector<loop::Expr>& indices);

/// out = f(inputs...) element by element with broadcasting; absent inputs are not passed. Floats of 16 bits and less come as
/// float32, and what f gives is cast to the output's type. Constants of one element come as immediates.
Status elementwise(ComputeContext& c, const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f);
/// Output `o` = make(indices of the output).
Status injective(ComputeContext& c, size_t o, const std::function<loop::Expr(const std::vector<loop::Expr>&)>& make);

/// The integers of input i: constant at compute time; an error that says it must be known at compile time otherwise.
Result<std::vector<int64_t>> constantInts(const ComputeContext& c, size_t i, std::string_view what);
/// Same for inference; nullopt when not known yet.
std::optional<std::vector<int64_t>> knownInts(const InferContext& c, size_t i);
/// The number of a constant input of one element.
std::optional<double> constantScalar(const ComputeContext& c, size_t i);

/// f(value) with the value named, so that it is computed once however often f uses it.
loop::Expr shared(const loop::Expr& value, const std::function<loop::Expr(const loop::Expr&)>& f);
/// What arithmetic on `type` is done in: float32 for floats of 16 bits and less, else the type itself.
DType computeType(DType type);
/// in_i[indices] in computeType.
loop::Expr widened(ComputeContext& c, size_t i, const std::vector<loop::Expr>& indices);
/// Element `k` of a small integer input (scalar or vector) as int64: an immediate when constant, else a load.
loop::Expr intElement(ComputeContext& c, size_t i, int64_t k);
/// `index` (any integer type) counted from the end of `extent` when negative, as int64.
loop::Expr wrapNegative(const loop::Expr& index, int64_t extent);
/// min(max(x, low), high) for constant bounds, NaN staying NaN: compiles to two instructions.
loop::Expr clampTo(const loop::Expr& x, double low, double high);

/// An attribute that holds an element type: ONNX's number or a name of dtypes.inc; nullopt when absent (or 0).
Result<std::optional<DType>> dtypeAttr(const graph::Node& node, std::string_view key);
/// The dtype of an ONNX TensorProto.DataType number.
std::optional<DType> dtypeOfOnnx(int64_t number);

/// Inputs 0 .. n-1 are there.
Status needInputs(const InferContext& c, size_t n);
/// All the present inputs among `which` have one dtype.
Status needSameDtype(const InferContext& c, const std::vector<size_t>& which);
/// Input i's dtype fulfils `accepts`; `expected` is for the message: "a float type".
Status needDtype(const InferContext& c, size_t i, bool (*accepts)(DType), std::string_view expected);
/// Input i has `rank` dims, as far as is known.
Status needRank(const InferContext& c, size_t i, int64_t rank);
/// Known and different: an error that names `what`.
Status needSameDim(const Dim& a, const Dim& b, const std::string& what);
/// `from` broadcasts to `to`, which keeps its shape, as far as is known; `what` names the value: "the slope".
Status needBroadcastTo(const Shape& from, const Shape& to, const std::string& what);
/// The attribute is one of `names`.
Status needOneOf(std::string_view attribute, std::string_view got, const std::vector<std::string_view>& names);

inline bool isNumeric(DType t) { return isFloat(t) || isInteger(t); }
inline bool isIntOrBool(DType t) { return isInteger(t) || t == DType::Bool; }
inline bool isBool(DType t) { return t == DType::Bool; }

}  // namespace locution::ops

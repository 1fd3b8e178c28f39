// Quantised operators of com.microsoft, made of ai.onnx's: what is computed in floats is dequantised, computed, and quantised again.
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {
namespace {

using graph::ValueId;

ValueId toFloat(NodeContext& c, ValueId id) {
  graph::Attrs attrs;
  attrs["to"] = std::string(dtypeName(DType::F32));
  return c.add("Cast", {id}, std::move(attrs));
}

/// Inputs `at`, `at` + 1 and `at` + 2 of the node as floats.
ValueId dequantised(NodeContext& c, size_t at) {
  return c.add("DequantizeLinear", {c.input(at), c.input(at + 1), c.input(at + 2)});
}

/// Output 0, with scale and zero point from inputs `at` and `at` + 1.
Status finishQuantised(NodeContext& c, ValueId value, size_t at) {
  c.finish("QuantizeLinear", {value, c.input(at), c.input(at + 1)}, {});
  return Status::ok();
}

/// (A - a_zero_point) x (B - b_zero_point), as floats.
ValueId scaledProduct(NodeContext& c, ValueId a, ValueId aScale, ValueId aZero, ValueId b, ValueId bScale,
                      ValueId bZero) {
  ValueId product = toFloat(c, c.add("MatMulInteger", {a, b, aZero, bZero}));
  return c.add("Mul", {product, c.add("Mul", {aScale, bScale})});
}

void finishBias(NodeContext& c, ValueId value, ValueId bias) {
  if (bias.isValid())
    c.finish("Add", {value, bias}, {});
  else
    c.bind(0, value);
}

/// Weights of a recurrent operator: directions x input x gates, a scale a direction or a gate row; as LSTM wants them.
ValueId recurrentWeights(NodeContext& c, ValueId weights, ValueId scale, ValueId zero) {
  ValueId perRow = c.addInts({0, 1, -1}, "per_row");
  ValueId value = toFloat(c, weights);
  if (zero.isValid()) value = c.add("Sub", {value, c.add("Reshape", {toFloat(c, zero), perRow})});
  value = c.add("Mul", {value, c.add("Reshape", {scale, perRow})});
  graph::Attrs attrs;
  attrs["perm"] = std::vector<int64_t>{0, 2, 1};
  return c.add("Transpose", {value}, std::move(attrs));
}

}  // namespace

Status dynamicQuantizeMatMul(NodeContext& c) {
  std::vector<ValueId> a = c.addMany("DynamicQuantizeLinear", {c.input(0)}, {}, 3);
  finishBias(c, scaledProduct(c, a[0], a[1], a[2], c.input(1), c.input(2), c.input(3)), c.input(4));
  return Status::ok();
}

Status matMulIntegerToFloat(NodeContext& c) {
  finishBias(c, scaledProduct(c, c.input(0), c.input(2), c.input(4), c.input(1), c.input(3), c.input(5)), c.input(6));
  return Status::ok();
}

/// An LSTM over dequantised weights: its activations are not rounded to 8 bits on the way.
Status dynamicQuantizeLstm(NodeContext& c) {
  ValueId w = recurrentWeights(c, c.input(1), c.input(8), c.input(9));
  ValueId r = recurrentWeights(c, c.input(2), c.input(10), c.input(11));
  c.finish("LSTM", {c.input(0), w, r, c.input(3), c.input(4), c.input(5), c.input(6), c.input(7)}, c.attrs());
  return Status::ok();
}

/// QLinearAdd, QLinearMul
Status qLinearBinary(NodeContext& c) {
  std::string op = c.opType().substr(std::string("QLinear").size());
  ValueId a = dequantised(c, 0);
  ValueId b = dequantised(c, 3);
  return finishQuantised(c, c.add(op, {a, b}), 6);
}

/// QLinearSigmoid, QLinearLeakyRelu, QLinearReduceMean and the average pools
Status qLinearUnary(NodeContext& c) {
  std::string op = c.opType().substr(std::string("QLinear").size());
  if (c.intAttr("channels_last", 0) != 0) return c.unsupported("channels_last");
  graph::Attrs attrs = c.attrs();
  attrs.erase("channels_last");
  NodeContext::Inputs inputs = {dequantised(c, 0)};
  if (auto axes = attrs.find("axes"); axes != attrs.end()) {
    inputs.push_back(c.addInts(std::get<std::vector<int64_t>>(axes->second), "axes"));
    attrs.erase(axes);
  }
  return finishQuantised(c, c.add(op, inputs, std::move(attrs)), 3);
}

Status qLinearConcat(NodeContext& c) {
  if (c.inputs().size() < 5 || (c.inputs().size() - 2) % 3 != 0)
    return Status::error(std::to_string(c.inputs().size()) +
                         " inputs are given; it takes a scale, a zero point, and three a part");
  NodeContext::Inputs parts;
  for (size_t i = 2; i < c.inputs().size(); i += 3) {
    if (!c.has(i) || !c.has(i + 1)) return Status::error("input " + std::to_string(i) + " or its scale is left out");
    parts.push_back(dequantised(c, i));
  }
  return finishQuantised(c, c.add("Concat", parts, c.attrs()), 0);
}

/// The bias is an int32 in units of both scales.
Status qGemm(NodeContext& c) {
  double alpha = c.floatAttr("alpha", 1);
  bool transB = c.intAttr("transB", 0) != 0;
  graph::Attrs perColumn;
  perColumn["axis"] = int64_t{transB ? 0 : 1};
  ValueId a = dequantised(c, 0);
  ValueId b = c.add("DequantizeLinear", {c.input(3), c.input(4), c.input(5)}, std::move(perColumn));
  ValueId bias;
  if (c.has(6)) bias = c.add("Mul", {toFloat(c, c.input(6)), c.add("Mul", {c.input(1), c.input(4)})});
  graph::Attrs attrs = c.attrs();
  if (bias.isValid() && alpha != 1) attrs["beta"] = alpha;
  if (!c.has(7)) {
    c.finish("Gemm", {a, b, bias}, std::move(attrs));
    return Status::ok();
  }
  return finishQuantised(c, c.add("Gemm", {a, b, bias}, std::move(attrs)), 7);
}

}  // namespace locution::frontend::normalise

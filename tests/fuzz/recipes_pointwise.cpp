// Recipes of element-wise operators, casts and quantisation.
#include <algorithm>

#include "core/dtype.h"
#include "graph_maker.h"

namespace locution::fuzz {

namespace {

using graph::Attrs;

std::string anyTypeName(GraphMaker& g) {
  return std::string(dtypeName(g.chance(6) ? g.oneOf({DType::F8E4M3FN, DType::F8E5M2, DType::F8E4M3FNUZ,
                                                      DType::F8E5M2FNUZ, DType::I4, DType::U4, DType::I2, DType::U2})
                                           : g.anyDType()));
}

// Scale and zero point for one axis, blocks of it, or the whole tensor.
struct QuantiseParams {
  ValueId scale, zero;
  Attrs attrs;
};
QuantiseParams quantiseParams(GraphMaker& g, const Ints& d, DType scaleType, DType stored) {
  QuantiseParams out;
  Ints shape;
  if (!d.empty() && g.chance(2)) {
    int64_t axis = g.pick(static_cast<int64_t>(d.size()));
    out.attrs["axis"] = axis;
    int64_t extent = d[static_cast<size_t>(axis)];
    if (g.chance(3) && extent > 0) {
      int64_t block = 1 + g.pick(extent);
      out.attrs["block_size"] = block;
      shape = d;
      shape[static_cast<size_t>(axis)] = (extent + block - 1) / block;
    } else {
      shape = {extent};
    }
  }
  Tensor scale(scaleType, shape);
  for (int64_t i = 0; i < scale.elements(); ++i) scale.setElement(i, g.oneOf({0.5, 0.03125, 0.0625, 1.0, 0.13}));
  out.scale = g.constant(scale);
  if (!g.chance(3)) {
    Tensor zero(stored, shape);
    for (int64_t i = 0; i < zero.elements(); ++i)
      if (isInteger(stored)) zero.setElementInt(i, isSubByte(stored) ? 1 : g.pick(9));
    out.zero = g.constant(zero);
  }
  return out;
}

}  // namespace

void addPointwiseRecipes(std::vector<Recipe>& out) {
  out.push_back({{"Abs", "Neg", "Sign", "Identity", "Relu"},
                 [](GraphMaker& g, const std::string& op) { return g.make(op, {g.numeric()}); }});
  out.push_back({{"Reciprocal", "Ceil", "Floor",   "Round", "Sqrt",  "Exp",       "Log",      "Sin",      "Cos",
                  "Tan",        "Asin", "Acos",    "Atan",  "Sinh",  "Cosh",      "Tanh",     "Asinh",    "Acosh",
                  "Atanh",      "Erf",  "Sigmoid", "IsNaN", "IsInf", "HardSwish", "Softplus", "Softsign", "Mish"},
                 [](GraphMaker& g, const std::string& op) { return g.make(op, {g.floating()}); }});
  out.push_back({{"LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid", "Swish", "Shrink", "Gelu"},
                 [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   if (op == "Gelu") {
                     g.maybe(a, "approximate", std::string(g.oneOf({"none", "tanh"})));
                   } else if (op == "Shrink") {
                     g.maybe(a, "bias", g.real(-1, 1));
                     g.maybe(a, "lambd", g.real(0, 2));
                   } else {
                     g.maybe(a, "alpha", g.real(0.1, 2));
                     if (op == "Selu") g.maybe(a, "gamma", g.real(0.1, 2));
                     if (op == "HardSigmoid") g.maybe(a, "beta", g.real(-1, 1));
                   }
                   return g.make(op, {op == "Shrink" ? g.numeric() : g.floating()}, a);
                 }});
  out.push_back({{"Not"}, [](GraphMaker& g, const std::string& op) { return g.make(op, {g.boolean()}); }});
  out.push_back({{"BitwiseNot"}, [](GraphMaker& g, const std::string& op) { return g.make(op, {g.integral()}); }});
  out.push_back({{"PRelu"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric();
                   return g.make(op, {x, g.broadcastable(g.dtype(x), g.dims(x))});
                 }});
  out.push_back({{"Clip"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric();
                   ValueId low = g.chance(3) ? ValueId{} : g.value(g.dtype(x), {});
                   return g.make(op, {x, low, g.chance(3) ? ValueId{} : g.value(g.dtype(x), {})});
                 }});
  out.push_back({{"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"},
                 [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric();
                   ValueId y = g.broadcastable(op == "Pow" && g.chance(4) ? g.numericDType() : g.dtype(x), g.dims(x));
                   return g.chance(2) ? g.make(op, {x, y}) : g.make(op, {y, x});
                 }});
  out.push_back({{"Mod"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric();
                   return g.make(op, {x, g.broadcastable(g.dtype(x), g.dims(x))},
                                 {{"fmod", int64_t{isFloat(g.dtype(x)) || g.chance(3)}}});
                 }});
  out.push_back({{"Max", "Min", "Mean", "Sum"}, [](GraphMaker& g, const std::string& op) {
                   std::vector<ValueId> in = {op == "Max" || op == "Min" ? g.numeric() : g.floating()};
                   // A sum of one eight-bit float is that float, infinite or not; one of several is cut off at the largest.
                   const int64_t least = dtypeBits(g.dtype(in[0])) < 16 ? 1 : 0;
                   for (int64_t i = std::max(least, g.pick(3)); i-- > 0;)
                     in.push_back(g.broadcastable(g.dtype(in[0]), g.dims(in[0])));
                   return g.make(op, in);
                 }});
  out.push_back({{"And", "Or", "Xor"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.boolean();
                   return g.make(op, {x, g.broadcastable(DType::Bool, g.dims(x))});
                 }});
  out.push_back({{"BitwiseAnd", "BitwiseOr", "BitwiseXor"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.integral();
                   return g.make(op, {x, g.broadcastable(g.dtype(x), g.dims(x))});
                 }});
  out.push_back({{"BitShift"}, [](GraphMaker& g, const std::string& op) {
                   DType t = g.oneOf({DType::U8, DType::U16, DType::U32, DType::U64});
                   ValueId x = g.value(t, g.anyDims(0, 4));
                   return g.make(op, {x, g.broadcastable(t, g.dims(x))},
                                 {{"direction", std::string(g.oneOf({"LEFT", "RIGHT"}))}});
                 }});
  out.push_back(
      {{"Where"}, [](GraphMaker& g, const std::string& op) {
         ValueId x = g.any();
         return g.make(op, {g.broadcastable(DType::Bool, g.dims(x)), x, g.broadcastable(g.dtype(x), g.dims(x))});
       }});
  out.push_back({{"Dropout"}, [](GraphMaker& g, const std::string& op) { return g.make(op, {g.floating()}, {}, 2); }});
  out.push_back({{"Cast"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a{{"to", anyTypeName(g)}};
                   g.maybe(a, "saturate", g.pick(2));
                   return g.make(op, {g.any()}, a);
                 }});
  out.push_back({{"CastLike"}, [](GraphMaker& g, const std::string& op) { return g.make(op, {g.any(), g.any()}); }});
  out.push_back({{"BitCast"}, [](GraphMaker& g, const std::string& op) {
                   return g.make(op, {g.numeric()}, {{"to", anyTypeName(g)}});
                 }});
  out.push_back({{"QuantizeLinear"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.floating();
                   DType stored = g.oneOf({DType::U8, DType::I8, DType::U8, DType::I8, DType::U16, DType::I16,
                                           DType::I4, DType::U4, DType::F8E4M3FN, DType::F8E5M2});
                   QuantiseParams p = quantiseParams(g, g.dims(x), g.dtype(x), stored);
                   if (!p.zero.isValid()) p.attrs["output_dtype"] = std::string(dtypeName(stored));
                   return g.make(op, {x, p.scale, p.zero}, p.attrs);
                 }});
  out.push_back({{"DequantizeLinear"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.value(g.oneOf({DType::U8, DType::I8, DType::I32, DType::U16, DType::I16, DType::I4,
                                                DType::U4, DType::F8E4M3FN, DType::F8E5M2}),
                                       g.anyDims(0, 4));
                   QuantiseParams p = quantiseParams(g, g.dims(x), g.floatDType(), g.dtype(x));
                   return g.make(op, {x, p.scale, p.zero}, p.attrs);
                 }});
  out.push_back({{"DynamicQuantizeLinear"},
                 [](GraphMaker& g, const std::string& op) { return g.make(op, {g.floating()}, {}, 3); }});
}

}  // namespace locution::fuzz

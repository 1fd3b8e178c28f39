// Element by element: identities, inverse pairs, cheaper forms that give the same value.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/simplify_rules.h"

namespace locution::passes {
namespace {

void dropNeutral(Patch& patch, NodeId id, double neutral, bool commutes) {
  const Graph& graph = patch.graph();
  if (splatOf(graph, graph.node(id).input(1)) == neutral && becomeInput(patch, id, 0)) return;
  if (commutes && splatOf(graph, graph.node(id).input(0)) == neutral) becomeInput(patch, id, 1);
}
void addZero(Patch& patch, NodeId id) { dropNeutral(patch, id, 0, true); }
void subZero(Patch& patch, NodeId id) { dropNeutral(patch, id, 0, false); }
void mulOne(Patch& patch, NodeId id) { dropNeutral(patch, id, 1, true); }
void divOne(Patch& patch, NodeId id) { dropNeutral(patch, id, 1, false); }

/// x / 2^k is x * 2^-k bit for bit, as long as both powers are normal numbers.
void divByPowerOfTwo(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  const Tensor* divisor = graph.constant(node.input(1));
  if (!divisor || divisor->dtype() != DType::F32 || divisor->elements() == 0) return;
  Tensor reciprocal(DType::F32, divisor->dims());
  for (int64_t i = 0; i < divisor->elements(); ++i) {
    const float d = divisor->data<float>()[i];
    int exponent = 0;
    if (!std::isfinite(d) || std::fabs(std::frexp(d, &exponent)) != 0.5F || std::abs(exponent) > 100) return;
    reciprocal.data<float>()[i] = 1.0F / d;
  }
  patch.setInput(id, 1, patch.addConstant(graph.value(node.input(1)).name, std::move(reciprocal)));
  patch.setOp(id, "Mul");
}

/// Every element is NaN or at least 0, whatever the inputs.
bool isNonNegative(const Graph& graph, ValueId value, int depth = 6) {
  if (!value.isValid() || depth == 0) return false;
  if (std::optional<double> splat = splatOf(graph, value)) return *splat >= 0;
  NodeId producer = graph.value(value).producer;
  if (!producer.isValid()) return false;
  const Node& node = graph.node(producer);
  auto input = [&](size_t i) { return isNonNegative(graph, node.input(i), depth - 1); };
  if (node.op == "Mul") return node.input(0) == node.input(1) || (input(0) && input(1));
  if (node.op == "Add" || node.op == "Div") return input(0) && input(1);
  if (node.op == "Max") {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (input(i)) return true;
    return false;
  }
  if (node.op == "Pow") {
    std::optional<double> exponent = splatOf(graph, node.input(1));
    return exponent && std::fmod(*exponent, 2) == 0;
  }
  static constexpr std::string_view kKeeps[] = {"ReduceMean", "ReduceSum", "ReduceMax", "Reshape",
                                                "Transpose",  "Expand",    "Identity"};
  if (std::find(std::begin(kKeeps), std::end(kKeeps), node.op) != std::end(kKeeps)) return input(0);
  static constexpr std::string_view kMakes[] = {
      "Abs", "Exp", "Relu", "Sigmoid", "Softmax", "Sqrt", "ReduceSumSquare", "ReduceL2"};
  return std::find(std::begin(kMakes), std::end(kMakes), node.op) != std::end(kMakes);
}

/// Small whole exponents as products, as other runtimes compute them; 0.5 where no negative number can come (Pow(-inf, 0.5) is inf,
/// Sqrt(-inf) is NaN).
void cheaperPow(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  std::optional<double> exponent = splatOf(graph, node.input(1));
  ValueId x = node.input(0), out = node.outputs[0];
  if (!exponent || !isFloat(graph.type(x).dtype) || !sameType(graph, x, out)) return;
  if (*exponent == 1) {
    replaceOutput(patch, id, x);
  } else if (*exponent == 2) {
    patch.setOp(id, "Mul");
    patch.setInputs(id, {x, x});
  } else if (*exponent == 3) {
    ValueId square = emitBefore(patch, id, id, "Mul", {x, x}, {}, graph.type(out));
    patch.setOp(id, "Mul");
    patch.setInputs(id, {square, x});
  } else if (*exponent == 0.5 && isNonNegative(graph, x)) {
    patch.setOp(id, "Sqrt");
    patch.setInputs(id, {x});
  }
}

void doubleInverse(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  NodeId inner = producerIs(graph, graph.node(id).input(0), graph.node(id).op);
  if (inner.isValid() && sameType(graph, graph.node(inner).input(0), graph.node(id).outputs[0]))
    replaceOutput(patch, id, graph.node(inner).input(0));
}

void twiceTheSame(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  if (producerIs(graph, graph.node(id).input(0), graph.node(id).op).isValid()) becomeInput(patch, id, 0);
}

void identity(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  ValueId in = graph.node(id).input(0), out = graph.node(id).outputs[0];
  // A model output that is a model input, a constant or another output keeps the node.
  if (!in.isValid() || !out.isValid()) return;
  replaceOutput(patch, id, in);
}

void dropout(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  bool trains = node.hasInput(2) && splatOf(graph, node.input(2)) != 0.0;
  bool wantsMask = node.outputs.size() > 1 && node.outputs[1].isValid() && graph.isUsed(node.outputs[1]);
  if (!trains && !wantsMask) becomeInput(patch, id, 0);
}

/// Every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == DType::Bool) return true;
  auto mantissa = [](DType t) {
    switch (t) {
      case DType::F64:
        return 53;
      case DType::F32:
        return 24;
      case DType::F16:
        return 11;
      case DType::BF16:
        return 8;
      default:
        return isFloat(t) ? 0 : dtypeBits(t) - (isSignedInt(t) ? 1 : 0);
    }
  };
  if (mantissa(from) == 0 || mantissa(to) == 0) return false;
  if (isFloat(to)) return mantissa(to) >= mantissa(from) && (!isFloat(from) || to == DType::F64 || to == DType::F32);
  if (isFloat(from)) return false;
  if (isSignedInt(from) && isUnsignedInt(to)) return false;
  return mantissa(to) >= mantissa(from);
}

void castRules(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  if (becomeInput(patch, id, 0)) return;
  NodeId inner = producerIs(graph, graph.node(id).input(0), "Cast");
  if (!inner.isValid()) return;
  ValueId x = graph.node(inner).input(0), middle = graph.node(id).input(0);
  if (!holds(graph.type(middle).dtype, graph.type(x).dtype)) return;
  if (sameType(graph, x, graph.node(id).outputs[0]))
    replaceOutput(patch, id, x);
  else
    patch.setInput(id, 0, x);
}

void whereRules(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  if (std::optional<double> condition = splatOf(graph, node.input(0))) {
    becomeInput(patch, id, *condition != 0 ? 1 : 2);
  } else if (node.input(1) == node.input(2)) {
    becomeInput(patch, id, 1);
  }
}

void variadicOfOne(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  if (node.inputs.size() == 1)
    becomeInput(patch, id, 0);
  else if (node.inputs.size() == 2 && node.op == "Sum")
    patch.setOp(id, "Add");
}

void clipNothing(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool low = !node.hasInput(1) || splatOf(graph, node.input(1)) == -kInfinity;
  bool high = !node.hasInput(2) || splatOf(graph, node.input(2)) == kInfinity;
  if (low && high) becomeInput(patch, id, 0);
}

/// and(x, true), or(x, false)
void logicNeutral(Patch& patch, NodeId id) { dropNeutral(patch, id, patch.graph().node(id).op == "And" ? 1 : 0, true); }

}  // namespace

const std::vector<SimplifyRule>& arithmeticRules() {
  static const std::vector<SimplifyRule> kRules = {
      {"Add", addZero},         {"Sub", subZero},       {"Mul", mulOne},        {"Div", divOne},
      {"Div", divByPowerOfTwo}, {"Pow", cheaperPow},    {"Neg", doubleInverse}, {"Not", doubleInverse},
      {"Relu", twiceTheSame},   {"Abs", twiceTheSame},  {"Ceil", twiceTheSame}, {"Floor", twiceTheSame},
      {"Round", twiceTheSame},  {"Identity", identity}, {"Dropout", dropout},   {"Cast", castRules},
      {"Where", whereRules},    {"Max", variadicOfOne}, {"Min", variadicOfOne}, {"Sum", variadicOfOne},
      {"Mean", variadicOfOne},  {"Clip", clipNothing},  {"And", logicNeutral},  {"Or", logicNeutral},
  };
  return kRules;
}

}  // namespace locution::passes

// Operators of com.microsoft, as exporters and ONNX Runtime's optimiser write them, made of operators of ai.onnx.
#include "frontend/onnx/messages.h"
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {
namespace {

using graph::ValueId;

graph::Attrs floatsAs(const char* name, double value) {
  graph::Attrs attrs;
  attrs[name] = value;
  return attrs;
}

/// Binds output 0 to `value` after the activation that a fused node names. `parameters`: of the activation, in ONNX's order.
Status finishActivation(NodeContext& c, ValueId value, const std::vector<double>& parameters) {
  std::string activation = c.textAttr("activation", "");
  auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (activation.empty()) {
    c.bind(0, value);
  } else if (activation == "Relu" || activation == "Sigmoid" || activation == "Tanh" || activation == "Softsign") {
    c.finish(activation, {value}, {});
  } else if (activation == "LeakyRelu") {
    c.finish(activation, {value}, floatsAs("alpha", parameter(0, 0.01)));
  } else if (activation == "HardSigmoid") {
    graph::Attrs attrs = floatsAs("alpha", parameter(0, 0.2));
    attrs["beta"] = parameter(1, 0.5);
    c.finish(activation, {value}, std::move(attrs));
  } else if (activation == "Clip") {
    ValueId low = c.addScalarLike(parameter(0, -3.4028234663852886e+38), value, "min");
    ValueId high = c.addScalarLike(parameter(1, 3.4028234663852886e+38), value, "max");
    c.finish(activation, {value, low, high}, {});
  } else {
    return c.unsupported("activation " + named(activation));
  }
  return Status::ok();
}

/// input + skip (+ bias), which may be an output of its own.
ValueId skipSum(NodeContext& c, ValueId bias) {
  ValueId sum = c.add("Add", {c.input(0), c.input(1)});
  return bias.isValid() ? c.add("Add", {sum, bias}) : sum;
}

}  // namespace

Status gelu(NodeContext& c) {
  c.finish("Gelu", {c.input(0)}, {});
  return Status::ok();
}

Status biasGelu(NodeContext& c) {
  c.finish("Gelu", {c.add("Add", {c.input(0), c.input(1)})}, {});
  return Status::ok();
}

Status fastGelu(NodeContext& c) {
  graph::Attrs attrs;
  attrs["approximate"] = std::string("tanh");
  ValueId x = c.has(1) ? c.add("Add", {c.input(0), c.input(1)}) : c.input(0);
  c.finish("Gelu", {x}, std::move(attrs));
  return Status::ok();
}

/// x * sigmoid(alpha * x)
Status quickGelu(NodeContext& c) {
  ValueId alpha = c.addScalarLike(c.floatAttr("alpha", 1.702), c.input(0), "alpha");
  ValueId gate = c.add("Sigmoid", {c.add("Mul", {c.input(0), alpha})});
  c.finish("Mul", {c.input(0), gate}, {});
  return Status::ok();
}

/// The rank isn't known here, so a transposed operand is read by an Einsum.
Status fusedMatMul(NodeContext& c) {
  if (c.intAttr("transBatchA", 0) != 0 || c.intAttr("transBatchB", 0) != 0)
    return c.unsupported("transBatchA, transBatchB");
  bool transA = c.intAttr("transA", 0) != 0;
  bool transB = c.intAttr("transB", 0) != 0;
  double alpha = c.floatAttr("alpha", 1);
  std::string op = "MatMul";
  graph::Attrs attrs;
  if (transA || transB) {
    op = "Einsum";
    attrs["equation"] = std::string(transA ? "...mi" : "...im") + (transB ? ",...jm" : ",...mj") + "->...ij";
  }
  if (alpha == 1) {
    c.finish(op, {c.input(0), c.input(1)}, std::move(attrs));
    return Status::ok();
  }
  ValueId product = c.add(op, {c.input(0), c.input(1)}, std::move(attrs));
  c.finish("Mul", {product, c.addScalarLike(alpha, product, "alpha")}, {});
  return Status::ok();
}

Status fusedConv(NodeContext& c) {
  std::vector<double> parameters;
  if (auto at = c.attrs().find("activation_params"); at != c.attrs().end())
    parameters = std::get<std::vector<double>>(at->second);
  graph::Attrs attrs = c.attrs();
  attrs.erase("activation");
  attrs.erase("activation_params");
  ValueId value = c.add("Conv", {c.input(0), c.input(1), c.input(2)}, std::move(attrs));
  if (c.has(3)) value = c.add("Add", {value, c.input(3)});
  return finishActivation(c, value, parameters);
}

Status fusedGemm(NodeContext& c) {
  std::vector<double> parameters;
  graph::Attrs attrs = c.attrs();
  attrs.erase("activation");
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!c.hasAttr(name)) continue;
    parameters.push_back(c.floatAttr(name, 0));
    attrs.erase(name);
  }
  return finishActivation(c, c.add("Gemm", c.inputs(), std::move(attrs)), parameters);
}

Status simplifiedLayerNormalization(NodeContext& c) {
  if (c.wants(1)) return c.unsupported("the output inv_std_var");
  c.finish("RMSNormalization", c.inputs(), c.attrs());
  return Status::ok();
}

Status skipLayerNormalization(NodeContext& c) {
  graph::Attrs attrs = floatsAs("epsilon", c.floatAttr("epsilon", 1e-12));
  attrs["axis"] = int64_t{-1};
  ValueId sum = skipSum(c, c.input(4));
  size_t outputs = c.wants(2) ? 3 : c.wants(1) ? 2 : 1;
  std::vector<ValueId> results =
      c.addMany("LayerNormalization", {sum, c.input(2), c.input(3)}, std::move(attrs), outputs);
  for (size_t i = 0; i < outputs; ++i) c.bind(i, results[i]);
  c.bind(3, sum);
  return Status::ok();
}

Status skipSimplifiedLayerNormalization(NodeContext& c) {
  if (c.wants(1) || c.wants(2)) return c.unsupported("the outputs mean and inv_std_var");
  graph::Attrs attrs = floatsAs("epsilon", c.floatAttr("epsilon", 1e-5));
  attrs["axis"] = int64_t{-1};
  ValueId sum = skipSum(c, c.input(3));
  c.bind(0, c.add("RMSNormalization", {sum, c.input(2)}, std::move(attrs)));
  c.bind(3, sum);
  return Status::ok();
}

}  // namespace locution::frontend::normalise

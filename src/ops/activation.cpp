// Activation functions. Bounds by constants are written as select(x < c, c, x): one instruction, and NaN stays NaN.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace locution::ops {

using loop::Expr;

namespace {

Expr imm(const Expr& like, double value) { return loop::constant(like->type.dtype, value); }

Status activation(ComputeContext& c, const std::function<Expr(const Expr&)>& f) {
  return elementwise(c, [&](const std::vector<Expr>& args) { return shared(args[0], f); });
}

Expr sigmoid(const Expr& x) { return loop::call("sigmoid", {x}); }
Expr exp(const Expr& x) { return loop::call("exp", {x}); }

/// log(1 + y) for y in [0, 1] to a few ulp, without a library call: the rounding of 1 + y is divided out (Kahan).
Expr log1p(const Expr& y) {
  return shared(
      y + 1, [&](const Expr& u) { return loop::select(eq(u, imm(u, 1)), y, loop::call("log", {u}) * (y / (u - 1))); });
}

/// log(1 + exp(x)) that neither overflows nor loses small values.
Expr softplus(const Expr& x) {
  Expr positive = loop::select(lt(x, imm(x, 0)), imm(x, 0), x);
  Expr small = exp(loop::call("abs", {x}) * -1);
  return positive + shared(small, log1p);
}

}  // namespace

Status inferActivation(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  return inferLike(c, c.input(0).dtype);
}

Status computeRelu(ComputeContext& c) {
  return activation(c, [](const Expr& x) { return loop::select(lt(x, imm(x, 0)), imm(x, 0), x); });
}

Status computeLeakyRelu(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 0.01);
  return activation(c, [&](const Expr& x) { return loop::select(lt(x, imm(x, 0)), x * imm(x, alpha), x); });
}

Status inferPRelu(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1}));
  LOCUTION_RETURN_IF_ERROR(needBroadcastTo(c.input(1).shape, c.input(0).shape, "the slope"));
  return inferActivation(c);
}

Status computePRelu(ComputeContext& c) {
  return elementwise(c, [](const std::vector<Expr>& args) {
    return shared(args[0], [&](const Expr& x) { return loop::select(lt(x, imm(x, 0)), args[1] * x, x); });
  });
}

Status computeElu(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 1);
  return activation(c, [&](const Expr& x) { return loop::select(lt(x, imm(x, 0)), (exp(x) - 1) * imm(x, alpha), x); });
}

Status computeSelu(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 1.67326319217681884765625);
  double gamma = c.node().floatAttr("gamma", 1.05070102214813232421875);
  return activation(c, [&](const Expr& x) {
    return loop::select(lt(imm(x, 0), x), x, exp(x) * imm(x, alpha) - imm(x, alpha)) * imm(x, gamma);
  });
}

Status computeCelu(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 1);
  return activation(c, [&](const Expr& x) {
    return loop::select(lt(x, imm(x, 0)), (exp(x / imm(x, alpha)) - 1) * imm(x, alpha), x);
  });
}

Status computeThresholdedRelu(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 1);
  return activation(c, [&](const Expr& x) { return loop::select(lt(imm(x, alpha), x), x, imm(x, 0)); });
}

Status computeHardSigmoid(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 0.2), beta = c.node().floatAttr("beta", 0.5);
  return activation(c, [&](const Expr& x) { return clampTo(x * imm(x, alpha) + imm(x, beta), 0, 1); });
}

Status computeHardSwish(ComputeContext& c) {
  return activation(c, [](const Expr& x) { return x * clampTo(x * imm(x, 1.0 / 6) + imm(x, 0.5), 0, 1); });
}

Status computeSoftplus(ComputeContext& c) { return activation(c, softplus); }

Status computeSoftsign(ComputeContext& c) {
  return activation(c, [](const Expr& x) { return x / (loop::call("abs", {x}) + 1); });
}

Status computeMish(ComputeContext& c) {
  // tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2) with e = exp(x); past 20 it is 1 in every float type.
  return activation(c, [](const Expr& x) {
    Expr bounded = loop::select(lt(imm(x, 20), x), imm(x, 20), x);
    Expr ratio = shared(exp(bounded),
                        [](const Expr& e) { return shared(e * (e + 2), [](const Expr& n) { return n / (n + 2); }); });
    return x * ratio;
  });
}

Status computeGelu(ComputeContext& c) {
  std::string approximate = c.node().stringAttr("approximate", "none");
  LOCUTION_RETURN_IF_ERROR(needOneOf("approximate", approximate, {"none", "tanh"}));
  return activation(c, [&](const Expr& x) {
    if (approximate == "none") return x * imm(x, 0.5) * (loop::call("erf", {x * imm(x, M_SQRT1_2)}) + 1);
    // (1 + tanh(z)) / 2 = sigmoid(2 z)
    Expr z = (x + x * x * x * imm(x, 0.044715)) * imm(x, 2 * std::sqrt(2 / M_PI));
    return x * sigmoid(z);
  });
}

Status computeSwish(ComputeContext& c) {
  double alpha = c.node().floatAttr("alpha", 1);
  return activation(c, [&](const Expr& x) { return x * sigmoid(x * imm(x, alpha)); });
}

Status computeShrink(ComputeContext& c) {
  double lambd = c.node().floatAttr("lambd", 0.5), bias = c.node().floatAttr("bias", 0);
  return activation(c, [&](const Expr& x) {
    // The formula is about numbers: an integer is compared with a fraction and moved by one, then cut to an integer again.
    DType type = x->type.dtype;
    Expr v = isFloat(type) ? x : loop::cast(DType::F64, x);
    Expr moved = loop::select(lt(v, imm(v, -lambd)), v + imm(v, bias),
                              loop::select(lt(imm(v, lambd), v), v - imm(v, bias), imm(v, 0)));
    return isFloat(type) ? moved : loop::cast(type, moved);
  });
}

Status inferClip(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2}));
  for (size_t i : {1, 2}) {
    if (!c.hasInput(i) || !c.input(i).shape.isStatic() || c.input(i).shape.elements() == 1) continue;
    return Status::error("input " + std::to_string(i) + ": expected a scalar bound, got shape " +
                         c.input(i).shape.str());
  }
  return inferActivation(c);
}

Status computeClip(ComputeContext& c) {
  return injective(c, 0, [&](const std::vector<Expr>& indices) {
    Expr x = widened(c, 0, indices);
    DType t = x->type.dtype;
    for (size_t i : {1, 2}) {
      if (!c.hasInput(i)) continue;
      std::optional<double> constant = constantScalar(c, i);
      // 64-bit integers beyond 2^53 don't fit a double: they go through the load; so does NaN, which makes every element NaN.
      if (constant && (isFloat(t) ? !std::isnan(*constant) : std::abs(*constant) < 0x1p53)) {
        Expr bound = loop::constant(t, *constant);
        x = shared(x, [&](const Expr& v) { return loop::select(i == 1 ? lt(v, bound) : lt(bound, v), bound, v); });
      } else {
        Expr bound = widened(c, i, std::vector<Expr>(c.inputExtents(i).size(), loop::index(0)));
        x = i == 1 ? maxOf(x, bound) : minOf(x, bound);
      }
    }
    return x;
  });
}

namespace {

/// Known to be one number, and zero.
bool isZero(const Tensor* t) { return t && t->elements() == 1 && t->elementAsDouble(0) == 0; }

}  // namespace

Status inferDropout(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Tensor* training = c.hasInput(2) ? c.constant(2) : nullptr;
  bool dropsNothing = c.hasInput(1) && isZero(c.constant(1));
  if (training && !isZero(training) && !dropsNothing)
    return Status::error("input 2 (training_mode) is true: only inference is supported");
  c.setOutput(1, DType::Bool, c.input(0).shape);
  return inferActivation(c);
}

Status computeDropout(ComputeContext& c) {
  bool dropsNothing = c.hasInput(1) && isZero(c.constant(1));
  if (c.hasInput(2) && !c.constant(2) && !dropsNothing)
    return Status::error("input 2 (training_mode) must be known at compile time, and false");
  if (c.wantsOutput(0))
    LOCUTION_RETURN_IF_ERROR(injective(c, 0, [&](const std::vector<Expr>& indices) { return c.at(0, indices); }));
  if (c.wantsOutput(1))
    LOCUTION_RETURN_IF_ERROR(injective(c, 1, [](const std::vector<Expr>&) { return loop::constant(DType::Bool, 1); }));
  return Status::ok();
}

}  // namespace locution::ops

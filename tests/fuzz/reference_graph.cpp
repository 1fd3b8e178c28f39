#include "reference_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "ops/contexts.h"
#include "ops/op.h"

namespace locution::fuzz {

namespace {

using graph::NodeId;
using graph::ValueId;

// One rounding, relative to the value.
double roundingOf(DType t) {
  switch (t) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    default:
      return 0.25;
  }
}

// What these give is one of the values they read, or a verdict on them: the same bits in, the same bits out.
bool isExact(const graph::Node& node) {
  static const std::set<std::string> kExact = {
      "Abs",           "Neg",       "Sign",           "Ceil",      "Floor",
      "Round",         "Relu",      "IsNaN",          "IsInf",     "Max",
      "Min",           "Where",     "Clip",           "Equal",     "Less",
      "LessOrEqual",   "Greater",   "GreaterOrEqual", "BitCast",   "ArgMax",
      "ArgMin",        "Hardmax",   "ReduceMax",      "ReduceMin", "MaxPool",
      "GlobalMaxPool", "MaxUnpool", "Cast",           "CastLike",  "ScatterElements",
      "ScatterND",     "Mod"};
  const ops::OpDef* op = ops::findOp(node.op);
  if (node.op == "Resize" || node.op == "GridSample" || node.op == "AffineGrid" || node.op == "RotaryEmbedding")
    return false;
  return kExact.contains(node.op) || op->pattern == ops::Pattern::Alias || op->pattern == ops::Pattern::Injective;
}

Tensor shaken(const Tensor& t, double roundings, std::mt19937_64& random) {
  Tensor out(t.dtype(), t.dims());
  std::uniform_real_distribution<double> between(-roundings, roundings);
  for (int64_t i = 0; i < t.elements(); ++i) {
    double v = t.elementAsDouble(i);
    // A type's finite values stay finite.
    if (!std::isfinite(v)) {
      out.setElementBits(i, t.elementBits(i));
      continue;
    }
    out.setElement(i, v + v * between(random) * roundingOf(t.dtype()));
    if (!std::isfinite(out.elementAsDouble(i))) out.setElementBits(i, t.elementBits(i));
  }
  return out;
}

// Mathematical functions are a few roundings off, too, which 1 + erf(x) makes much of.
class ShakenCalls : public loop::Mutator {
 public:
  ShakenCalls(double roundings, std::mt19937_64& random) : between_(-roundings, roundings), random_(random) {}
  using loop::Mutator::mutate;
  loop::Expr mutate(const loop::Expr& e) override {
    if (auto found = done_.find(e); found != done_.end()) return found->second;
    loop::Expr out = mutateChildren(e);
    const auto* call = loop::as<loop::Call>(e);
    const DType type = e->type.dtype;
    if (call && isFloat(type) && rounds(call->name)) out = out * factor(*loop::as<loop::Call>(out), type);
    return done_[e] = out;
  }

 private:
  // Every element is off by an amount of its own: what is compared with its neighbours may change places with them.
  loop::Expr factor(const loop::Call& call, DType type) {
    constexpr double kFast = 100;
    const double by = between_(random_) * roundingOf(type);
    loop::Expr same = loop::constant(type, 1 + by);
    if (call.args.empty() || call.args[0]->type.dtype != type) return same;
    loop::Expr wave = loop::call("sin", {call.args[0] * loop::constant(type, kFast)});
    return loop::select(loop::eq(wave, wave), loop::constant(type, 1) + loop::constant(type, by) * wave, same);
  }
  static bool rounds(const std::string& name) {
    static const std::set<std::string> kExact = {"abs",        "floor",   "ceil",     "trunc",
                                                 "round_even", "bitcast", "prefetch", "fmod"};
    return !kExact.contains(name);
  }

  std::uniform_real_distribution<double> between_;
  std::mt19937_64& random_;
  std::map<loop::Expr, loop::Expr> done_;
};

void shakeCalls(loop::Computation& computation, double roundings, std::mt19937_64& random) {
  ShakenCalls calls(roundings, random);
  for (loop::Stage& stage : computation.stages) {
    stage.body = calls.mutate(stage.body);
    if (stage.epilogue) stage.epilogue = calls.mutate(stage.epilogue);
  }
  if (computation.raw) computation.raw = calls.mutate(computation.raw);
}

double number(const Tensor& t, int64_t i) {
  return isInteger(t.dtype()) ? static_cast<double>(t.elementAsInt(i)) : t.elementAsDouble(i);
}
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double relative(DType t) { return t == DType::F64 ? 1e-9 : std::max(1e-4, 4 * roundingOf(t)); }

}  // namespace

Result<std::vector<Tensor>> runReference(const graph::Graph& g, const std::map<std::string, Tensor>& inputs,
                                         double shake, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::map<ValueId, Tensor> values;
  for (ValueId v : g.main().inputs) values[v] = inputs.at(g.value(v).name);
  auto at = [&](ValueId v) { return g.constant(v) ? *g.constant(v) : values.at(v); };
  for (NodeId n : g.main().nodes) {
    auto loops = ops::computeNodeWithValues(g, n);
    if (!loops.isOk()) return loops.status().withContext(graph::describe(g, n));
    // Several checks of one value are of the components of tuples.
    auto countOf = [&](size_t end, ValueId v) {
      return std::count_if(loops->checks.begin(), loops->checks.begin() + static_cast<std::ptrdiff_t>(end),
                           [&](const ops::IndexCheck& c) { return c.value == v; });
    };
    for (size_t k = 0; k < loops->checks.size(); ++k) {
      const ops::IndexCheck& c = loops->checks[k];
      Tensor t = at(c.value);
      const int64_t width = countOf(loops->checks.size(), c.value);
      for (int64_t i = countOf(k, c.value); i < t.elements(); i += width)
        if (t.elementAsInt(i) < c.low || t.elementAsInt(i) > c.high)
          return Status::error("index out of range").withContext(graph::describe(g, n));
    }
    const bool inexact = shake > 0 && !isExact(g.node(n));
    if (inexact) shakeCalls(loops->computation, shake, random);
    std::vector<Tensor> params;
    for (ValueId v : loops->inputs) {
      Tensor t = at(v);
      bool wants = inexact && isFloat(t.dtype()) && !g.constant(v);
      params.push_back(wants ? shaken(t, shake, random) : t);
    }
    for (ValueId v : loops->outputs) params.emplace_back(g.type(v).dtype, g.type(v).shape.extents());
    Status s = loop::interpret(loop::naiveLoops(loops->computation), params);
    if (!s.isOk()) return s.withContext(graph::describe(g, n));
    for (size_t i = 0; i < loops->outputs.size(); ++i) values[loops->outputs[i]] = params[loops->inputs.size() + i];
  }
  std::vector<Tensor> out;
  for (ValueId v : g.main().outputs) out.push_back(at(v));
  return out;
}

std::string differenceFromReference(const graph::Graph& g, const std::map<std::string, Tensor>& inputs,
                                    const std::vector<Tensor>& want, const std::vector<Tensor>& have, uint64_t seed) {
  constexpr int kRuns = 12;
  std::vector<std::vector<Tensor>> others;
  for (size_t o = 0; o < want.size(); ++o) {
    std::string name = "output " + g.value(g.main().outputs[o]).name;
    if (want[o].dtype() != have[o].dtype() || want[o].dims() != have[o].dims())
      return name + " has the type " + std::string(dtypeName(have[o].dtype())) + "[" + have[o].shape().str() +
             "], not " + std::string(dtypeName(want[o].dtype())) + "[" + want[o].shape().str() + "]";
    double size = 0;
    for (int64_t i = 0; i < want[o].elements(); ++i)
      if (std::isfinite(number(want[o], i))) size = std::max(size, std::fabs(number(want[o], i)));
    for (int64_t i = 0; i < want[o].elements(); ++i) {
      double a = number(want[o], i), b = number(have[o], i);
      if (same(a, b)) continue;
      bool fraction = isFloat(want[o].dtype());
      double allowed = fraction ? relative(want[o].dtype()) * (std::fabs(a) + 0.01 * std::min(1.0, size)) : 0;
      if (std::fabs(a - b) <= allowed) continue;
      for (int r = static_cast<int>(others.size()); r < kRuns; ++r) {
        auto other = runReference(g, inputs, 2.0 * (1 << r % 4), seed + static_cast<uint64_t>(r));
        if (!other.isOk()) return "";  // whether an index is in range hangs on the last bits
        others.push_back(std::move(*other));
      }
      double low = a, high = a;
      bool wild = false;
      for (const auto& other : others) {
        double x = number(other[o], i);
        wild |= !std::isfinite(x) != !std::isfinite(a) || (!std::isfinite(x) && !same(x, a));
        low = std::min(low, x);
        high = std::max(high, x);
      }
      double spread = high - low;
      if (wild || std::fabs(a - b) <= allowed + 8 * spread) continue;
      // A value on the edge between two integers, behind inexact arithmetic.
      char text[160];
      std::snprintf(text, sizeof text, ", element %lld: %.9g, not %.9g (allowed %.3g, spread %.3g)",
                    static_cast<long long>(i), b, a, allowed, spread);
      return name + text;
    }
  }
  return "";
}

}  // namespace locution::fuzz

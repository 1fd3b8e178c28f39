// Recipes of reductions, scans, normalisations and losses.
#include "graph_maker.h"

namespace locution::fuzz {

namespace {

using graph::Attrs;

ValueId vector(GraphMaker& g, DType t, int64_t n) { return g.value(t, {n}); }

bool loss(GraphMaker& g, const std::string& op) {
  int64_t n = 1 + g.pick(4), c = 1 + g.pick(5);
  Ints d = {n, c}, target = {n};
  for (int64_t i = g.pick(3); i-- > 0;) {
    d.push_back(1 + g.pick(4));
    target.push_back(d.back());
  }
  DType t = g.floatDType();
  Attrs a;
  g.maybe(a, "reduction", std::string(g.oneOf({"none", "mean", "sum"})));
  if (g.chance(3)) a["ignore_index"] = g.pick(c + 2) - 1;
  ValueId w = g.chance(2) ? ValueId{} : vector(g, t, c);
  return g.make(op, {g.value(t, d), g.indices(g.oneOf({DType::I64, DType::I32}), target, 0, c - 1), w}, a,
                op == "SoftmaxCrossEntropyLoss" ? 2 : 1);
}

}  // namespace

void addReductionRecipes(std::vector<Recipe>& out) {
  out.push_back({{"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2",
                  "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"},
                 [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric();
                   Attrs a;
                   g.maybe(a, "keepdims", g.pick(2));
                   g.maybe(a, "noop_with_empty_axes", g.pick(2));
                   return g.make(op, {x, g.chance(4) ? ValueId{} : g.ints(g.axesOf(x))}, a);
                 }});
  out.push_back({{"ArgMax", "ArgMin"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric(1);
                   Attrs a{{"axis", g.axisOf(x)}};
                   g.maybe(a, "keepdims", g.pick(2));
                   g.maybe(a, "select_last_index", g.pick(2));
                   return g.make(op, {x}, a);
                 }});
  out.push_back({{"Softmax", "LogSoftmax", "Hardmax", "LpNormalization"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.floating(1);
                   Attrs a{{"axis", g.axisOf(x)}};
                   if (op == "LpNormalization") g.maybe(a, "p", 1 + g.pick(2));
                   return g.make(op, {x}, a);
                 }});
  out.push_back({{"CumSum", "CumProd"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric(1);
                   Attrs a;
                   g.maybe(a, "exclusive", g.pick(2));
                   g.maybe(a, "reverse", g.pick(2));
                   return g.make(op, {x, g.constant(Tensor::scalarI64(g.axisOf(x)))}, a);
                 }});
  out.push_back({{"LayerNormalization", "RMSNormalization"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.floating(1);
                   int64_t axis = g.axisOf(x);
                   Ints d = g.dims(x);
                   Ints tail(d.begin() + (axis < 0 ? axis + g.rank(x) : axis), d.end());
                   std::vector<ValueId> in = {x, g.value(g.dtype(x), tail)};
                   bool layer = op == "LayerNormalization";
                   if (layer && g.chance(2)) in.push_back(g.value(g.dtype(x), tail));
                   Attrs a{{"axis", axis}};
                   g.maybe(a, "epsilon", static_cast<double>(static_cast<float>(g.real(1e-5, 0.1))));
                   return g.make(op, in, a, layer ? 3 : 1);
                 }});
  out.push_back({{"MeanVarianceNormalization"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.floating(1);
                   return g.make(op, {x}, {{"axes", g.axesOf(x)}});
                 }});
  out.push_back({{"BatchNormalization", "InstanceNormalization"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.floating(op[0] == 'B' ? 2 : 3);
                   int64_t c = g.dims(x)[1];
                   DType t = g.dtype(x);
                   std::vector<ValueId> in = {x, vector(g, t, c), vector(g, t, c)};
                   if (op[0] == 'B') {
                     Tensor variance(t, {c});
                     for (int64_t i = 0; i < c; ++i) variance.setElement(i, g.real(0.25, 2));
                     in.push_back(vector(g, t, c));
                     in.push_back(g.constant(variance));
                   }
                   Attrs a;
                   g.maybe(a, "epsilon", static_cast<double>(static_cast<float>(g.real(1e-5, 0.1))));
                   if (op[0] != 'B' || g.chance(2)) return g.make(op, in, a);
                   a["training_mode"] = int64_t{1};
                   g.maybe(a, "momentum", g.real(0, 1));
                   return g.make(op, in, a, 3);
                 }});
  out.push_back({{"GroupNormalization"}, [](GraphMaker& g, const std::string& op) {
                   int64_t groups = 1 + g.pick(3), c = groups * (1 + g.pick(3));
                   Ints d = {1 + g.pick(2), c, 1 + g.pick(5)};
                   if (g.chance(2)) d.push_back(1 + g.pick(5));
                   DType t = g.floatDType();
                   return g.make(op, {g.value(t, d), vector(g, t, c), vector(g, t, c)}, {{"num_groups", groups}});
                 }});
  out.push_back({{"LRN"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a{{"size", 1 + g.pick(5)}};
                   g.maybe(a, "alpha", g.real(1e-4, 1));
                   g.maybe(a, "beta", g.real(0.3, 1));
                   g.maybe(a, "bias", g.real(0.5, 2));
                   return g.make(op, {g.floating(3)}, a);
                 }});
  out.push_back({{"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   if (op == "GlobalLpPool") a["p"] = 1 + g.pick(3);
                   return g.make(op, {g.floating(3)}, a);
                 }});
  out.push_back({{"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}, loss});
}

}  // namespace locution::fuzz

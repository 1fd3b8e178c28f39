#include "train/gradient_cases.h"

namespace locution::train {

Tensor numbers(std::vector<int64_t> dims, double low, double high, uint64_t seed) {
  Tensor t(DType::F64, std::move(dims));
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < t.elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    t.setElement(i, low + (high - low) * static_cast<double>(state >> 11) / 0x1p53);
  }
  return t;
}

namespace {

Tensor ints(const std::vector<int64_t>& v) { return Tensor::vectorI64(v); }
Tensor places(std::vector<int64_t> dims, const std::vector<int64_t>& v) {
  return Tensor::of<int64_t>(DType::I64, std::move(dims), v);
}
Tensor condition(std::vector<int64_t> dims) {
  Tensor t(DType::Bool, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) t.setElementInt(i, i % 3 == 0);
  return t;
}
Tensor of(const std::vector<double>& v) { return Tensor::of<double>(DType::F64, {static_cast<int64_t>(v.size())}, v); }
graph::Attr text(const char* t) { return std::string(t); }
graph::Attr whole(int64_t n) { return n; }
graph::Attr list(std::vector<int64_t> v) { return v; }

using Cases = std::multimap<std::string, GradientCase>;

void addUnary(Cases& t) {
  const Tensor any = numbers({2, 3}, -2, 2), positive = numbers({2, 3}, 0.2, 3), inside = numbers({2, 3}, -0.9, 0.9);
  for (const char* op : {"Abs", "Neg", "Exp", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Erf", "Sigmoid",
                         "Identity", "Sign", "Ceil", "Floor", "Round"})
    t.insert({op, {{any}}});
  for (const char* op : {"Reciprocal", "Sqrt", "Log"}) t.insert({op, {{positive}}});
  for (const char* op : {"Tan", "Asin", "Acos", "Atanh"}) t.insert({op, {{inside}}});
  t.insert({"Acosh", {{numbers({2, 3}, 1.2, 3)}}});
  t.insert({"Cast", {{any}, {{"to", text("float64")}}}});
  t.insert({"CastLike", {{any, numbers({1}, 0, 1)}, {}, {1}}});
}

void addActivations(Cases& t) {
  // On both sides of every threshold, at none.
  const Tensor x = of({-5.3, -2.1, -1.3, -0.8, -0.3, 0.2, 0.4, 0.9, 1.7, 2.4, 5.6});
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid", "HardSwish",
                         "Softplus", "Softsign", "Mish", "Gelu", "Swish", "Shrink"})
    t.insert({op, {{x}}});
  t.insert({"Gelu", {{x}, {{"approximate", text("tanh")}}}});
  t.insert({"Celu", {{x}, {{"alpha", 2.5}}}});
  t.insert({"Elu", {{x}, {{"alpha", 0.5}}}});
  t.insert({"Swish", {{x}, {{"alpha", 1.7}}}});
  t.insert({"PRelu", {{numbers({2, 3}, -2, 2), numbers({3}, 0.1, 0.5)}}});
  t.insert({"Clip", {{x, Tensor::of<double>(DType::F64, {}, {-1}), Tensor::of<double>(DType::F64, {}, {1.5})}}});
  t.insert({"Clip", {{x, Tensor(), Tensor::of<double>(DType::F64, {}, {1.5})}, {}, {2}}});
}

void addBinary(Cases& t) {
  const Tensor a = numbers({2, 3, 4}, -2, 2, 3), b = numbers({3, 1}, 0.5, 2, 5),
               positive = numbers({2, 3, 4}, 0.5, 2, 6);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    t.insert({op, {{a, b}}});
    t.insert({op, {{b, a.dims() == b.dims() ? a : positive}}});
  }
  for (const char* op : {"Max", "Min", "Mean", "Sum"}) t.insert({op, {{a, b, positive}}});
  t.insert({"Mod", {{positive, numbers({3, 1}, 0.31, 0.77, 5)}, {{"fmod", whole(1)}}}});
  t.insert({"Pow", {{positive, b}}});
  t.insert({"Pow", {{a, Tensor::of<double>(DType::F64, {}, {2})}, {}, {1}}});
  t.insert({"Pow", {{a, Tensor::of<double>(DType::F64, {}, {3})}, {}, {1}}});
  t.insert({"Where", {{condition({3, 1}), a, b}}});
}

void addMovement(Cases& t) {
  const Tensor x = numbers({2, 3, 4}, -2, 2);
  t.insert({"Reshape", {{x, ints({4, 6})}, {}, {1}}});
  t.insert({"Flatten", {{x}}});
  t.insert({"Squeeze", {{numbers({2, 1, 3}, -1, 1), ints({1})}, {}, {1}}});
  t.insert({"Unsqueeze", {{x, ints({1})}, {}, {1}}});
  t.insert({"Transpose", {{x}, {{"perm", list({1, 2, 0})}}}});
  t.insert({"Transpose", {{x}}});
  t.insert({"Concat", {{x, numbers({2, 1, 4}, -1, 1, 7)}, {{"axis", whole(1)}}}});
  t.insert({"Split", {{x, ints({1, 3})}, {{"axis", whole(-1)}}, {1}, 2}});
  t.insert({"Expand", {{numbers({3, 1}, -1, 1), ints({2, 3, 4})}, {}, {1}}});
  t.insert({"Tile", {{x, ints({1, 2, 3})}, {}, {1}}});
  t.insert({"Trilu", {{x}}});
  t.insert({"Trilu", {{x, places({}, {-1})}, {{"upper", whole(0)}}, {1}}});
  for (int64_t reverse : {0, 1})
    for (int64_t exclusive : {0, 1})
      t.insert({"CumSum", {{x, places({}, {1})}, {{"reverse", whole(reverse)}, {"exclusive", whole(exclusive)}}, {1}}});
}

void addSelection(Cases& t) {
  const Tensor x = numbers({4, 3, 5}, -2, 2);
  t.insert({"Slice", {{x, ints({1, -4}), ints({3, 100}), ints({0, 2})}, {}, {1, 2, 3}}});
  t.insert({"Slice", {{x, ints({-1, 1}), ints({-100, 5}), ints({0, 2}), ints({-1, 2})}, {}, {1, 2, 3, 4}}});
  t.insert({"Pad", {{x, ints({1, 0, 2, 0, 0, 1})}, {}, {1}}});
  t.insert({"Pad", {{x, ints({1, 2}), Tensor(), ints({-1})}, {}, {1, 3}}});
  t.insert({"Gather", {{x, places({2, 3}, {0, 3, 3, -1, 1, 0})}}});
  t.insert({"Gather", {{x, places({2, 2}, {1, 1, 4, -5})}, {{"axis", whole(2)}}}});
  t.insert({"Gather", {{x, places({}, {1})}, {{"axis", whole(1)}}}});
  t.insert({"GatherElements", {{x, places({4, 3, 1}, {0, 1, 2, 3, 4, -1, -5, 1, 1, 0, 0, 2})}, {{"axis", whole(-1)}}}});
  t.insert({"GatherElements", {{x, places({2, 1, 2}, {0, 1, 1, -1})}, {{"axis", whole(0)}}}});
  t.insert({"GatherND", {{x, places({3, 2}, {0, 1, 3, -1, 0, 1})}}});
  t.insert({"EyeLike", {{numbers({3, 3}, -1, 1)}}});
}

void addReductions(Cases& t) {
  const Tensor x = numbers({2, 3, 4}, -2, 2), positive = numbers({2, 3, 4}, 0.2, 2);
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                         "ReduceLogSumExp", "ReduceLogSum"}) {
    const Tensor& in = std::string(op) == "ReduceLogSum" ? positive : x;
    t.insert({op, {{in, ints({0, -1})}, {{"keepdims", whole(0)}}, {1}}});
    t.insert({op, {{in, ints({1})}, {}, {1}}});
    t.insert({op, {{in}}});
  }
  t.insert({"ReduceSum", {{x, ints({})}, {{"noop_with_empty_axes", whole(1)}}, {1}}});
  t.insert({"GlobalAveragePool", {{numbers({2, 3, 2, 2}, -1, 1)}}});
  t.insert({"Hardmax", {{x}}});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    t.insert({op, {{x}}});
    t.insert({op, {{x}, {{"axis", whole(1)}}}});
  }
  const Tensor scale = numbers({4}, 0.5, 2, 8), bias = numbers({4}, -1, 1, 9);
  t.insert({"LayerNormalization", {{x, scale, bias}}});
  t.insert({"LayerNormalization", {{x, numbers({3, 4}, 0.5, 2, 8)}, {{"axis", whole(1)}, {"epsilon", 0.1}}}});
  t.insert({"RMSNormalization", {{x, scale}}});
}

void addContractions(Cases& t) {
  auto matrix = [](std::vector<int64_t> dims, uint64_t seed) { return numbers(std::move(dims), -1, 1, seed); };
  t.insert({"MatMul", {{matrix({2, 3}, 1), matrix({3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({2, 5, 3}, 1), matrix({3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({2, 2, 3}, 1), matrix({2, 3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({2, 1, 2, 3}, 1), matrix({3, 3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({2, 3}, 1), matrix({2, 3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({3}, 1), matrix({3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({3}, 1), matrix({2, 3, 4}, 2)}}});
  t.insert({"MatMul", {{matrix({2, 2, 3}, 1), matrix({3}, 2)}}});
  t.insert({"MatMul", {{matrix({3}, 1), matrix({3}, 2)}}});
  for (int64_t a : {0, 1})
    for (int64_t b : {0, 1})
      t.insert({"Gemm",
                {{matrix(a ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3}, 1),
                  matrix(b ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{3, 4}, 2), matrix({4}, 3)},
                 {{"transA", whole(a)}, {"transB", whole(b)}, {"alpha", 0.5}, {"beta", 1.5}}}});
  t.insert({"Einsum", {{matrix({2, 3, 4}, 1), matrix({2, 5, 4}, 2)}, {{"equation", text("bij,bkj->bik")}}}});
  t.insert(
      {"Einsum", {{matrix({2, 3}, 1), matrix({3, 4}, 2), matrix({4}, 3)}, {{"equation", text("ij, jk, k -> i")}}}});
  t.insert({"Einsum", {{matrix({2, 3}, 1)}, {{"equation", text("ij->j")}}}});
}

void addLosses(Cases& t) {
  const Tensor scores = numbers({3, 4, 2}, -2, 2), weights = numbers({4}, 0.5, 2, 4);
  const Tensor labels = places({3, 2}, {0, 3, 1, 1, 2, 0}), some = places({3, 2}, {0, 7, 1, 1, 7, 0});
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})
    for (const char* reduction : {"none", "sum", "mean"}) {
      const graph::Attrs attrs = {{"reduction", text(reduction)}};
      graph::Attrs ignoring = attrs;
      ignoring["ignore_index"] = whole(7);
      t.insert({op, {{scores, labels}, attrs}});
      t.insert({op, {{scores, labels, weights}, attrs, {2}}});
      t.insert({op, {{scores, some}, ignoring}});
      t.insert({op, {{scores, some, weights}, ignoring, {2}}});
    }
}

}  // namespace

const Cases& gradientCases() {
  static const Cases cases = [] {
    Cases t;
    addUnary(t);
    addActivations(t);
    addBinary(t);
    addMovement(t);
    addSelection(t);
    addReductions(t);
    addContractions(t);
    addLosses(t);
    return t;
  }();
  return cases;
}

}  // namespace locution::train

#include "driver/drawn.h"

#include <cmath>
#include <random>

#include "graph/patch.h"
#include "support/hash.h"

namespace locution::driver {

namespace {

using graph::Attrs;
using graph::ValueId;
using Ints = std::vector<int64_t>;

/// Multiply-adds of a layer: a kernel of more takes longer to measure than it teaches.
constexpr double kMostWork = 3e8;

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed), patch_(graph_) { patch_.setName("drawn"); }

  graph::Graph run();

 private:
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }
  /// An extent in [low, high], its logarithm uniform.
  int64_t extent(int64_t low, int64_t high) {
    const double span = std::log(static_cast<double>(high + 1)) - std::log(static_cast<double>(low));
    const auto e = static_cast<int64_t>(std::exp(std::log(static_cast<double>(low)) + unit() * span));
    return std::clamp(e, low, high);
  }
  /// Channels and widths of real networks are mostly multiples of eight.
  int64_t width(int64_t low, int64_t high) {
    const int64_t e = extent(low, high);
    return e >= 16 && chance(0.6) ? (e + 4) / 8 * 8 : e;
  }
  template <typename T>
  T oneOf(std::initializer_list<T> list) {
    return list.begin()[random_() % list.size()];
  }

  ValueId input(const Ints& dims) {
    return patch_.addInput(graph_.mainRegion(), "x", {DType::F32, Shape::of(dims), {}, {}, ValueKind::Tensor});
  }
  /// Contents don't matter for how it is scheduled, but zeros and equal weights would be simplified away.
  ValueId weight(const Ints& dims) {
    Tensor t(DType::F32, dims);
    auto* data = reinterpret_cast<float*>(t.raw());
    for (int64_t i = 0, n = t.elements(); i < n; ++i)
      data[i] = 0.5F + static_cast<float>((static_cast<uint64_t>(i) * 2654435761U + salt_) % 8191) / 8191.0F;
    salt_ += 977;
    return patch_.addConstant("w", std::move(t));
  }
  ValueId scalar(float v) {
    Tensor t(DType::F32, Ints{});
    t.setElement(0, v);
    return patch_.addConstant("c", std::move(t));
  }
  ValueId ints(const Ints& v) { return patch_.addConstant("n", Tensor::vectorI64(v)); }
  ValueId op(const std::string& kind, std::vector<ValueId> inputs, Attrs attrs = {}) {
    graph::Patch::NewNode node{kind, std::move(inputs), std::move(attrs), {ValueType{}}};
    return patch_.output(patch_.append(graph_.mainRegion(), std::move(node)));
  }

  ValueId activated(ValueId x);
  ValueId convolved(ValueId x, int64_t before, int64_t after, const Ints& kernel, const Ints& strides, int64_t groups);
  ValueId image(int64_t channels, int64_t* batch, Ints* size, size_t rank, double work);

  ValueId convolution();
  ValueId depthwise();
  ValueId invertedResidual();
  ValueId transposed();
  ValueId linear();
  ValueId batched();
  ValueId attention();
  ValueId rows();
  ValueId pool();
  ValueId points();

  std::mt19937_64 random_;
  graph::Graph graph_;
  graph::Patch patch_;
  uint64_t salt_ = 1;
};

ValueId Drawer::activated(ValueId x) {
  switch (random_() % 8) {
    case 0:
    case 1:
    case 2:
      return op("Relu", {x});
    case 3:
      return op("Clip", {x, scalar(0), scalar(6)});
    case 4:
      return op("Mul", {x, op("Sigmoid", {x})});
    case 5:
      return op("HardSwish", {x});
    case 6: {
      const ValueId erf = op("Erf", {op("Div", {x, scalar(std::sqrt(2.0F))})});
      return op("Mul", {op("Mul", {x, op("Add", {erf, scalar(1)})}), scalar(0.5F)});
    }
    default:
      return x;
  }
}

// An image whose layer costs at most about the limit, `work` being what a pixel costs.
ValueId Drawer::image(int64_t channels, int64_t* batch, Ints* size, size_t rank, double work) {
  *batch = chance(0.7) ? 1 : extent(2, 8);
  const double pixels = std::max(1.0, kMostWork / work / static_cast<double>(*batch));
  const auto high = static_cast<int64_t>(std::clamp(std::pow(pixels, 1.0 / static_cast<double>(rank)), 8.0, 224.0));
  const int64_t side = extent(std::min<int64_t>(5, high), high);
  for (size_t i = 0; i < rank; ++i) size->push_back(i == 0 || chance(0.8) ? side : extent(5, high));
  Ints dims = {*batch, channels};
  dims.insert(dims.end(), size->begin(), size->end());
  return input(dims);
}

ValueId Drawer::convolved(ValueId x, int64_t before, int64_t after, const Ints& kernel, const Ints& strides,
                          int64_t groups) {
  Ints dims = {after, before / groups}, pads;
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  for (int side = 0; side < 2; ++side)
    for (int64_t k : kernel) pads.push_back(k / 2);
  std::vector<ValueId> inputs = {x, weight(dims)};
  if (chance(0.9)) inputs.push_back(weight({after}));
  return op("Conv", std::move(inputs),
            {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"group", groups}});
}

ValueId Drawer::convolution() {
  const size_t rank = chance(0.92) ? 2 : oneOf<size_t>({1, 1, 3});
  const int64_t groups = chance(0.08) ? oneOf<int64_t>({2, 4, 8, 32}) : 1;
  const int64_t before = chance(0.1) ? 3 * groups : groups * width(4, std::max<int64_t>(8, 768 / groups));
  const int64_t after = groups * width(4, std::max<int64_t>(8, 768 / groups));
  const int64_t k = oneOf<int64_t>({1, 1, 1, 3, 3, 3, 3, 5, 7});
  Ints kernel(rank, k), strides(rank, chance(0.25) ? 2 : 1), size;
  if (rank == 2 && chance(0.06)) kernel[random_() % 2] = 1;
  const int64_t inGroup = before / groups;
  double work = static_cast<double>(inGroup) * static_cast<double>(after);
  for (int64_t e : kernel) work *= static_cast<double>(e);
  int64_t batch = 1;
  const ValueId x = image(before, &batch, &size, rank, work);
  ValueId y = convolved(x, before, after, kernel, strides, groups);
  if (chance(0.2) && strides[0] == 1) {
    Ints dims = {batch, after};
    dims.insert(dims.end(), size.begin(), size.end());
    y = op("Add", {y, input(dims)});
  }
  return activated(y);
}

ValueId Drawer::depthwise() {
  const int64_t channels = width(8, 1152);
  const Ints kernel(2, oneOf<int64_t>({3, 3, 3, 5, 7})), strides(2, chance(0.3) ? 2 : 1);
  Ints size;
  int64_t batch = 1;
  const double work = static_cast<double>(channels * kernel[0] * kernel[1]) * 4;
  const ValueId x = image(channels, &batch, &size, 2, work);
  return activated(convolved(x, channels, channels, kernel, strides, channels));
}

ValueId Drawer::invertedResidual() {
  const int64_t before = width(8, 192), hidden = before * oneOf<int64_t>({3, 4, 6}), after = width(8, 192);
  Ints size;
  int64_t batch = 1;
  const double work = static_cast<double>(hidden) * static_cast<double>(before + after + 9);
  const ValueId x = image(before, &batch, &size, 2, work);
  const int64_t k = oneOf<int64_t>({3, 3, 5}), stride = chance(0.3) ? 2 : 1;
  const ValueId y = activated(convolved(x, before, hidden, {1, 1}, {1, 1}, 1));
  return convolved(activated(convolved(y, hidden, hidden, {k, k}, {stride, stride}, hidden)), hidden, after, {1, 1},
                   {1, 1}, 1);
}

ValueId Drawer::transposed() {
  const int64_t before = width(8, 256), after = width(4, 256), k = oneOf<int64_t>({2, 2, 3, 4}), s = 2;
  Ints size;
  int64_t batch = 1;
  const ValueId x = image(before, &batch, &size, 2, static_cast<double>(before * after * k * k));
  return activated(op("ConvTranspose", {x, weight({before, after, k, k}), weight({after})},
                      {{"kernel_shape", Ints{k, k}}, {"strides", Ints{s, s}}}));
}

ValueId Drawer::linear() {
  const int64_t k = width(8, 4096), n = width(8, 4096);
  const double rows = std::max(1.0, kMostWork / (static_cast<double>(k) * static_cast<double>(n)));
  const int64_t m = chance(0.15) ? 1 : extent(1, static_cast<int64_t>(std::min(rows, 1024.0)));
  ValueId y = op("MatMul", {input({m, k}), weight({k, n})});
  if (chance(0.8)) y = op("Add", {y, weight({n})});
  y = activated(y);
  return chance(0.2) ? op("Add", {y, input({m, n})}) : y;
}

ValueId Drawer::batched() {
  const int64_t m = extent(1, 384), k = width(8, 384), n = width(8, 384);
  const double most = std::max(1.0, kMostWork / static_cast<double>(m * k * n));
  const int64_t b = extent(1, static_cast<int64_t>(std::min(most, 64.0)));
  const ValueId x = input({b, m, k});
  if (chance(0.7)) return op("MatMul", {x, input({b, k, n})});
  return op("MatMul", {x, op("Transpose", {input({b, n, k})}, {{"perm", Ints{0, 2, 1}}})});
}

ValueId Drawer::attention() {
  const int64_t d = oneOf<int64_t>({16, 32, 64, 64, 80, 128}), tokens = extent(4, 512);
  const double most = std::max(1.0, kMostWork / static_cast<double>(2 * d * tokens * tokens));
  const int64_t heads = extent(1, static_cast<int64_t>(std::min(most, 16.0)));
  const int64_t queries = chance(0.2) ? 1 : tokens;
  const ValueId k = op("Transpose", {input({1, heads, tokens, d})}, {{"perm", Ints{0, 1, 3, 2}}});
  ValueId scores =
      op("Div", {op("MatMul", {input({1, heads, queries, d}), k}), scalar(std::sqrt(static_cast<float>(d)))});
  if (chance(0.5)) scores = op("Add", {scores, input({1, 1, queries, tokens})});
  return op("MatMul", {op("Softmax", {scores}, {{"axis", int64_t{-1}}}), input({1, heads, tokens, d})});
}

// Softmax, normalisations and reductions along the last axis.
ValueId Drawer::rows() {
  const int64_t n = width(8, 4096), m = extent(1, 2048);
  const ValueId x = input({m, n});
  switch (random_() % 4) {
    case 0:
      return op("Softmax", {x}, {{"axis", int64_t{-1}}});
    case 1:
      return op("LayerNormalization", {x, weight({n}), weight({n})}, {{"axis", int64_t{-1}}});
    case 2: {
      const ValueId mean = op("ReduceMean", {op("Mul", {x, x}), ints({-1})}, {{"keepdims", int64_t{1}}});
      return op("Mul", {op("Div", {x, op("Sqrt", {op("Add", {mean, scalar(1e-5F)})})}), weight({n})});
    }
    default:
      return op(oneOf<const char*>({"ReduceMean", "ReduceMax", "ReduceSum"}), {x, ints({oneOf<int64_t>({0, -1})})},
                {{"keepdims", int64_t{1}}});
  }
}

ValueId Drawer::pool() {
  const int64_t channels = width(8, 1280);
  Ints size;
  int64_t batch = 1;
  const ValueId x = image(channels, &batch, &size, 2, static_cast<double>(channels) * 40);
  if (chance(0.4)) return op("GlobalAveragePool", {x});
  const int64_t k = oneOf<int64_t>({2, 3, 3, 5});
  return op(oneOf<const char*>({"MaxPool", "AveragePool"}), {x},
            {{"kernel_shape", Ints{k, k}}, {"strides", Ints{2, 2}}, {"pads", Ints(4, k / 2)}});
}

// Element by element, with an operand that broadcasts, or in another order.
ValueId Drawer::points() {
  const int64_t a = extent(1, 64), b = extent(1, 256), c = width(8, 1024);
  const ValueId x = input({a, b, c});
  ValueId y = x;
  if (chance(0.25))
    y = op("Transpose", {y}, {{"perm", oneOf<Ints>({{0, 2, 1}, {1, 0, 2}, {2, 1, 0}})}});
  else
    y = op("Mul", {y, oneOf<ValueId>({weight({c}), input({a, 1, c}), input({a, b, c})})});
  for (uint64_t steps = random_() % 3; steps > 0; --steps) y = activated(y);
  return y;
}

graph::Graph Drawer::run() {
  using Kind = ValueId (Drawer::*)();
  static constexpr std::pair<int, Kind> kKinds[] = {
      {30, &Drawer::convolution}, {10, &Drawer::depthwise}, {6, &Drawer::invertedResidual}, {4, &Drawer::transposed},
      {22, &Drawer::linear},      {7, &Drawer::batched},    {6, &Drawer::attention},        {6, &Drawer::rows},
      {4, &Drawer::pool},         {5, &Drawer::points}};
  int at = static_cast<int>(random_() % 100);
  for (const auto& [share, kind] : kKinds) {
    at -= share;
    if (at >= 0) continue;
    patch_.setRegionOutputs(graph_.mainRegion(), {(this->*kind)()});
    break;
  }
  return std::move(graph_);
}

}  // namespace

graph::Graph drawNetwork(uint64_t seed, int64_t number) {
  return Drawer(hashText("drawn network " + std::to_string(number), seed)).run();
}

}  // namespace locution::driver

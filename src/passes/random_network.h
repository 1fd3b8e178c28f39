// Small random networks of the kinds that passes rewrite: convolutions with norms, gates and residuals, products with transposes,
// reductions and what moves elements. Header only, for tests.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "graph/patch.h"

namespace locution::passes {

class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed) : random_(seed), patch_(graph_) {}

  graph::Graph run(int nodes) {
    patch_.setName("random");
    for (int i = 0; i < 2; ++i)
      pool_.push_back(
          patch_.addInput(graph_.mainRegion(), "x", typeOf({1 + pick(2), 1 + pick(4), 3 + pick(4), 3 + pick(4)})));
    for (int i = 0; i < nodes; ++i) step();
    std::vector<graph::ValueId> outputs;
    for (graph::ValueId v : pool_)
      if (!graph_.isUsed(v) || pick(8) == 0) outputs.push_back(v);
    patch_.setRegionOutputs(graph_.mainRegion(), outputs);
    return std::move(graph_);
  }

  static Tensor randomTensor(const std::vector<int64_t>& dims, std::mt19937_64& random) {
    Tensor t(DType::F32, dims);
    std::uniform_real_distribution<float> between(-1, 1);
    for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = between(random);
    return t;
  }

 private:
  using Ints = std::vector<int64_t>;
  using ValueId = graph::ValueId;

  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  static ValueType typeOf(const Ints& dims) {
    ValueType t;
    t.shape = Shape::of(dims);
    return t;
  }
  /// Recent values are likelier, so that chains form.
  ValueId any() {
    return pool_[static_cast<size_t>(pick(3) == 0 ? pick(size()) : size() - 1 - pick(std::min<int64_t>(size(), 3)))];
  }
  int64_t size() const { return static_cast<int64_t>(pool_.size()); }
  Ints dims(ValueId v) const { return graph_.type(v).shape.extents(); }
  ValueId constant(const Ints& d) { return patch_.addConstant("k", randomTensor(d, random_)); }
  ValueId ints(const Ints& v) { return patch_.addConstant("i", Tensor::vectorI64(v)); }
  ValueId make(const std::string& op, std::vector<ValueId> inputs, graph::Attrs attrs, const Ints& out) {
    pool_.push_back(
        patch_.output(patch_.append(graph_.mainRegion(), {op, std::move(inputs), std::move(attrs), {typeOf(out)}})));
    return pool_.back();
  }

  void step() {
    ValueId x = any();
    Ints d = dims(x);
    auto rank = static_cast<int64_t>(d.size());
    switch (pick(16)) {
      case 0:
        return unary(x, d);
      case 1:
        return unary(x, d);
      case 2: {  // a constant that broadcasts
        Ints k = d;
        for (int64_t& e : k)
          if (pick(2) == 0) e = 1;
        k.erase(k.begin(), k.begin() + (pick(2) == 0 && rank > 0 && k[0] == 1 ? 1 : 0));
        static constexpr const char* kOps[] = {"Add", "Mul", "Sub"};
        make(kOps[pick(3)], {x, constant(k)}, {}, d);
        return;
      }
      case 3:
      case 4: {  // two values of one shape
        std::vector<ValueId> same;
        for (ValueId v : pool_)
          if (dims(v) == d) same.push_back(v);
        make(pick(2) == 0 ? "Add" : "Mul", {x, same[static_cast<size_t>(pick(static_cast<int64_t>(same.size())))]}, {},
             d);
        return;
      }
      case 5:
      case 6: {
        Ints perm(d.size()), out;
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), random_);
        for (int64_t p : perm) out.push_back(d[static_cast<size_t>(p)]);
        make("Transpose", {x}, {{"perm", perm}}, out);
        return;
      }
      case 7: {  // two neighbours become one, or one splits off a 1
        if (rank > 2 && pick(2) == 0) {
          auto at = static_cast<size_t>(pick(rank - 1));
          d[at] *= d[at + 1];
          d.erase(d.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        } else if (rank < 5) {
          d.insert(d.begin() + pick(rank + 1), 1);
        }
        make("Reshape", {x, ints(d)}, {}, d);
        return;
      }
      case 8: {
        int64_t axis = pick(rank);
        d[static_cast<size_t>(axis)] *= 2;
        make("Concat", {x, x}, {{"axis", axis}}, d);
        return;
      }
      case 9: {
        int64_t axis = pick(rank);
        int64_t& extent = d[static_cast<size_t>(axis)];
        int64_t start = pick(extent), end = start + 1 + pick(extent - start);
        extent = end - start;
        make("Slice", {x, ints({start}), ints({end}), ints({axis})}, {}, d);
        return;
      }
      case 10: {
        int64_t axis = pick(rank), keeps = pick(2);
        if (keeps || rank == 1)
          d[static_cast<size_t>(axis)] = 1;
        else
          d.erase(d.begin() + axis);
        static constexpr const char* kOps[] = {"ReduceMean", "ReduceSum", "ReduceMax"};
        make(kOps[pick(3)], {x, ints({axis})}, {{"keepdims", int64_t{keeps || rank == 1}}}, d);
        return;
      }
      case 11:
        make("Softmax", {x}, {{"axis", pick(rank)}}, d);
        return;
      case 12:
        return matMul(x, d);
      case 13:
        return pad(x, d);
      default:
        return rank == 4 ? spatial(x, d) : unary(x, d);
    }
  }

  void unary(ValueId x, const Ints& d) {
    static constexpr const char* kOps[] = {"Relu", "Sigmoid", "Neg", "Tanh", "Identity", "Abs"};
    make(kOps[pick(6)], {x}, {}, d);
  }

  void pad(ValueId x, Ints d) {
    Ints pads(d.size() * 2, 0);
    for (size_t i = 0; i < d.size(); ++i) {
      pads[i] = pick(2);
      pads[i + d.size()] = pick(2);
      d[i] += pads[i] + pads[i + d.size()];
    }
    if (graph_.type(x).shape.elements() < 2000) make("Pad", {x, ints(pads)}, {}, d);
  }

  void matMul(ValueId x, Ints d) {
    if (d.size() < 2) return;
    const int64_t n = 1 + pick(5);
    ValueId w = constant({d.back(), n});
    d.back() = n;
    make("MatMul", {x, w}, {}, d);
  }

  void spatial(ValueId x, Ints d) {
    const int64_t channels = d[1];
    switch (pick(6)) {
      case 0:
        make("GlobalAveragePool", {x}, {}, {d[0], channels, 1, 1});
        return;
      case 1:
        if (d[2] < 2 || d[3] < 2) return;
        make(pick(2) == 0 ? "MaxPool" : "AveragePool", {x}, {{"kernel_shape", Ints{2, 2}}},
             {d[0], channels, d[2] - 1, d[3] - 1});
        return;
      case 2: {
        Tensor variance = randomTensor({channels}, random_);
        for (int64_t i = 0; i < channels; ++i)
          variance.data<float>()[i] = 0.5F + variance.data<float>()[i] * variance.data<float>()[i];
        make("BatchNormalization",
             {x, constant({channels}), constant({channels}), constant({channels}), patch_.addConstant("var", variance)},
             {}, d);
        return;
      }
      default: {
        const bool byChannel = pick(3) == 0;
        const int64_t k = d[2] >= 3 && d[3] >= 3 && pick(2) == 0 ? 3 : 1, p = k == 3 ? pick(2) : 0;
        const int64_t out = byChannel ? channels : 1 + pick(4);
        std::vector<ValueId> inputs = {x, constant({out, byChannel ? 1 : channels, k, k})};
        if (pick(2) == 0) inputs.push_back(constant({out}));
        make("Conv", inputs, {{"group", byChannel ? channels : int64_t{1}}, {"pads", Ints{p, p, p, p}}},
             {d[0], out, d[2] + 2 * p - k + 1, d[3] + 2 * p - k + 1});
        return;
      }
    }
  }

  std::mt19937_64 random_;
  graph::Graph graph_;
  graph::Patch patch_;
  std::vector<ValueId> pool_;
};

}  // namespace locution::passes

#include "generator/tlm/inference_graph.h"

#include "core/saturate.h"
#include "generator/tlm/graph_builder.h"
#include "support/check.h"

namespace locution::generator::tlm {

namespace {

using Value = GraphBuilder::Value;

/// Partial sums of a long sum.
constexpr int64_t kPartial = 16;
constexpr float kNever = -1e9F;

class InferenceGraph {
 public:
  InferenceGraph(const ModelConfig& config, const InferenceShape& shape, int64_t first)
      : c_(config), s_(shape), first_(first), b_(shape.name()) {
    LOCUTION_CHECK(s_.shared % kPartial == 0 && s_.own % kPartial == 0 && (!s_.isPrompt() || s_.rows % 4 == 0));
  }

  graph::Graph run() {
    const int64_t m = s_.rows, h = c_.heads, d = c_.headWidth();
    Value x = b_.input("x", DType::F32, {m, c_.width});
    sharedMask_ = b_.input("shared.mask", DType::F32, {s_.shared});
    Value pick;
    if (s_.isPrompt()) {
      pick = b_.input("pick", DType::F32, {m});
      ownMask_ = b_.reshape(b_.constant(causalMask()), {m, 1, m});
    } else {
      ownMask_ = b_.input("own.mask", DType::F32, {s_.own});
    }
    std::vector<Caches> caches;
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string layer = std::to_string(i) + ".";
      Caches& k = caches.emplace_back();
      k.keys = b_.input(layer + "keys", DType::F32, {h, d, s_.shared});
      k.values = b_.input(layer + "values", DType::F32, {h, s_.shared, d});
      if (s_.isPrompt()) continue;
      k.ownKeys = b_.input(layer + "own.keys", DType::F32, {m, h, d, s_.own});
      k.ownValues = b_.input(layer + "own.values", DType::F32, {m, h, s_.own, d});
    }
    for (const Matrix& matrix : matricesOf(c_, first_)) {
      const int64_t panels = matrix.columns / kPanel;
      weights_.push_back(b_.input(matrix.name + ".weight", DType::F32, {panels, matrix.inputs, kPanel}));
      biases_.push_back(b_.input(matrix.name + ".bias", DType::F32, {panels, kPanel}));
    }
    std::vector<Value> projections;
    int64_t rows = m;
    for (int64_t i = 0; i < c_.layers; ++i) {
      const auto at = static_cast<size_t>(4 * i);
      const Value qkv = b_.reshape(dense(norm(x, m), at), {m, 3 * c_.width});
      projections.push_back(qkv);
      Value queries = b_.slice(qkv, 1, 0, c_.width);
      if (s_.isPrompt() && i + 1 == c_.layers) {
        // Of the others nothing more is asked than the last layer's keys and values.
        auto only = [&](Value v, int64_t width) { return b_.reshape(b_.einsum("m,mw->w", pick, v), {1, width}); };
        x = only(x, c_.width);
        queries = only(queries, c_.width);
        ownMask_ = only(b_.constant(causalMask()), m);
        rows = 1;
      }
      x = addPanels(x, dense(attention(queries, rows, qkv, caches[static_cast<size_t>(i)]), at + 1), rows);
      const Value wide = b_.node("Gelu", {dense(norm(x, rows), at + 2)}, {{"approximate", std::string("tanh")}});
      x = addPanels(x, dense(b_.reshape(wide, {rows, c_.hidden()}), at + 3), rows);
    }
    const Value scores = b_.reshape(dense(norm(x, rows), weights_.size() - 1), {rows, headColumns(c_, first_)});
    for (int64_t i = 0; i < c_.layers; ++i) b_.output(projections[static_cast<size_t>(i)], std::to_string(i) + ".qkv");
    b_.output(scores, "scores");
    return b_.take();
  }

 private:
  struct Caches {
    Value keys, values, ownKeys, ownValues;
  };

  /// Over the last axis of [rows, n].
  Value sumRows(Value x, int64_t rows, int64_t n) {
    const Value partial = b_.reduce("ReduceSum", b_.reshape(x, {rows, n / kPartial, kPartial}), 1);
    return b_.reshape(b_.reduce("ReduceSum", partial, 1), {rows, 1});
  }
  /// To mean 0 and variance 1; scale and shift are part of the matrix that follows.
  Value norm(Value x, int64_t rows) {
    const Value share = b_.number(1.0F / static_cast<float>(c_.width));
    const Value centred = b_.sub(x, b_.mul(sumRows(x, rows, c_.width), share));
    const Value variance = b_.mul(sumRows(b_.mul(centred, centred), rows, c_.width), share);
    return b_.node("Div", {centred, b_.node("Sqrt", {b_.add(variance, b_.number(1e-5F))})});
  }
  /// [rows, panels, kPanel]
  Value dense(Value x, size_t matrix) { return b_.add(b_.einsum("mk,pkn->mpn", x, weights_[matrix]), biases_[matrix]); }
  Value addPanels(Value x, Value panels, int64_t rows) { return b_.add(x, b_.reshape(panels, {rows, c_.width})); }

  /// Of `m` queries, over the caches and the tokens of `qkv`.
  Value attention(Value queries, int64_t m, Value qkv, const Caches& k) {
    const int64_t h = c_.heads, d = c_.headWidth();
    auto part = [&](int64_t i) {
      return b_.reshape(b_.slice(qkv, 1, i * c_.width, (i + 1) * c_.width), {s_.rows, h, d});
    };
    const Value q = b_.reshape(queries, {m, h, d}), key = part(1), value = part(2);
    const Value far = b_.add(b_.einsum("mhd,hdp->mhp", q, k.keys), sharedMask_);
    Value near, self;
    int64_t nearby = s_.own;
    if (s_.isPrompt()) {
      nearby = s_.rows;
      near = b_.add(b_.einsum("mhd,hdn->mhn", q, b_.transpose(key, {1, 2, 0})), ownMask_);
    } else {
      near = b_.add(b_.einsum("mhd,mhdt->mht", q, k.ownKeys), ownMask_);
      self = b_.reshape(b_.reduce("ReduceSum", b_.mul(q, key), 2), {m, h, 1});
    }
    auto most = [&](Value x) { return b_.reshape(b_.reduce("ReduceMax", x, 2), {m, h, 1}); };
    Value peak = b_.node("Max", {most(far), most(near)});
    if (self.isValid()) peak = b_.node("Max", {peak, self});
    auto weigh = [&](Value x) { return b_.node("Exp", {b_.sub(x, peak)}); };
    const Value farWeights = weigh(far), nearWeights = weigh(near);
    Value sum = b_.add(total(farWeights, m, s_.shared), total(nearWeights, m, nearby));
    Value mixed = b_.einsum("mhp,hpd->mhd", farWeights, k.values);
    if (s_.isPrompt()) {
      mixed = b_.add(mixed, b_.einsum("mhn,nhd->mhd", nearWeights, value));
    } else {
      const Value selfWeight = weigh(self);
      sum = b_.add(sum, selfWeight);
      mixed = b_.add(b_.add(mixed, b_.einsum("mht,mhtd->mhd", nearWeights, k.ownValues)), b_.mul(selfWeight, value));
    }
    return b_.reshape(b_.node("Div", {mixed, sum}), {m, c_.width});
  }
  /// [m, h, n] to [m, h, 1]
  Value total(Value x, int64_t m, int64_t n) {
    if (n % kPartial != 0) return b_.reshape(b_.reduce("ReduceSum", x, 2), {m, c_.heads, 1});
    return b_.reshape(sumRows(x, m * c_.heads, n), {m, c_.heads, 1});
  }
  Tensor causalMask() const {
    Tensor mask(DType::F32, {s_.rows, s_.rows});
    for (int64_t i = 0; i < s_.rows; ++i)
      for (int64_t j = i + 1; j < s_.rows; ++j) mask.data<float>()[i * s_.rows + j] = kNever;
    return mask;
  }

  const ModelConfig& c_;
  const InferenceShape& s_;
  int64_t first_;
  GraphBuilder b_;
  std::vector<Value> weights_, biases_;
  Value sharedMask_, ownMask_;
};

}  // namespace

std::string InferenceShape::name() const {
  return "tlm-" + std::to_string(rows) + "-" + std::to_string(shared) + "-" + std::to_string(own);
}

int64_t headColumns(const ModelConfig& config, int64_t first) {
  return ceilDivide(config.words - first + 1, kPanel) * kPanel;
}

std::vector<Matrix> matricesOf(const ModelConfig& c, int64_t first) {
  std::vector<Matrix> out;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = std::to_string(i) + ".";
    out.push_back({layer + "qkv", c.width, 3 * c.width});
    out.push_back({layer + "mixed", c.width, c.width});
    out.push_back({layer + "wide", c.width, c.hidden()});
    out.push_back({layer + "narrow", c.hidden(), c.width});
  }
  out.push_back({"head", c.width, headColumns(c, first)});
  return out;
}

graph::Graph inferenceGraph(const ModelConfig& config, const InferenceShape& shape, int64_t first) {
  return InferenceGraph(config, shape, first).run();
}

}  // namespace locution::generator::tlm

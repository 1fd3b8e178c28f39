#include "generator/tlm/model.h"

#include <algorithm>
#include <cmath>

#include "generator/tlm/graph_builder.h"
#include "support/check.h"
#include "support/hash.h"

namespace locution::generator::tlm {

namespace {

using Value = GraphBuilder::Value;

constexpr float kNever = -1e9F;
constexpr const char *kValueWeight = "value.weight", *kValueBias = "value.bias";

std::string layerName(int64_t layer, const char* rest) { return "h." + std::to_string(layer) + "." + rest; }

bool endsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// About normal: a sum of uniform numbers needs no function that differs between C libraries.
class Normal {
 public:
  explicit Normal(uint64_t seed) : state_(seed) {}
  double next() {
    constexpr int kTerms = 12;  // their variance is 1
    double sum = -kTerms / 2.0;
    for (int i = 0; i < kTerms; ++i) sum += static_cast<double>(bits() >> 11) * 0x1p-53;
    return sum;
  }

 private:
  // SplitMix64 (Steele et al. 2014).
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

class TrainingGraph {
 public:
  TrainingGraph(const ModelConfig& config, const TrainingShape& shape, const Lora& lora)
      : c_(config), s_(shape), lora_(lora), b_("tlm-training") {
    LOCUTION_CHECK(c_.width % c_.heads == 0 && s_.length <= c_.context && s_.sentences % s_.group == 0);
    for (const ParameterInfo& p : parametersOf(c_)) parameters_[p.name] = b_.input(p.name, DType::F32, p.dims);
    for (const ParameterInfo& p : loraParametersOf(c_, lora_))
      if (!parameters_.contains(p.name)) parameters_[p.name] = b_.input(p.name, DType::F32, p.dims);
  }

  graph::Graph run() {
    const int64_t groups = s_.sentences / s_.group;
    const Value tokens = b_.input("tokens", DType::I64, {s_.lines, s_.length});
    const Value positions = b_.input("positions", DType::I64, {s_.lines, s_.length});
    visible_ = mask(b_.input("segments", DType::I64, {s_.lines, s_.length}));
    const Value rows = b_.input("rows", DType::I64, {s_.decisions});
    const Value labels = b_.input("labels", DType::I64, {s_.decisions});
    const Value legal = b_.input("legal", DType::Bool, {s_.decisions, c_.words});
    const Value weights = b_.input("weights", DType::F32, {s_.decisions});
    const Value ends = b_.input("ends", DType::I64, {s_.sentences});
    const Value targets = b_.input("value.targets", DType::F32, {s_.sentences});
    const Value valueWeights = b_.input("value.weights", DType::F32, {s_.sentences});
    const Value ranks = b_.input("rank.targets", DType::F32, {groups, s_.group});
    const Value rankMask = b_.input("rank.mask", DType::F32, {groups, s_.group});

    auto embedded = [&](const char* table, Value at) {
      return b_.node("Gather", {parameter(table), at}, {{"axis", int64_t{0}}});
    };
    Value x = b_.add(embedded("wte.weight", tokens), embedded("wpe.weight", positions));
    x = b_.reshape(x, {s_.lines * s_.length, c_.width});
    for (int64_t layer = 0; layer < c_.layers; ++layer) {
      x = b_.add(x, attention(layer, norm(x, layerName(layer, "ln_1"))));
      x = b_.add(x, perceptron(layer, norm(x, layerName(layer, "ln_2"))));
    }
    // Of all tokens only those that something is predicted from.
    const Value read = b_.node("Concat", {rows, ends}, {{"axis", int64_t{0}}});
    const Value states = norm(b_.node("Gather", {x, read}, {{"axis", int64_t{0}}}), "ln_f");
    const Value policyStates = b_.slice(states, 0, 0, s_.decisions);
    const Value valueStates = b_.slice(states, 0, s_.decisions, s_.decisions + s_.sentences);

    const Value logits = b_.matMul(policyStates, b_.transpose(parameter("wte.weight"), {1, 0}));
    const Value masked = b_.node("Where", {legal, logits, b_.number(kNever)});
    const Value entropies = b_.node("SoftmaxCrossEntropyLoss", {masked, labels}, {{"reduction", std::string("none")}});
    const Value policyLoss = total(b_.mul(entropies, weights));

    const Value values =
        b_.reshape(b_.add(b_.matMul(valueStates, parameter(kValueWeight)), parameter(kValueBias)), {s_.sentences});
    const Value errors = b_.sub(values, targets);
    const Value valueLoss = total(b_.mul(b_.mul(errors, errors), valueWeights));
    const Value scores = b_.sub(rankMask, b_.reshape(values, {groups, s_.group}));
    const Value likely = b_.node("LogSoftmax", {scores}, {{"axis", int64_t{-1}}});
    const Value rankLoss = b_.node("Neg", {total(b_.mul(likely, ranks))});

    b_.output(b_.add(b_.add(policyLoss, valueLoss), rankLoss), "loss");
    b_.output(policyLoss, "policy.loss");
    b_.output(valueLoss, "value.loss");
    b_.output(rankLoss, "rank.loss");
    b_.output(b_.node("ArgMax", {masked}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}), "predicted");
    b_.output(values, "values");
    return b_.take();
  }

 private:
  Value parameter(const std::string& name) const { return parameters_.at(name); }
  Value total(Value x) { return b_.node("ReduceSum", {x}, {{"keepdims", int64_t{0}}}); }
  Value norm(Value x, const std::string& name) {
    return b_.node("LayerNormalization", {x, parameter(name + ".weight"), parameter(name + ".bias")},
                   {{"axis", int64_t{-1}}, {"epsilon", 1e-5}});
  }
  Value dense(Value x, const std::string& name) {
    const std::string weight = name + ".weight";
    const Value y = b_.add(b_.matMul(x, parameter(weight)), parameter(name + ".bias"));
    if (lora_.rank == 0) return y;
    // Not x (W + A B): W's gradient, which nobody asks for, would have to be computed for A's and B's.
    const Value low = b_.mul(b_.matMul(x, parameter(loraA(weight))), b_.number(static_cast<float>(lora_.scale())));
    return b_.add(y, b_.matMul(low, parameter(loraB(weight))));
  }

  Value attention(int64_t layer, Value x) {
    const std::vector<Value> parts = b_.nodes("Split", {dense(x, layerName(layer, "attn.c_attn"))},
                                              {{"axis", int64_t{-1}}, {"num_outputs", int64_t{3}}}, 3);
    auto heads = [&](Value v, const std::vector<int64_t>& perm) {
      return b_.transpose(b_.reshape(v, {s_.lines, s_.length, c_.heads, c_.headWidth()}), perm);
    };
    const Value q = heads(parts[0], {0, 2, 1, 3}), k = heads(parts[1], {0, 2, 3, 1}), v = heads(parts[2], {0, 2, 1, 3});
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c_.headWidth())));
    const Value scores = b_.add(b_.mul(b_.matMul(q, k), b_.number(scale)), visible_);
    const Value mixed = b_.matMul(b_.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), v);
    return dense(b_.reshape(b_.transpose(mixed, {0, 2, 1, 3}), {s_.lines * s_.length, c_.width}),
                 layerName(layer, "attn.c_proj"));
  }
  Value perceptron(int64_t layer, Value x) {
    const Value wide = dense(x, layerName(layer, "mlp.c_fc"));
    return dense(b_.node("Gelu", {wide}, {{"approximate", std::string("tanh")}}), layerName(layer, "mlp.c_proj"));
  }
  // [B, 1, L, L]: 0 where a token sees another, else a large negative number.
  Value mask(Value segments) {
    const Value same = b_.node("Equal", {b_.reshape(segments, {s_.lines, 1, s_.length, 1}),
                                         b_.reshape(segments, {s_.lines, 1, 1, s_.length})});
    Tensor before(DType::Bool, {s_.length, s_.length});
    for (int64_t i = 0; i < s_.length; ++i)
      for (int64_t j = 0; j <= i; ++j) before.data<uint8_t>()[i * s_.length + j] = 1;
    return b_.node("Where", {b_.node("And", {same, b_.constant(before)}), b_.number(0), b_.number(kNever)});
  }

  const ModelConfig& c_;
  const TrainingShape& s_;
  const Lora& lora_;
  GraphBuilder b_;
  std::map<std::string, Value> parameters_;
  Value visible_;
};

}  // namespace

std::vector<ParameterInfo> parametersOf(const ModelConfig& c) {
  std::vector<ParameterInfo> out{{"wte.weight", {c.words, c.width}}, {"wpe.weight", {c.context, c.width}}};
  for (int64_t i = 0; i < c.layers; ++i) {
    auto add = [&](const char* name, const std::vector<int64_t>& weight, int64_t bias) {
      out.push_back({layerName(i, name) + ".weight", weight});
      out.push_back({layerName(i, name) + ".bias", {bias}});
    };
    add("ln_1", {c.width}, c.width);
    add("attn.c_attn", {c.width, 3 * c.width}, 3 * c.width);
    add("attn.c_proj", {c.width, c.width}, c.width);
    add("ln_2", {c.width}, c.width);
    add("mlp.c_fc", {c.width, c.hidden()}, c.hidden());
    add("mlp.c_proj", {c.hidden(), c.width}, c.width);
  }
  out.push_back({"ln_f.weight", {c.width}});
  out.push_back({"ln_f.bias", {c.width}});
  out.push_back({kValueWeight, {c.width, 1}});
  out.push_back({kValueBias, {1}});
  return out;
}

Parameters randomParameters(const ModelConfig& config, uint64_t seed) {
  constexpr double kSpread = 0.02;
  Parameters out;
  for (const ParameterInfo& p : parametersOf(config)) {
    Tensor t(DType::F32, p.dims);
    const bool isNorm = p.name.find("ln_") != std::string::npos, isBias = endsWith(p.name, ".bias");
    double spread = isNorm || isBias ? 0 : kSpread;
    if (endsWith(p.name, "c_proj.weight")) spread /= std::sqrt(2.0 * static_cast<double>(config.layers));
    Normal normal(hashText(p.name, seed));
    for (int64_t i = 0; i < t.elements(); ++i)
      t.data<float>()[i] = static_cast<float>(isNorm && !isBias ? 1.0 : spread == 0 ? 0.0 : spread * normal.next());
    out.emplace(p.name, std::move(t));
  }
  return out;
}

std::vector<ParameterInfo> adaptedMatrices(const ModelConfig& config) {
  std::vector<ParameterInfo> out;
  for (const ParameterInfo& p : parametersOf(config))
    if (p.name.starts_with("h.") && p.dims.size() == 2) out.push_back(p);
  return out;
}

std::string loraA(const std::string& weight) { return weight.substr(0, weight.rfind('.')) + ".lora_a"; }
std::string loraB(const std::string& weight) { return weight.substr(0, weight.rfind('.')) + ".lora_b"; }

std::vector<ParameterInfo> loraParametersOf(const ModelConfig& config, const Lora& lora) {
  std::vector<ParameterInfo> out;
  if (lora.rank == 0) return out;
  for (const ParameterInfo& p : adaptedMatrices(config)) {
    out.push_back({loraA(p.name), {p.dims[0], lora.rank}});
    out.push_back({loraB(p.name), {lora.rank, p.dims[1]}});
  }
  out.push_back({kValueWeight, {config.width, 1}});
  out.push_back({kValueBias, {1}});
  return out;
}

Parameters initialLora(const ModelConfig& config, const Lora& lora, const Parameters& base, uint64_t seed) {
  Parameters out;
  for (const ParameterInfo& p : loraParametersOf(config, lora)) {
    Tensor t(DType::F32, p.dims);
    if (auto own = base.find(p.name); own != base.end()) {
      std::copy_n(own->second.data<float>(), t.elements(), t.data<float>());
    } else if (endsWith(p.name, ".lora_a")) {
      // x A is then about as large as x.
      const double spread = 1 / std::sqrt(static_cast<double>(p.dims[0]));
      Normal normal(hashText(p.name, seed));
      for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = static_cast<float>(spread * normal.next());
    }
    out.emplace(p.name, std::move(t));
  }
  return out;
}

graph::Graph trainingGraph(const ModelConfig& config, const TrainingShape& shape, const Lora& lora) {
  return TrainingGraph(config, shape, lora).run();
}

}  // namespace locution::generator::tlm

// For tests and measurements: a GPT-2 (pre-norm, learned positions, tied embedding) whose loss is a weighted cross entropy of a softmax
// over the words that are legal. Inputs: parameters by name, tokens int64[S, L], labels int64[S * L], legal bool[S * L, V], weights
// [S * L]. Outputs: loss, predicted.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/builder.h"

namespace locution::train {

struct SmallGpt2 {
  int64_t layers = 2, width = 16, heads = 2, words = 24, length = 8, sentences = 3;
  DType type = DType::F32;
  bool tanhGelu = true;

  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters() const {
    std::vector<std::pair<std::string, std::vector<int64_t>>> out = {{"wte", {words, width}}, {"wpe", {length, width}}};
    for (int64_t i = 0; i < layers; ++i) {
      const std::string h = "h" + std::to_string(i) + ".";
      out.insert(out.end(), {{h + "ln1.g", {width}},
                             {h + "ln1.b", {width}},
                             {h + "qkv.w", {width, 3 * width}},
                             {h + "qkv.b", {3 * width}},
                             {h + "proj.w", {width, width}},
                             {h + "proj.b", {width}},
                             {h + "ln2.g", {width}},
                             {h + "ln2.b", {width}},
                             {h + "fc.w", {width, 4 * width}},
                             {h + "fc.b", {4 * width}},
                             {h + "out.w", {4 * width, width}},
                             {h + "out.b", {width}}});
    }
    out.push_back({"lnf.g", {width}});
    out.push_back({"lnf.b", {width}});
    return out;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, dims] : parameters()) out.push_back(name);
    return out;
  }

  /// Of order 1, so that every path of the graph counts.
  std::map<std::string, Tensor> randomParameters(uint64_t seed, double spread = 0.3) const {
    std::map<std::string, Tensor> out;
    for (const auto& [name, dims] : parameters()) {
      const double middle = name.ends_with(".g") ? 1 : 0;
      out[name] = uniform(dims, middle - spread, middle + spread, ++seed);
    }
    return out;
  }
  /// Seven of ten words are legal, the label always.
  std::map<std::string, Tensor> randomData(uint64_t seed) const {
    const int64_t rows = sentences * length;
    std::map<std::string, Tensor> d;
    d["tokens"] = below({sentences, length}, words, seed + 1);
    d["labels"] = below({rows}, words, seed + 2);
    Tensor legal(DType::Bool, {rows, words});
    const Tensor chance = below({rows, words}, 10, seed + 3);
    for (int64_t i = 0; i < legal.elements(); ++i) legal.data<uint8_t>()[i] = chance.data<int64_t>()[i] < 7;
    for (int64_t r = 0; r < rows; ++r) legal.data<uint8_t>()[r * words + d["labels"].data<int64_t>()[r]] = 1;
    d["legal"] = legal;
    d["weights"] = uniform({rows}, 0, 1, seed + 4);
    return d;
  }

  graph::Graph graph() const {
    graph::Graph g;
    graph::Patch patch(g);
    patch.setName("gpt2");
    ops::Builder b(patch);
    auto input = [&](const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
      return b.of(patch.addInput(g.mainRegion(), name, ValueType{dtype, Shape::of(dims)}));
    };
    std::map<std::string, ops::Term> p;
    for (const auto& [name, dims] : parameters()) p[name] = input(name, type, dims);
    const int64_t rows = sentences * length, size = width / heads;
    ops::Term tokens = input("tokens", DType::I64, {sentences, length}), labels = input("labels", DType::I64, {rows}),
              legal = input("legal", DType::Bool, {rows, words}), weights = input("weights", type, {rows});
    auto norm = [&](const ops::Term& x, const std::string& name) {
      return b.node("LayerNormalization", {x, p[name + ".g"], p[name + ".b"]});
    };
    auto dense = [&](const ops::Term& x, const std::string& name) {
      return matMul(x, p[name + ".w"]) + p[name + ".b"];
    };
    Tensor future(type, {length, length});
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = i + 1; j < length; ++j) future.setElement(i * length + j, -1e9);
    ops::Term causal = b.constant(future);

    ops::Term x = reshape(b.node("Gather", {p["wte"], tokens}) + p["wpe"], {rows, width});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string h = "h" + std::to_string(i) + ".";
      std::vector<ops::Term> parts = b.nodes("Split", {dense(norm(x, h + "ln1"), h + "qkv")},
                                             {{"axis", int64_t{-1}}, {"num_outputs", int64_t{3}}}, 3);
      auto split = [&](const ops::Term& t, const std::vector<int64_t>& perm) {
        return transpose(reshape(t, {sentences, length, heads, size}), perm);
      };
      ops::Term q = split(parts[0], {0, 2, 1, 3}), k = split(parts[1], {0, 2, 3, 1}), v = split(parts[2], {0, 2, 1, 3});
      ops::Term scores = matMul(q, k) * (1 / std::sqrt(static_cast<double>(size))) + causal;
      ops::Term mixed = matMul(b.node("Softmax", {scores}), v);
      x = x + dense(reshape(transpose(mixed, {0, 2, 1, 3}), {rows, width}), h + "proj");
      ops::Term wide = dense(norm(x, h + "ln2"), h + "fc");
      wide = b.node("Gelu", {wide}, {{"approximate", std::string(tanhGelu ? "tanh" : "none")}});
      x = x + dense(wide, h + "out");
    }
    ops::Term logits = matMul(norm(x, "lnf"), transpose(p["wte"], {1, 0}));
    ops::Term masked = where(legal, logits, b.scalar(type, -1e9));
    ops::Term entropies = b.node("SoftmaxCrossEntropyLoss", {masked, labels}, {{"reduction", std::string("none")}});
    ops::Term loss = b.named(reduce("ReduceSum", entropies * weights, {0}, false), "loss");
    ops::Term predicted =
        b.named(b.node("ArgMax", {masked}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}), "predicted");
    patch.setRegionOutputs(g.mainRegion(), {loss.id(), predicted.id()});
    return g;
  }

 private:
  static uint64_t nextBits(uint64_t& state) { return state = state * 6364136223846793005u + 1442695040888963407u; }
  Tensor uniform(const std::vector<int64_t>& dims, double low, double high, uint64_t seed) const {
    Tensor t(type, dims);
    uint64_t state = seed * 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < t.elements(); ++i)
      t.setElement(i, low + (high - low) * static_cast<double>(nextBits(state) >> 11) / 0x1p53);
    return t;
  }
  static Tensor below(const std::vector<int64_t>& dims, int64_t limit, uint64_t seed) {
    Tensor t(DType::I64, dims);
    uint64_t state = seed * 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < t.elements(); ++i)
      t.data<int64_t>()[i] = static_cast<int64_t>((nextBits(state) >> 33) % static_cast<uint64_t>(limit));
    return t;
  }
};

}  // namespace locution::train

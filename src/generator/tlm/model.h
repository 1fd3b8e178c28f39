// The Tensor Language Model: a GPT-2 (Radford et al. 2019; pre-norm, learned positions, GELU, tied embedding) over the words of tensor
// sentences, with two heads: the policy says how likely each word comes next, the value, read at a sentence's end, what
// log(time / roofline) of the whole sentence is. Here: its parameters, and the graph that training differentiates. What decoding runs is
// inference.h's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "language/vocabulary.h"

namespace locution::generator::tlm {

struct ModelConfig {
  int64_t layers = 4;
  int64_t width = 128;  ///< of a token's state
  int64_t heads = 4;
  int64_t context = 256;  ///< the most tokens of a sentence
  int64_t words = static_cast<int64_t>(language::vocabularySize());

  int64_t headWidth() const { return width / heads; }
  int64_t hidden() const { return 4 * width; }
  bool operator==(const ModelConfig&) const = default;
};

struct ParameterInfo {
  std::string name;  ///< as GPT-2's: "wte.weight", "h.0.attn.c_attn.weight" ...; matrices are [in, out]
  std::vector<int64_t> dims;
};
/// All of them, in the order in which graphs take them.
std::vector<ParameterInfo> parametersOf(const ModelConfig& config);
/// Tensors of float32 by name.
using Parameters = std::map<std::string, Tensor>;
/// GPT-2's initialisation: spread 0.02, less for what residual sums add up; the same on every machine.
Parameters randomParameters(const ModelConfig& config, uint64_t seed);

/// Low-rank adaptation (LoRA, Hu et al. 2021): to each matrix W of attention and perceptron, [in, out], comes a product
/// (alpha / rank) A B of an A, [in, rank], and a B, [rank, out].
struct Lora {
  int64_t rank = 0;  ///< 0: none
  double alpha = 0;
  double scale() const { return rank > 0 ? alpha / static_cast<double>(rank) : 0; }
  bool operator==(const Lora&) const = default;
};
/// What an adaptation trains, in the order in which graphs take it: "h.0.attn.c_attn.lora_a", "h.0.attn.c_attn.lora_b" ..., and the value
/// head's own parameters, which stand in the place of the model's.
std::vector<ParameterInfo> loraParametersOf(const ModelConfig& config, const Lora& lora);
/// Of "h.0.attn.c_attn.weight" for each such matrix.
std::string loraA(const std::string& weight);
std::string loraB(const std::string& weight);
/// The matrices that are adapted, of parametersOf(config).
std::vector<ParameterInfo> adaptedMatrices(const ModelConfig& config);
/// A at random, B zero, the value head as in `base`: a model that says what the base says; the same on every machine.
Parameters initialLora(const ModelConfig& config, const Lora& lora, const Parameters& base, uint64_t seed);

/// Of one training step.
struct TrainingShape {
  int64_t lines = 64;        ///< B: of tokens; sentences stand in them one behind the other
  int64_t length = 64;       ///< L: tokens of a line, padded at the end
  int64_t sentences = 64;    ///< S
  int64_t decisions = 1024;  ///< R: tokens of all sentences that have a loss
  int64_t group = 1;         ///< G: neighbouring sentences that are of one workload; divides S
};

/// The loss of a step. Inputs: the parameters by name (with `lora` its own beside them; those of the matrices come first), then
///     tokens        int64[B, L]
///     positions     int64[B, L]   of a token within its sentence
///     segments      int64[B, L]   tokens see those before them of the same number
///     rows          int64[R]      where a decision is taken: line * L + the place of the token before it
///     labels        int64[R]      the word that was chosen
///     legal         bool[R, V]    the words that were legal; the mask stands inside the softmax. V: words
///     weights       float32[R]    0: padding
///     ends          int64[S]      line * L + the place of its last token
///     value.targets float32[S]    log(time / roofline)
///     value.weights float32[S]
///     rank.targets  float32[S / G, G]  how the weight of 1 (or 0: no loss) is shared among sentences of a workload, more to faster ones
///     rank.mask     float32[S / G, G]  0, or a large negative number where there is no sentence
/// Outputs:
///     loss          the sum of the three below
///     policy.loss   sum over R of weight * cross entropy
///     value.loss    sum over S of weight * (value - target)^2
///     rank.loss     sum over groups of the cross entropy of targets and softmax(-value)
///     predicted     int64[R]      the likeliest legal words
///     values        float32[S]
graph::Graph trainingGraph(const ModelConfig& config, const TrainingShape& shape, const Lora& lora = {});

}  // namespace locution::generator::tlm

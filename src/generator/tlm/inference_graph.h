// What decoding runs, as graphs: some tokens of one prompt, or the next token of several sentences that share a prompt. Keys and values of
// tokens read before lie in caches: the prompt's, which all rows share, and each sentence's own.
//
// Sums are written so that they mean the same bits on every instruction set when each is added up in order (generator/ordered.h): along
// rows of a matrix lanes lie side by side, and long sums of one number are sixteen partial sums that are added up in turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/tlm/model.h"
#include "graph/graph.h"

namespace locution::generator::tlm {

struct InferenceShape {
  int64_t rows = 1;    ///< tokens of the prompt, or sentences
  int64_t shared = 0;  ///< places of the prompt's cache
  int64_t own =
      0;  ///< places of each sentence's cache; 0: the rows are tokens of the prompt, each sees those before it

  bool isPrompt() const { return own == 0; }
  std::string name() const;  ///< "tlm-8-96-32"
  auto operator<=>(const InferenceShape&) const = default;
};

/// Columns of a matrix that lie together, [columns / panel][rows][panel]: what a register tile reads without a stride.
inline constexpr int64_t kPanel = 32;
/// Columns of the head: a score for each word from `first` on, the value, and none up to whole panels.
int64_t headColumns(const ModelConfig& config, int64_t first);

/// The matrices and biases of a layer, in the order in which graphs take them after the caches.
struct Matrix {
  std::string name;
  int64_t inputs, columns;
};
std::vector<Matrix> matricesOf(const ModelConfig& config, int64_t first);

/// Inputs, with M rows, P shared and T own places, H heads of D, W = H * D:
///     x            [M, W]  embeddings of words and positions, added up
///     shared.mask  [P]     0, or a large negative number where there is no token yet
///     own.mask     [T]     the same (not of a prompt)
///     pick         [M]     1 for the row whose scores are wanted, else 0 (of a prompt only)
///     then for each layer  keys [H, D, P], values [H, P, D], own.keys [M, H, D, T], own.values [M, H, T, D] (the last two not of a prompt)
///     then for each of matricesOf   weight [columns / kPanel, inputs, kPanel], bias [columns / kPanel, kPanel]
/// Outputs: for each layer qkv [M, 3 W], of which keys and values go into the caches; scores [M (1 of a prompt), headColumns].
graph::Graph inferenceGraph(const ModelConfig& config, const InferenceShape& shape, int64_t first);

}  // namespace locution::generator::tlm

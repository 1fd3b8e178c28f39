// Batches of measured sentences for the language model's training graph (generator/tlm/model.h). Which sentences a step sees depends on
// the step and the seed alone: an epoch goes once through all sentences of all groups, shuffled, in pieces of neighbours of one group,
// which the value head is to rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "generator/tlm/model.h"
#include "train/examples.h"
#include "train/shuffle.h"

namespace locution::train {

struct TlmLoss {
  /// A sentence counts exp(-(slowdown - 1) / temperature) for the policy: it learns to write what is fast. 0: all count the same.
  double temperature = 0.1;
  double valueShare = 0.1;  ///< of squared errors of log time
  double rankShare = 0.1;   ///< of the ranking within a workload
};

class TlmBatches {
 public:
  /// `examples` isn't empty and outlives this. Sentences come `group` at a time.
  TlmBatches(const Examples& examples, int64_t sentences, int64_t group, uint64_t seed, const TlmLoss& loss);

  int64_t stepsPerEpoch() const;
  /// Tokens long enough for every sentence, decisions enough for each of the first `steps` batches: of the graph.
  generator::tlm::TrainingShape shape(int64_t steps);
  /// The graph's data inputs.
  std::map<std::string, Tensor> at(int64_t step, const generator::tlm::TrainingShape& shape, int64_t words);
  /// Tokens of that batch, padding left out.
  int64_t tokens(int64_t step);

 private:
  struct Piece {
    size_t group = 0;
    int64_t first = 0;  ///< of the group's shuffled sentences
  };
  /// Sentences of a batch by their place; null where a piece is short.
  std::vector<const Example*> sentencesOf(int64_t step);
  /// Where sentences begin: line * length + place. Each goes to the first line with room.
  struct Packing {
    std::vector<int64_t> begins;
    int64_t lines = 0;
  };
  static Packing pack(const std::vector<const Example*>& sentences, int64_t length);

  const Examples& examples_;
  int64_t sentences_, group_;
  TlmLoss loss_;
  std::vector<Piece> pieces_;
  std::vector<Shuffle> orders_;  // of each group's sentences
  Shuffle order_;                // of the pieces
};

}  // namespace locution::train

// Reads tokens with the compiled model: a prompt once, then many sentences that go on from it, a token of each at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "generator/tlm/inference_graph.h"
#include "generator/tlm/weights.h"
#include "runtime/context.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::generator::tlm {

/// The parameters as inferenceGraph takes them. Immutable, shared by readers.
class Network {
 public:
  explicit Network(const Weights& weights);

  const ModelConfig& config() const { return config_; }
  /// The word that the head's first column is about.
  int64_t first() const { return first_; }
  int64_t valueColumn() const { return config_.words - first_; }
  /// Weight, bias, weight ... of matricesOf.
  const std::vector<Tensor>& matrices() const { return matrices_; }
  /// Of a word at a place: `out` holds config().width numbers.
  void embed(language::Token word, int64_t place, float* out) const;

 private:
  ModelConfig config_;
  int64_t first_;
  std::vector<Tensor> matrices_;
  Tensor words_, places_;
};

/// Every shape that a reader asks for.
std::vector<InferenceShape> inferenceShapes(const ModelConfig& config);
/// inferenceGraph of the shape, compiled. Safe to call from several threads. Errors: it can't be had.
using ProgramSource = std::function<Result<std::shared_ptr<const runtime::Program>>(const InferenceShape&)>;

class Reader {
 public:
  /// Shared: readers of several threads use one network and one source of programs.
  Reader(std::shared_ptr<const Network> network, std::shared_ptr<const ProgramSource> programs);
  ~Reader();

  /// Room for so many tokens more after a prompt of this length.
  int64_t room(int64_t prompt) const;
  /// Afterwards `scores(0)` is about the word that follows. What was read of a `target` is kept for the next prompt that begins with it.
  /// The prompt must leave room for a token.
  Status readPrompt(const std::vector<language::Token>& target, const std::vector<language::Token>& rest);

  /// A sentence that goes on: from the prompt (the first step), or from row `parent` of the step before.
  struct Row {
    size_t parent = 0;
    language::Token word = 0;
  };
  /// Reads one more word of each; there must be room. Afterwards `scores(i)` is about what follows rows[i].
  Status step(const std::vector<Row>& rows);

  /// Of the word first() + i.
  const float* scores(size_t row) const;
  double value(size_t row) const { return scores(row)[network_->valueColumn()]; }

 private:
  struct Prompt;
  struct Own;
  struct Bound;
  Result<Bound*> bind(const InferenceShape& shape, const Prompt& prompt, size_t block);
  Status readChunk(const std::vector<language::Token>& words, int64_t place, Prompt* seen, Prompt* to);
  Status readAll(const std::vector<language::Token>& words, int64_t place, Prompt* seen, Prompt* to);
  Status grow(int64_t rows);

  std::shared_ptr<const Network> network_;              // shared: see the constructor
  std::shared_ptr<const ProgramSource> programs_;       // shared: see the constructor
  std::map<int64_t, std::unique_ptr<Prompt>> prompts_;  ///< by places
  std::map<std::pair<InferenceShape, size_t>, std::unique_ptr<Bound>> bound_;
  std::map<int64_t, std::vector<std::unique_ptr<Own>>> own_;  ///< by places, then block by block of sentences
  Prompt* prompt_ = nullptr;
  int64_t promptLength_ = 0, depth_ = 0, places_ = 0;
  std::vector<size_t> slots_;  ///< of the rows of the last step
  std::vector<const float*> scores_;
};

}  // namespace locution::generator::tlm

// A trained model as a file: safetensors with the parameters by name and, as metadata, the model's size and the vocabulary it was trained
// with. That vocabulary must be the beginning of ours; words that came later get rows of zeros.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "generator/tlm/model.h"
#include "generator/tlm/safetensors.h"
#include "support/status.h"

namespace locution::generator::tlm {

struct Weights {
  ModelConfig config;
  Parameters parameters;
  /// What else the file says of itself (how it was trained ...).
  std::map<std::string, std::string> notes = {};
  /// The model's plan replaces the analytic one where its value, a logarithm of time, is lower by more than this.
  double margin = 0;

  /// Of everything that decoding depends on.
  uint64_t hash() const;
  /// 16 hexadecimal digits that tell models apart: of size and parameters, whatever words the vocabulary has got since.
  std::string key() const;
};

/// Writes into a file's metadata which grammar and which first words of the vocabulary it is about.
void noteVocabulary(std::map<std::string, std::string>* metadata, int64_t words);
/// Takes that out again. Errors: another grammar, or words that are not the first of ours; `what` is the subject of the message.
Status checkVocabulary(std::map<std::string, std::string>* metadata, const std::string& what, int64_t words);
/// Errors: it is missing, of other dims, or holds what is no finite number.
Status checkParameter(const ParameterInfo& wanted, const Parameters& have);

/// Errors: not such a file; another vocabulary or grammar; parameters missing, unknown, of another shape, or not finite.
Result<Weights> weightsFrom(SafeTensors content);
Result<Weights> parseWeights(std::span<const std::byte> bytes);
/// Errors name the file.
Result<Weights> readWeights(const std::string& path);

SafeTensors asSafeTensors(const Weights& weights);
Status writeWeights(const Weights& weights, const std::string& path);

}  // namespace locution::generator::tlm

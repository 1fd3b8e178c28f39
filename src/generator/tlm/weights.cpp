#include "generator/tlm/weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "language/vocabulary.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::generator::tlm {

namespace {

constexpr const char* kFormat = "locution-tlm-1";
constexpr const char* kEmbedding = "wte.weight";
constexpr const char *kGrammar = "grammar", *kVocabularyHash = "vocabulary.hash";

/// Sizes beyond these are no model that decodes in milliseconds, and would ask for memory without end.
struct Limit {
  const char* name;
  int64_t ModelConfig::*field;
  int64_t least, most;
};
constexpr Limit kLimits[] = {{"layers", &ModelConfig::layers, 1, 48},
                             {"width", &ModelConfig::width, 32, 2048},
                             {"heads", &ModelConfig::heads, 1, 64},
                             {"context", &ModelConfig::context, 16, 4096},
                             {"vocabulary", &ModelConfig::words, 1, 1 << 20}};

template <typename T>
bool parseNumber(const std::string& text, T* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Takes a note out of the metadata.
std::string take(std::map<std::string, std::string>* notes, const std::string& name) {
  auto node = notes->extract(name);
  return node.empty() ? std::string() : node.mapped();
}

}  // namespace

Status checkVocabulary(std::map<std::string, std::string>* metadata, const std::string& what, int64_t words) {
  const std::string grammar = take(metadata, kGrammar), hash = take(metadata, kVocabularyHash);
  if (grammar != std::to_string(language::kGrammarVersion))
    return Status::error(what + " was trained with grammar " + quoted(grammar) + ", this compiler's is " +
                         quoted(std::to_string(language::kGrammarVersion)));
  if (words > static_cast<int64_t>(language::vocabularySize()))
    return Status::error(what + " knows " + std::to_string(words) + " words, this compiler only " +
                         std::to_string(language::vocabularySize()) + ": it was trained with a newer one");
  const std::string ours = hexDigits(language::vocabularyHash(static_cast<size_t>(words)));
  if (hash != ours)
    return Status::error(what + "'s " + std::to_string(words) + " words are not the first of this compiler's (hash " +
                         quoted(hash) + ", expected " + quoted(ours) + ")");
  return Status::ok();
}

void noteVocabulary(std::map<std::string, std::string>* metadata, int64_t words) {
  (*metadata)[kGrammar] = std::to_string(language::kGrammarVersion);
  (*metadata)[kVocabularyHash] = hexDigits(language::vocabularyHash(static_cast<size_t>(words)));
}

Status checkParameter(const ParameterInfo& wanted, const Parameters& have) {
  auto found = have.find(wanted.name);
  if (found == have.end()) return Status::error("the parameter " + quoted(wanted.name) + " is missing");
  const Tensor& t = found->second;
  if (t.dtype() != DType::F32 || t.dims() != wanted.dims)
    return Status::error("the parameter " + quoted(wanted.name) + " is " + ValueType{t.dtype(), t.shape()}.str() +
                         ", expected " + ValueType{DType::F32, Shape::of(wanted.dims)}.str());
  for (int64_t i = 0; i < t.elements(); ++i)
    if (!std::isfinite(t.data<float>()[i]))
      return Status::error("the parameter " + quoted(wanted.name) + " holds a number that is not finite");
  return Status::ok();
}

Result<Weights> weightsFrom(SafeTensors content) {
  Weights out;
  std::map<std::string, std::string>& notes = content.metadata;
  if (take(&notes, "format") != kFormat)
    return Status::error(std::string("no weights of a Tensor Language Model: its metadata lack format = ") + kFormat);
  for (const Limit& l : kLimits) {
    int64_t value = 0;
    if (!parseNumber(take(&notes, l.name), &value) || value < l.least || value > l.most)
      return Status::error(std::string("metadata: ") + l.name + " wants a number from " + std::to_string(l.least) +
                           " to " + std::to_string(l.most));
    out.config.*l.field = value;
  }
  constexpr int64_t kStep = 32;
  if (out.config.width % kStep != 0 || out.config.width % out.config.heads != 0)
    return Status::error("metadata: the width must be a multiple of 32 and of the heads");
  if (const std::string margin = take(&notes, "margin");
      !margin.empty() && (!parseNumber(margin, &out.margin) || !std::isfinite(out.margin)))
    return Status::error("metadata: margin wants a number");
  LOCUTION_RETURN_IF_ERROR(checkVocabulary(&notes, "the model", out.config.words));
  const std::vector<ParameterInfo> wanted = parametersOf(out.config);
  for (const ParameterInfo& p : wanted) LOCUTION_RETURN_IF_ERROR(checkParameter(p, content.tensors));
  for (const auto& [name, tensor] : content.tensors)
    if (std::none_of(wanted.begin(), wanted.end(), [&, n = &name](const ParameterInfo& p) { return p.name == *n; }))
      return Status::error("unknown parameter " + quoted(name));
  out.parameters = std::move(content.tensors);
  out.notes = std::move(notes);
  // Words that are newer than the model.
  out.config.words = static_cast<int64_t>(language::vocabularySize());
  Tensor& embedding = out.parameters[kEmbedding];
  Tensor longer(DType::F32, {out.config.words, out.config.width});
  std::memcpy(longer.raw(), embedding.raw(), embedding.bytes());
  embedding = std::move(longer);
  return out;
}

Result<Weights> parseWeights(std::span<const std::byte> bytes) {
  LOCUTION_ASSIGN_OR_RETURN(SafeTensors content, parseSafeTensors(bytes));
  return weightsFrom(std::move(content));
}

Result<Weights> readWeights(const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(SafeTensors content, readSafeTensors(path));
  auto weights = weightsFrom(std::move(content));
  if (!weights.isOk()) return weights.status().withContext(path);
  return weights;
}

SafeTensors asSafeTensors(const Weights& weights) {
  SafeTensors out{weights.parameters, weights.notes};
  out.metadata["format"] = kFormat;
  for (const Limit& l : kLimits) out.metadata[l.name] = std::to_string(weights.config.*l.field);
  noteVocabulary(&out.metadata, weights.config.words);
  std::array<char, 32> digits{};
  auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), weights.margin);
  out.metadata["margin"] = std::string(digits.data(), end);
  return out;
}

Status writeWeights(const Weights& weights, const std::string& path) {
  return writeSafeTensors(asSafeTensors(weights), path);
}

std::string Weights::key() const {
  SafeTensors plain{parameters, {}};
  // Words that are newer than the model have rows of zeros.
  const Tensor& words = parameters.at(kEmbedding);
  const auto* numbers = words.data<float>();
  int64_t used = words.elements();
  while (used > 0 && numbers[used - 1] == 0) --used;
  Tensor known(DType::F32, {used});
  std::copy_n(numbers, used, known.data<float>());
  plain.tensors[kEmbedding] = std::move(known);
  plain.metadata["heads"] = std::to_string(config.heads);  // the other sizes are those of the tensors
  return hexDigits(hashText(safeTensorsBytes(plain)));
}

uint64_t Weights::hash() const {
  SafeTensors plain = asSafeTensors(*this);
  for (const auto& [name, text] : notes) plain.metadata.erase(name);
  return hashText(safeTensorsBytes(plain));
}

}  // namespace locution::generator::tlm

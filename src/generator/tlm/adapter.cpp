#include "generator/tlm/adapter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "generator/tlm/safetensors.h"
#include "language/vocabulary.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::generator::tlm {

namespace {

constexpr const char* kFormat = "locution-tlm-adapter-1";
constexpr const char *kHash = "hash", *kPlans = "plans";
constexpr int64_t kMostRank = 1024;

template <typename T>
bool parseNumber(const std::string& text, T* value, int base = 10) {
  std::from_chars_result r{};
  if constexpr (std::is_integral_v<T>)
    r = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  else
    r = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && r.ec == std::errc() && r.ptr == text.data() + text.size();
}

std::string textOf(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string textOf(const KnownPlans& plans) {
  std::string out;
  for (const auto& [key, plan] : plans) out += hexDigits(key.first) + " " + hexDigits(key.second) + " " + plan + "\n";
  return out;
}

Result<KnownPlans> parsePlans(const std::string& text) {
  KnownPlans out;
  size_t number = 0;
  for (const std::string& line : splitText(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const size_t first = line.find(' '), second = first == std::string::npos ? first : line.find(' ', first + 1);
    std::pair<uint64_t, uint64_t> key;
    constexpr int kHex = 16;
    if (second == std::string::npos || !parseNumber(line.substr(0, first), &key.first, kHex) ||
        !parseNumber(line.substr(first + 1, second - first - 1), &key.second, kHex))
      return Status::error("line " + std::to_string(number) + " of its plans is none: " + quoted(line));
    if (!out.emplace(key, line.substr(second + 1)).second)
      return Status::error("line " + std::to_string(number) + " of its plans is the second one of that workload");
  }
  return out;
}

SafeTensors contentOf(const Adapter& a) {
  SafeTensors out{a.parameters, a.notes};
  out.metadata["format"] = kFormat;
  out.metadata["rank"] = std::to_string(a.lora.rank);
  out.metadata["alpha"] = textOf(a.lora.alpha);
  out.metadata["base"] = a.base;
  out.metadata["machine"] = a.machine;
  out.metadata["vocabulary"] = std::to_string(a.words);
  noteVocabulary(&out.metadata, a.words);
  if (!a.plans.empty()) out.metadata[kPlans] = textOf(a.plans);
  return out;
}

std::string hashOf(const SafeTensors& content) { return hexDigits(hashText(safeTensorsBytes(content))); }

Result<ReadAdapter> adapterFrom(SafeTensors content) {
  std::map<std::string, std::string>& notes = content.metadata;
  auto take = [&](const char* name) {
    auto node = notes.extract(name);
    return node.empty() ? std::string() : node.mapped();
  };
  if (auto format = notes.find("format"); format == notes.end() || format->second != kFormat)
    return Status::error(std::string("no adapter of a Tensor Language Model: its metadata lack format = ") + kFormat);
  const std::string hash = take(kHash);
  if (hash != hashOf(content)) return Status::error("the adapter is damaged: its hash is not that of its contents");
  take("format");
  ReadAdapter out;
  Adapter& a = out.adapter;
  if (!parseNumber(take("rank"), &a.lora.rank) || a.lora.rank < 0 || a.lora.rank > kMostRank)
    return Status::error("metadata: rank wants a number from 0 to " + std::to_string(kMostRank));
  if (!parseNumber(take("alpha"), &a.lora.alpha) || !std::isfinite(a.lora.alpha))
    return Status::error("metadata: alpha wants a number");
  if (!parseNumber(take("vocabulary"), &a.words) || a.words < 1)
    return Status::error("metadata: vocabulary wants a number of words");
  a.base = take("base");
  a.machine = take("machine");
  LOCUTION_ASSIGN_OR_RETURN(a.plans, parsePlans(take(kPlans)));
  out.vocabulary = checkVocabulary(&notes, "the adapter", a.words);
  a.parameters = std::move(content.tensors);
  a.notes = std::move(notes);
  return out;
}

/// W + scale A B; each element's sum in order, in double.
Tensor sumOf(const Tensor& w, const Tensor& a, const Tensor& b, double scale) {
  const int64_t rows = w.dims()[0], columns = w.dims()[1], rank = a.dims()[1];
  Tensor out(DType::F32, w.dims());
  std::vector<double> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t k = 0; k < rank; ++k) {
      const double factor = a.data<float>()[i * rank + k];
      const float* of = b.data<float>() + k * columns;
      for (int64_t j = 0; j < columns; ++j) row[static_cast<size_t>(j)] += factor * static_cast<double>(of[j]);
    }
    for (int64_t j = 0; j < columns; ++j)
      out.data<float>()[i * columns + j] = static_cast<float>(static_cast<double>(w.data<float>()[i * columns + j]) +
                                                              scale * row[static_cast<size_t>(j)]);
  }
  return out;
}

}  // namespace

std::string Adapter::key() const { return hashOf(contentOf(*this)); }

Result<ReadAdapter> readAdapter(const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(SafeTensors content, readSafeTensors(path));
  auto read = adapterFrom(std::move(content));
  if (!read.isOk()) return read.status().withContext(path);
  return read;
}

Status writeAdapter(const Adapter& adapter, const std::string& path) {
  SafeTensors content = contentOf(adapter);
  content.metadata[kHash] = hashOf(content);
  return writeSafeTensors(content, path);
}

Status checkBase(const Adapter& adapter, const Weights& base) {
  const std::string key = base.key();
  if (adapter.base == key) return Status::ok();
  return Status::error("the adapter belongs to other weights (" + quoted(adapter.base) + ", these are " + quoted(key) +
                       ")");
}

Result<Weights> adapted(const Weights& base, const Adapter& adapter) {
  LOCUTION_RETURN_IF_ERROR(checkBase(adapter, base));
  const std::vector<ParameterInfo> wanted = loraParametersOf(base.config, adapter.lora);
  for (const ParameterInfo& p : wanted) LOCUTION_RETURN_IF_ERROR(checkParameter(p, adapter.parameters));
  for (const auto& [name, tensor] : adapter.parameters)
    if (std::none_of(wanted.begin(), wanted.end(), [&, n = &name](const ParameterInfo& p) { return p.name == *n; }))
      return Status::error("unknown parameter " + quoted(name));
  Weights out = base;
  if (adapter.lora.rank == 0) return out;
  for (const ParameterInfo& p : adaptedMatrices(base.config))
    out.parameters[p.name] = sumOf(base.parameters.at(p.name), adapter.parameters.at(loraA(p.name)),
                                   adapter.parameters.at(loraB(p.name)), adapter.lora.scale());
  for (const ParameterInfo& p : wanted)
    if (auto own = out.parameters.find(p.name); own != out.parameters.end())
      own->second = adapter.parameters.at(p.name);
  for (const ParameterInfo& p : parametersOf(base.config)) {
    Status s = checkParameter(p, out.parameters);
    if (!s.isOk()) return s.withContext("with the adapter");
  }
  return out;
}

}  // namespace locution::generator::tlm

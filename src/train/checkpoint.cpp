#include "train/checkpoint.h"

#include <charconv>

#include "generator/tlm/safetensors.h"
#include "support/strings.h"

namespace locution::train {

namespace {

constexpr const char *kStep = "step", *kFirst = "adamw.first.", *kSecond = "adamw.second.";

}  // namespace

Status saveCheckpoint(const std::string& path, const State& state, const Metadata& metadata) {
  generator::tlm::SafeTensors file;
  file.metadata = metadata;
  file.metadata[kStep] = std::to_string(state.step);
  file.tensors = state.parameters;
  for (const auto& [name, tensor] : state.first) file.tensors[kFirst + name] = tensor;
  for (const auto& [name, tensor] : state.second) file.tensors[kSecond + name] = tensor;
  return generator::tlm::writeSafeTensors(file, path);
}

Result<Checkpoint> loadCheckpoint(const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(generator::tlm::SafeTensors file, generator::tlm::readSafeTensors(path));
  Checkpoint out;
  const auto step = file.metadata.find(kStep);
  if (step == file.metadata.end()) return Status::error(path + ": no checkpoint: its metadata has no step");
  const std::string& text = step->second;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out.state.step);
  if (failed != std::errc() || end != text.data() + text.size() || out.state.step < 0)
    return Status::error(path + ": the step is " + locution::quoted(text));
  for (auto& [name, tensor] : file.tensors) {
    if (name.starts_with(kFirst))
      out.state.first[name.substr(std::string_view(kFirst).size())] = tensor;
    else if (name.starts_with(kSecond))
      out.state.second[name.substr(std::string_view(kSecond).size())] = tensor;
    else
      out.state.parameters[name] = tensor;
  }
  file.metadata.erase(kStep);
  out.metadata = std::move(file.metadata);
  return out;
}

}  // namespace locution::train

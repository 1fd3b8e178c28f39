#include "driver/tlm_embedded.h"

#include <cstring>
#include <filesystem>

#include "driver/compiler.h"
#include "driver/kernels.h"
#include "driver/tlm_programs.h"
#include "generator/tlm/inference_graph.h"
#include "language/choice_tokens.h"
#include "runtime/cpu_features.h"
#include "support/check.h"

// Defined by the build where there is something to embed (tools/tlm_pack); otherwise their addresses are null.
extern "C" {
__attribute__((weak, visibility("hidden"))) extern const std::byte locutionTlmPrograms[];
__attribute__((weak, visibility("hidden"))) extern const std::byte locutionTlmProgramsEnd[];
__attribute__((weak, visibility("hidden"))) extern const std::byte locutionTlmWeights[];
__attribute__((weak, visibility("hidden"))) extern const std::byte locutionTlmWeightsEnd[];
}

namespace locution::driver {

namespace tlm = generator::tlm;

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kFeatures = "features/";

std::string keyOf(const std::string& instructionSet, const tlm::InferenceShape& shape) {
  return instructionSet + "/" + shape.name();
}

std::span<const std::byte> between(const std::byte* begin, const std::byte* end) {
  return begin ? std::span<const std::byte>(begin, static_cast<size_t>(end - begin)) : std::span<const std::byte>();
}

/// A compiled model as the bytes of a .loc file.
Result<Tensor> fileOf(const runtime::Executable& executable, const std::string& scratch) {
  LOCUTION_RETURN_IF_ERROR(runtime::writeExecutable(executable, scratch));
  const auto size = static_cast<size_t>(std::filesystem::file_size(scratch));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Storage> bytes, mapFile(scratch, 0, size));
  Tensor out(DType::U8, {static_cast<int64_t>(size)});
  std::memcpy(out.raw(), bytes->data(), size);
  std::error_code ignored;
  std::filesystem::remove(scratch, ignored);
  return out;
}

}  // namespace

std::vector<std::string> tlmInstructionSets() { return {"x86-64-v4", "x86-64-v3", "x86-64-v2"}; }

Status writeTlmPrograms(const std::string& file) {
  const tlm::ModelConfig config;
  const std::vector<tlm::InferenceShape> shapes = tlm::inferenceShapes(config);
  const std::vector<std::string> sets = tlmInstructionSets();
  tlm::SafeTensors out;
  std::vector<Tensor> programs(sets.size() * shapes.size());
  std::vector<TargetSpec> targets;
  CompileOptions options = inferenceOptions();
  options.triple = kTriple;
  options.jobs = 1;
  for (const std::string& set : sets) {
    options.cpu = set;
    LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, resolveTarget(options));
    out.metadata[kFeatures + set] = target.features;
  }
  LOCUTION_RETURN_IF_ERROR(parallelTasks(programs.size(), 0, [&](size_t i) -> Status {
    CompileOptions own = options;
    own.cpu = sets[i / shapes.size()];
    const tlm::InferenceShape& shape = shapes[i % shapes.size()];
    LOCUTION_ASSIGN_OR_RETURN(Compiled compiled,
                              compileGraph(tlm::inferenceGraph(config, shape, language::firstChoiceToken()), own));
    LOCUTION_ASSIGN_OR_RETURN(programs[i], fileOf(*compiled.executable, file + "." + std::to_string(i)));
    return Status::ok();
  }));
  for (size_t i = 0; i < programs.size(); ++i)
    out.tensors[keyOf(sets[i / shapes.size()], shapes[i % shapes.size()])] = programs[i];
  return tlm::writeSafeTensors(out, file);
}

std::span<const std::byte> embeddedTlmWeights() { return between(locutionTlmWeights, locutionTlmWeightsEnd); }

std::shared_ptr<const EmbeddedPrograms> EmbeddedPrograms::get() {
  static const std::shared_ptr<const EmbeddedPrograms> kPrograms =
      parse(between(locutionTlmPrograms, locutionTlmProgramsEnd));
  return kPrograms;
}

std::shared_ptr<const EmbeddedPrograms> EmbeddedPrograms::parse(std::span<const std::byte> bytes) {
  if (bytes.empty()) return nullptr;
  auto content = tlm::parseSafeTensors(bytes);
  LOCUTION_CHECK(content.isOk()) << content.status().message();
  auto out = std::make_shared<EmbeddedPrograms>();
  out->content_ = std::move(*content);
  return out;
}

std::optional<std::string> EmbeddedPrograms::bestInstructionSet() const {
  if (runtime::hostArchitecture() != "x86_64") return std::nullopt;
  for (const std::string& set : tlmInstructionSets()) {
    auto features = content_.metadata.find(kFeatures + set);
    if (features != content_.metadata.end() && runtime::missingFeatures(features->second).empty()) return set;
  }
  return std::nullopt;
}

std::vector<std::string> EmbeddedPrograms::names() const {
  std::vector<std::string> out;
  for (const auto& [name, program] : content_.tensors) out.push_back(name);
  return out;
}

Result<std::shared_ptr<const runtime::Program>> EmbeddedPrograms::load(const std::string& instructionSet,
                                                                       const tlm::InferenceShape& shape) const {
  const std::string key = keyOf(instructionSet, shape);
  auto found = content_.tensors.find(key);
  if (found == content_.tensors.end()) return Status::error("there is no program " + key);
  std::shared_ptr<Storage> bytes = allocateStorage(found->second.bytes());
  std::memcpy(bytes->data(), found->second.raw(), found->second.bytes());
  return runtime::Program::loadBytes(std::move(bytes), key);
}

}  // namespace locution::driver

#include "driver/tlm_programs.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "driver/compiler.h"
#include "driver/tlm_embedded.h"
#include "generator/tlm/inference_graph.h"
#include "language/choice_tokens.h"

namespace locution::driver {

namespace tlm = generator::tlm;

namespace {

/// Makes each program once, whichever thread asks for it first.
tlm::ProgramSource kept(tlm::ProgramSource make) {
  struct Kept {
    std::mutex mutex;
    std::map<tlm::InferenceShape, std::shared_ptr<const runtime::Program>> programs;  // shared with contexts
  };
  auto all = std::make_shared<Kept>();  // shared: std::function wants to copy what it holds
  return [all,
          make = std::move(make)](const tlm::InferenceShape& shape) -> Result<std::shared_ptr<const runtime::Program>> {
    const std::lock_guard<std::mutex> lock(all->mutex);
    auto& program = all->programs[shape];
    if (!program) {
      LOCUTION_ASSIGN_OR_RETURN(program, make(shape));
    }
    return program;
  };
}

}  // namespace

CompileOptions inferenceOptions() {
  CompileOptions options;
  options.scheduler = "ordered";
  options.sameBits = true;
  return options;
}

tlm::ProgramSource compiledPrograms(const tlm::ModelConfig& config) {
  return kept([config](const tlm::InferenceShape& shape) -> Result<std::shared_ptr<const runtime::Program>> {
    graph::Graph graph = tlm::inferenceGraph(config, shape, language::firstChoiceToken());
    auto compiled = compileGraph(std::move(graph), inferenceOptions());
    if (!compiled.isOk()) return compiled.status().withContext("the language model's inference, " + shape.name());
    return runtime::Program::load(compiled->executable);
  });
}

tlm::ProgramSource inferencePrograms(const tlm::ModelConfig& config) {
  const std::shared_ptr<const EmbeddedPrograms> embedded = EmbeddedPrograms::get();
  const std::optional<std::string> set = embedded ? embedded->bestInstructionSet() : std::nullopt;
  if (!set || !(embedded->config() == config)) return compiledPrograms(config);
  return kept([embedded, set = *set](const tlm::InferenceShape& shape) { return embedded->load(set, shape); });
}

}  // namespace locution::driver

// The language model's inference, compiled ahead for several instruction sets, and its weights: bytes that were linked into the program, or
// none. The programs take the weights as inputs, so they serve every model of the size they were made for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/tlm/reader.h"
#include "generator/tlm/safetensors.h"
#include "support/status.h"

namespace locution::driver {

/// LLVM's names of the CPUs that programs are made for, the widest vectors first.
std::vector<std::string> tlmInstructionSets();

/// Compiles every shape of a model of the usual size for each of them; the same bytes every time. Errors: as compileGraph; the file can't be
/// written.
Status writeTlmPrograms(const std::string& file);

/// The weights that were linked in; empty: none.
std::span<const std::byte> embeddedTlmWeights();

class EmbeddedPrograms {
 public:
  /// Null when none were linked in.
  static std::shared_ptr<const EmbeddedPrograms> get();
  const generator::tlm::ModelConfig& config() const { return config_; }
  /// Errors: this machine lacks the instructions, or there is no such program.
  Result<std::shared_ptr<const runtime::Program>> load(const std::string& instructionSet,
                                                       const generator::tlm::InferenceShape& shape) const;
  /// The widest that this machine runs; nothing when it runs none.
  std::optional<std::string> bestInstructionSet() const;
  std::vector<std::string> names() const;

 private:
  static std::shared_ptr<const EmbeddedPrograms> parse(std::span<const std::byte> bytes);
  generator::tlm::SafeTensors content_;
  generator::tlm::ModelConfig config_;
};

}  // namespace locution::driver

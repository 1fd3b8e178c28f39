// The Tensor Language Model's inference, compiled in this process for this machine or ahead.
#pragma once

#include "driver/options.h"
#include "generator/tlm/reader.h"

namespace locution::driver {

/// What the model's inference is compiled with: sums in one order and no contraction, so that every machine draws the same sentences
/// (docs/decisions/tlm.md).
CompileOptions inferenceOptions();

/// Compiles inferenceGraph for this machine, each shape when it is first asked for.
generator::tlm::ProgramSource compiledPrograms(const generator::tlm::ModelConfig& config);
/// The programs that were compiled ahead, of the widest instruction set that this machine has; those of compiledPrograms where the model is of
/// another size, or there are none for this machine.
generator::tlm::ProgramSource inferencePrograms(const generator::tlm::ModelConfig& config);

}  // namespace locution::driver

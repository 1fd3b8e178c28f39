// Sentences for whoever measures: what the language model writes for a kernel, in the order in which it is worth a measurement.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generator/tlm/reader.h"
#include "generator/tlm/weights.h"
#include "space/space.h"
#include "support/status.h"

namespace locution::generator::tlm {

class Proposer {
 public:
  Proposer(const Weights& weights, ProgramSource programs);

  /// Draws so many sentences and gives the different ones: the likeliest first, the others by what the value head thinks of them, fastest
  /// first. Nothing where the sentence is longer than the model reads. Depends on weights, space, number and seed alone. One call at a time.
  Result<std::vector<space::Choices>> propose(const space::Space& space, int64_t draw, uint64_t seed);

 private:
  // Shared with the reader.
  std::shared_ptr<const Network> network_;
  std::shared_ptr<const ProgramSource> programs_;
  Reader reader_;
};

}  // namespace locution::generator::tlm

// Measured sentences as a language model learns from them: tokens, where something was decided and what else was legal there, and how
// fast it was. Read from databases of records, in an order that depends on their contents alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "language/vocabulary.h"
#include "space/space.h"
#include "support/status.h"

namespace locution::train {

struct Example {
  std::vector<language::Token> tokens;  ///< "TARGET | WORKLOAD | PLAN end"
  /// Places of the tokens that were decided, ascending, and what was legal there: legal[legalEnd[i - 1]] .. legal[legalEnd[i] - 1].
  std::vector<int32_t> places, legalEnd;
  std::vector<language::Token> legal;
  double slowdown = 1;  ///< its time over the best of its group
  double value = 0;     ///< log(time / roofline); NaN: never timed
};

/// The sentences of one workload on one target, measured on one kind of machine.
struct ExampleGroup {
  std::string workload, target, machine;  ///< keys
  std::vector<Example> examples;
};

struct Examples {
  std::vector<ExampleGroup> groups;
  // What was left out: sentences longer than the model reads, those that no longer parse, records that failed or are stale.
  int64_t tooLong = 0, unreadable = 0, untimed = 0;

  int64_t count() const;
  int64_t longest() const;  ///< tokens
};

/// Whether what was measured on a machine counts, given its text (records::machineText); empty: all count.
using OfMachine = std::function<bool(const std::string& machine)>;
/// Of all the places together. Errors: those of the databases, with the place.
Result<Examples> readExamples(const std::vector<std::string>& places, int64_t mostTokens,
                              const OfMachine& ofMachine = {});

/// Tokens, decisions and what was legal; no times.
Example exampleOf(const space::Space& space, const space::Choices& choices);
/// Seconds that the kernel takes at least: arithmetic at the target's peak, or what it reads and writes at its bandwidth.
double roofline(const loop::Computation& kernel, const TargetSpec& target);

/// Takes a share of the groups out, whole workloads at a time, chosen by their names and the seed: for evaluation.
Examples takeHeldOut(Examples& from, double share, uint64_t seed);

}  // namespace locution::train

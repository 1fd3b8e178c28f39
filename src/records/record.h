// One measurement of one tensor sentence: what was measured where, what came out, and by which code. A record never changes; it is
// known by the hash of its content, so that adding, merging and importing it again does nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace locution::records {

enum class Outcome {
#define OUTCOME(name, text) name,
#include "records/outcomes.inc"
#undef OUTCOME
};
const char* outcomeName(Outcome outcome);
std::optional<Outcome> outcomeOf(std::string_view name);

struct Record {
  std::string workload, target, machine;  ///< keys of texts that the store holds
  std::string sentence;                   ///< as text, never as token ids: the vocabulary grows
  std::string proposer;                   ///< analytic, random, evolutionary ...
  uint64_t seed = 0;                      ///< the proposer's
  std::string model;                      ///< kind of model that the workload came from, may be empty
  Outcome outcome = Outcome::Ok;
  std::vector<double> samples;   ///< seconds of a run each, at least one where the outcome is Ok; else may be empty
  std::string incumbent;         ///< key of the sentence it was measured against, empty: none
  std::optional<double> ratio;   ///< its time over the incumbent's, measured in turns; below 1 is faster
  std::optional<double> spread;  ///< of the samples, relative to their median
  std::string compiler;          ///< version of the compiler
  std::string code;              ///< hash of the machine code that was timed
  int64_t grammar = 0;           ///< version of the grammar the sentence was written in
  int64_t vocabularyCount = 0;   ///< how many tokens the vocabulary had ...
  std::string vocabulary;        ///< ... and the hash of those
  int64_t time = 0;              ///< of the measurement: seconds since 1970, UTC

  /// The median of the samples; none where nothing was timed.
  std::optional<double> seconds() const;
  /// 32 hexadecimal digits, of every field above.
  std::string id() const;
  /// An error names the field that no store takes: a key that is none, text that isn't UTF-8, numbers that aren't times.
  Status check() const;
  bool operator==(const Record&) const = default;
};

/// What a record's `machine` stands for: the CPU as the operating system names it, then the machine's profile (TargetSpec::str()).
std::string machineText(const std::string& profile);
/// "AMD EPYC 7R13 Processor"; "unknown" where the system doesn't say.
std::string cpuModel();

/// The middle one; the mean of the middle two of an even number. `values` may not be empty.
double median(std::vector<double> values);
bool isKey(std::string_view text);

}  // namespace locution::records

// What the fuzzers that run by themselves share: flags, cases in child processes, failures reported by their seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "coverage.h"

namespace locution::fuzz {

struct Flags {
  double seconds = 10;
  uint64_t seed = 1;
  int64_t count = INT64_MAX;  ///< of cases
  std::optional<uint64_t> only;
  bool print = false;
  std::string dump;  ///< a folder, for those that can
};
/// Prints a usage message and returns false for anything unknown.
bool parseFlags(int argc, char** argv, const char* name, Flags* flags);

/// Runs cases seed, seed + 1 ... until time is up, a batch of them to a child process. `run` returns what is wrong, "" for nothing,
/// or "refused ..."; a crash or a hang counts as failed, and the next batch goes on behind it. Returns how many failed; each is
/// printed with its seed.
int runBatches(const Flags& flags, const char* name,
               const std::function<std::string(uint64_t seed, Coverage& coverage)>& run, Coverage& coverage);

}  // namespace locution::fuzz

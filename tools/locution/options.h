// The command line's options and how they become the compiler's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/status.h"

namespace CLI {
class App;
}

namespace locution::tools {

struct Options {
  std::string model, commandLine;
  std::vector<std::string> places;  ///< of a corpus; `model` is the first of them
  std::vector<std::string> inputs, shapes, values, disabledPasses, dumpAfter;
  std::string outputDir, outputFormat = "npy", outputFile;
  int threads = 1, jobs = 0;
  std::string triple, cpu, machine, scheduler = "analytic", tlmWeights, adapter, search = "evolutionary", schedule,
                                    records, cache = "off";
  int64_t trials = 1000, trialsEach = 0;
  int64_t cacheLimit = 8192;
  bool strict = false;
  uint64_t seed = 0;
  double warmupMs = 300, duration = 3;
  int limit = 60;
  bool profile = false, blocks = false;
  std::string json, trace, stage = "fused", kernel;
  int64_t sentences = 10000, compiledPlans = 100, measuredPlans = 0;
  int64_t drawn = 0, plans = 100;
  double mostPoints = 1e9;
  std::vector<std::string> on;
  std::string heldOut, part = "all";
  int64_t sample = 0;
  bool list = false;
  std::vector<std::string> contenders;
  int rounds = 5;
  int64_t leastTrials = 2000;
  std::vector<std::string> recordPlaces;
  int64_t steps = 10000, batch = 64, group = 4, every = 100, layers = 4, width = 128, heads = 4;
  double rate = 1e-3, weightDecay = 0.01, temperature = 0.1, validation = 0.05;
  std::string from;
  int64_t lora = 0;
  double minutes = 0;
  int64_t measurements = 0, rank = 8;
  bool timePasses = false, verbose = false;
  std::vector<std::string> importFiles, mergeFiles;
  std::string exportFile;
  int64_t again = 0;
};

/// Adds the flags of flags.inc that the command (one letter of that table) takes.
void addFlags(CLI::App& app, Options& options, char command);

// One function a subcommand; exit code 0, or a Status that main prints.
Status runCommand(const Options& options);
Status benchCommand(const Options& options);

}  // namespace locution::tools

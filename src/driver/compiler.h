// The compiler as one call: a model file to an Executable. Each stage's product can be asked for by name (show.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/options.h"
#include "graph/graph.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::driver {

struct StageTime {
  std::string name;
  double seconds = 0;
};

/// Told what is under way; `fraction` is of the whole, 0 to 1. May be empty.
using Progress = std::function<void(const std::string& what, double fraction)>;

enum class CacheUse : uint8_t { Off, Hit, Miss };

struct Compiled {
  std::shared_ptr<const runtime::Executable> executable;
  std::vector<std::string> warnings;
  std::vector<StageTime> times;
  double seconds = 0;
  CacheUse cache = CacheUse::Off;
};

/// "0.1.0": what --version says and executables carry.
std::string compilerVersion();

/// Resolves --target, --cpu, --machine and --threads.
Result<TargetSpec> resolveTarget(const CompileOptions& options);

/// Takes the result from the cache that the options name, or puts it there; what can't be put there is a warning.
/// Errors: what the user can mend, with file, node and tensors.
Result<Compiled> compileModel(const std::string& path, const CompileOptions& options, const Progress& progress = {});
/// `graph` is consumed: its constants are let go as they are packed.
Result<Compiled> compileGraph(graph::Graph graph, const CompileOptions& options, const Progress& progress = {});

}  // namespace locution::driver

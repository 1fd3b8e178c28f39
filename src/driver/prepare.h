// A compilation in steps: what `compileModel` does in one call, and `show` and `verify` stop half-way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "driver/compiler.h"
#include "driver/evaluator.h"
#include "generator/scheduler.h"
#include "graph/graph.h"
#include "passes/pass.h"

namespace locution::driver {

/// Gives dynamic inputs the shapes, and inputs whose values decide shapes the values, that the options hold. Errors: an unknown
/// input, a shape that doesn't fit, a dim or a value that is still open (all of them named).
/// `frozen` takes the names of inputs whose values are compiled in.
Status specialiseInputs(graph::Graph& graph, const CompileOptions& options, std::vector<std::string>* frozen);

class Session {
 public:
  static Result<std::unique_ptr<Session>> create(const CompileOptions& options);
  ~Session();

  /// Imports and specialises; the message of an error starts with the file.
  Result<graph::Graph> load(const std::string& path);
  /// For a graph from elsewhere: what `load` does after importing.
  Status specialise(graph::Graph& graph) { return specialiseInputs(graph, options_, &frozen_); }
  /// Runs type inference alone.
  Status inferTypes(graph::Graph& graph);
  /// Runs the pass pipeline.
  Status optimise(graph::Graph& graph);
  Result<Compiled> compile(graph::Graph graph, const Progress& progress);

  const TargetSpec& target() const { return target_; }
  const codegen::KernelCompiler& compiler() const { return *compiler_; }
  const generator::Scheduler& scheduler() const { return *scheduler_; }
  Evaluator& evaluator() { return *evaluator_; }
  const std::vector<passes::PassTiming>& timings() const { return timings_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Session(const CompileOptions& options, TargetSpec target);
  passes::RunOptions passOptions();

  CompileOptions options_;
  TargetSpec target_;
  std::unique_ptr<generator::Scheduler> scheduler_;
  std::unique_ptr<codegen::KernelCompiler> compiler_, host_;
  std::unique_ptr<generator::Scheduler> packer_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<passes::PassTiming> timings_;
  std::vector<std::string> warnings_, frozen_;
};

}  // namespace locution::driver

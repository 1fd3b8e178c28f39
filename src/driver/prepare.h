// A compilation in steps: what `compileModel` does in one call, and `show` and `verify` stop half-way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "driver/cache.h"
#include "driver/compiler.h"
#include "driver/evaluator.h"
#include "driver/lower.h"
#include "generator/scheduler.h"
#include "graph/graph.h"
#include "passes/pass.h"

namespace locution::driver {

/// Gives dynamic inputs the shapes, and inputs whose values decide shapes the values, that the options hold. Errors: an unknown
/// input, a shape that doesn't fit, a dim or a value that is still open (all of them named), unless `anyShape` allows these.
/// `frozen` takes the names of inputs whose values are compiled in; `open`, whether something stays open.
Status specialiseInputs(graph::Graph& graph, const CompileOptions& options, std::vector<std::string>* frozen,
                        bool* open);

class Scheduling;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Shared: regions that are compiled on first use keep it.
  static Result<std::shared_ptr<Session>> create(const CompileOptions& options);
  ~Session();

  /// Imports and specialises; the message of an error starts with the file.
  Result<graph::Graph> load(const std::string& path);
  /// For a graph from elsewhere: what `load` does after importing.
  Status specialise(graph::Graph& graph) { return specialiseInputs(graph, options_, &frozen_, &isOpen_); }
  /// Runs type inference alone.
  Status inferTypes(graph::Graph& graph);
  /// Runs the pass pipeline.
  Status optimise(graph::Graph& graph);
  Result<Compiled> compile(graph::Graph graph, const Progress& progress);
  /// Something of the graph that was specialised last stayed open (`anyShape`).
  bool isOpen() const { return isOpen_; }
  /// Such a graph as an executable that compiles it for each set of shapes it meets.
  Result<Compiled> compileLazily(graph::Graph graph, const std::string& path);
  /// Optimised graph to steps; regions are compiled ahead where all their shapes are known.
  Result<Lowered> lower(const graph::Graph& graph, bool openInputs = false);
  /// A region's graph, specialised: all of the above without messages or times. Safe to call from several threads.
  Result<std::shared_ptr<const runtime::Executable>> compileRegion(graph::Graph graph);
  /// The same for a graph whose inputs are open: host operators do what they can, the rest is compiled for the shapes that come. Null
  /// when that would be all of it.
  Result<std::shared_ptr<const runtime::Executable>> compileOpenRegion(graph::Graph graph);
  /// The passes on such a graph. Safe to call from several threads.
  Status optimiseRegion(graph::Graph& graph);
  /// `Lowered::regions` keep their graphs: for `verify`.
  void keepRegionGraphs() { keepsGraphs_ = true; }

  const TargetSpec& target() const { return target_; }
  const codegen::KernelCompiler& compiler() const { return *compiler_; }
  const generator::Scheduler& scheduler() const;
  /// Of the graph that was lowered: what has to be measured before its kernels are scheduled, if anything.
  Status prepareSchedules(const Lowered& lowered, const Progress& progress = {});
  Evaluator& evaluator() { return *evaluator_; }
  const std::vector<passes::PassTiming>& timings() const { return timings_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// What the result depends on besides the model file and the options.
  CacheInputs cacheInputs() const { return {externalFiles_, frozen_}; }

 private:
  Session(const CompileOptions& options, TargetSpec target);
  passes::RunOptions passOptions();
  void warnOfDeclarations(const graph::Graph& graph);
  void requireFrozen(runtime::Executable& executable) const;
  Result<std::shared_ptr<const runtime::Executable>> build(Lowered lowered);
  Result<RegionCode> makeRegion(graph::Graph graph, const std::string& name);

  CompileOptions options_;
  TargetSpec target_;
  std::unique_ptr<Scheduling> scheduling_;
  std::unique_ptr<codegen::KernelCompiler> compiler_, host_;
  std::unique_ptr<generator::Scheduler> packer_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<passes::PassTiming> timings_;
  std::vector<std::string> warnings_, frozen_, externalFiles_;
  std::string modelName_;
  std::vector<std::optional<ValueType>> declared_;  // of the file's outputs
  bool keepsGraphs_ = false, isOpen_ = false;
};

}  // namespace locution::driver

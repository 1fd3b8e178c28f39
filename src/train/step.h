// One step of training as one compiled program: forward, backward and optimiser, made from a forward graph with a scalar loss. Knows
// nothing of the model. Parameters and moments are inputs and outputs in two sets of buffers that change places after each step, so that
// nothing is copied.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "support/status.h"
#include "train/adamw.h"

namespace locution::train {

using Tensors = std::map<std::string, Tensor>;

struct StepOptions {
  AdamWOptions optimiser;
  /// Gradients are outputs, too: "gradient.NAME", before they are cut to the norm.
  bool keepGradients = false;
};

/// What training changes, and how far it is. Equal states give equal states.
struct State {
  int64_t step = 0;  ///< steps done
  Tensors parameters, first, second;
};

class TrainingStep {
 public:
  /// `forward`: static shapes; `loss`: the name of an output; `parameters`: names of float inputs, or of constants. All other inputs are
  /// data. Errors: names that the graph hasn't, operators without gradient.
  static Result<std::unique_ptr<TrainingStep>> create(graph::Graph forward, const std::string& loss,
                                                      const std::vector<std::string>& parameters,
                                                      const StepOptions& options,
                                                      const driver::CompileOptions& compile);
  ~TrainingStep();

  /// Parameters by name (those that are constants of the graph may be left out), moments of zero.
  Status start(const Tensors& parameters);
  /// Goes on from a state of `state()`, which is copied.
  Status resume(const State& state);
  /// A copy.
  State state() const;
  /// Of one step on `data`, by input name.
  Status run(const Tensors& data, double learningRate);
  /// The same, with every kernel timed: a line a kernel, slowest first: ms, Gflop/s, GB/s, name, sentence.
  Result<std::string> profile(const Tensors& data, double learningRate);
  /// An output of the forward graph, "gradient.norm", or "gradient.NAME", of the last step; valid until the next.
  const Tensor& output(const std::string& name) const;
  float loss() const;
  int64_t stepsDone() const;
  /// Bytes of the arena that activations and gradients share.
  int64_t arenaBytes() const;
  double flops() const;

 private:
  TrainingStep();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The graph of a step, for those who want to look at it or compile it elsewhere.
struct StepGraph {
  graph::Graph graph;
  std::string loss;
  std::vector<std::string>
      parameters;  ///< inputs; then, in the same order, the other inputs and outputs that go with them
  std::vector<std::string> first, second;
  std::vector<std::string> nextParameters, nextFirst, nextSecond;
  std::string rate, decay, correction;  ///< scalar inputs
  Tensors initial;                      ///< of parameters that were constants
};
Result<StepGraph> makeStepGraph(graph::Graph forward, const std::string& loss,
                                const std::vector<std::string>& parameters, const StepOptions& options,
                                const driver::CompileOptions& compile);

}  // namespace locution::train

// What RNN, GRU and LSTM share: shapes and attributes, activations, dot products as vector loops, and the loops over time and batch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/raw.h"

namespace locution::ops {

/// Inputs of all three: X, W, R, B, sequence_lens, initial_h; LSTM adds initial_c and P.
struct Recurrent {
  // Legend: time steps, batch, input features, hidden units, directions, gates.
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1, gates = 1;
  bool batchFirst = false;  ///< layout 1
  bool reverseOnly = false;
  DType type = DType::F32, accumulator = DType::F32;
  double clip = 0;  ///< 0: none

  struct Activation {
    std::string name;  ///< lower case
    double alpha = 0, beta = 0;
  };
  std::vector<Activation> activations;  ///< a direction's after another's

  bool isReverse(int64_t direction) const { return reverseOnly || direction == 1; }
};

/// Checks the shapes and attributes and sets the outputs (Y, Y_h, and Y_c where the node has it).
Status inferRecurrent(InferContext& c, int64_t gates, const std::vector<std::string>& defaultActivations);
Result<Recurrent> parseRecurrent(ComputeContext& c, int64_t gates, const std::vector<std::string>& defaultActivations);

/// What the attributes say, without any extent but `directions`.
Result<Recurrent> parseRecurrentAttributes(const graph::Node& node, int64_t gates,
                                           const std::vector<std::string>& defaultActivations);

loop::Expr applyActivation(const Recurrent::Activation& activation, const loop::Expr& x);
/// What goes into an activation: clipped where the node says so.
loop::Expr clipped(const Recurrent& r, const loop::Expr& x);

/// Sums of products over vectors: sums[g] += sum over i < count of x(i) * weights[direction, row[g], i] for all rows at once.
class Dots {
 public:
  Dots(const Recurrent& r, size_t rows);
  /// Statements that clear the sums.
  loop::Stmt clear() const;
  loop::Stmt add(const loop::BufferRef& weights, int64_t direction, const std::vector<loop::Expr>& rows, int64_t count,
                 const std::function<loop::Expr(const loop::Expr& i)>& x) const;
  loop::Expr sum(size_t row) const;
  const std::vector<loop::BufferRef>& buffers() const { return buffers_; }

 private:
  DType type_;
  int lanes_;
  size_t rows_;
  std::vector<loop::BufferRef> buffers_;  ///< lane sums, scalar sums
};

/// One step of one sequence, as a cell writes it.
struct Step {
  int64_t direction = 0;
  loop::Expr time, batch;  ///< of the input
};

/// State of a direction: [batch, hidden] in the accumulator's type.
struct State {
  size_t initial = 0;  ///< input index of the start value
  size_t last = 0;     ///< output index of the end value
  loop::BufferRef buffer;
};

/// Runs `cell` (which updates the states; state 0 is h, written to Y) over directions, time and batch; steps past a sequence's length
/// write zeros to Y and keep the states.
loop::Stmt recurrentLoops(ComputeContext& c, const Recurrent& r, const std::vector<State>& states,
                          const std::function<loop::Stmt(const Step&)>& cell);

/// X at a step: the i-th feature.
loop::Expr inputFeature(ComputeContext& c, const Recurrent& r, const Step& step, const loop::Expr& i);
/// Element of the bias B: block `block` of `hidden` values, 0 when there is no B.
loop::Expr biasOf(ComputeContext& c, const Recurrent& r, int64_t direction, int64_t block, const loop::Expr& unit);

}  // namespace locution::ops

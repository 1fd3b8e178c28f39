// Makes the stages of reductions over some dims of a tensor. Axes carry the same names in every stage (i<dim> for kept dims, r<dim>
// for reduced ones) and stand in the tensor's order, and temporaries have exactly the kept dims: so a schedule can run the
// stages of a softmax or a normalisation row by row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/helpers.h"

namespace locution::ops {

class Reducer {
 public:
  using Indices = std::vector<loop::Expr>;
  using Body = std::function<loop::Expr(const Indices& full)>;
  /// Of the combined value and the kept indices.
  using Epilogue = std::function<loop::Expr(const loop::Expr& acc, const Indices& kept)>;

  /// `extents`: of what is reduced, which may be a view of an input; `axes`: dims that go.
  Reducer(ComputeContext& c, std::vector<int64_t> extents, const std::vector<int64_t>& axes);

  /// Number of elements that make one.
  int64_t count() const;
  /// A temporary of the body's type and the kept dims.
  loop::BufferRef temporary(const std::string& stem, loop::Combiner combiner, const Body& body,
                            const Epilogue& epilogue = nullptr);
  /// Into output `o`; with `keepDims` it has an extent of 1 for each reduced dim. Cast to the output's type.
  void output(size_t o, bool keepDims, loop::Combiner combiner, const Body& body, const Epilogue& epilogue = nullptr);
  /// A temporary's value for the row of `full` indices.
  loop::Expr at(const loop::BufferRef& temporary, const Indices& full) const;
  /// Output `o` (with extents of 1 for reduced dims when `keepDims`) = f of a temporary's values.
  void copyOut(size_t o, bool keepDims, const loop::BufferRef& temporary);

 private:
  loop::Stage make(bool keepDims, loop::Combiner combiner, const Body& body) const;
  /// Of the reduced value as the operator means it: long sums of float32 accumulate in float64.
  DType valueType(const loop::Stage& stage) const;
  Indices kept(const std::vector<loop::Axis>& axes, bool keepDims) const;
  void finish(loop::Stage& stage, const Epilogue& epilogue, bool keepDims, DType type) const;

  ComputeContext& c_;
  std::vector<int64_t> extents_;
  std::vector<bool> reduced_;
};

}  // namespace locution::ops

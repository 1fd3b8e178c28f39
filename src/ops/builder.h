// Graphs written as arithmetic: a Term is a graph value, its operators append nodes whose types are inferred on the spot. For code that
// makes many small nodes over values of known type: gradients, optimisers, models built in C++.
//     Builder b(patch); Term y = b.of(x) * 2.0 + call("Tanh", b.of(z));
#pragma once

#include <string>
#include <vector>

#include "graph/patch.h"
#include "ops/contexts.h"

namespace locution::ops {

class Builder;

/// A value of static shape under a Builder, which outlives it. Default: none.
class Term {
 public:
  Term() = default;
  Term(Builder& builder, graph::ValueId id) : builder_(&builder), id_(id) {}
  explicit operator bool() const { return id_.isValid(); }
  graph::ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
  std::vector<int64_t> dims() const { return type().shape.extents(); }
  int64_t rank() const { return type().shape.rank(); }

 private:
  Builder* builder_ = nullptr;
  graph::ValueId id_;
};

/// Appends to the end of the main region. A node that its operator rejects is a bug of the caller (LOCUTION_CHECK).
class Builder {
 public:
  explicit Builder(graph::Patch& patch) : patch_(patch) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  graph::Patch& patch() { return patch_; }
  const graph::Graph& graph() const { return patch_.graph(); }
  Term of(graph::ValueId id) { return {*this, id}; }
  /// A node with several outputs; an input without a value is left out.
  std::vector<Term> nodes(const std::string& op, const std::vector<Term>& inputs, graph::Attrs attrs, size_t outputs);
  Term node(const std::string& op, const std::vector<Term>& inputs, graph::Attrs attrs = {});
  Term constant(Tensor tensor);
  Term scalar(DType dtype, double value);
  Term ints(const std::vector<int64_t>& values);
  /// All elements `value`.
  Term full(DType dtype, const std::vector<int64_t>& dims, double value);
  /// Names the value (made unique) and gives it back.
  Term named(const Term& term, const std::string& name);

 private:
  graph::Patch& patch_;
  KnownDims known_;
};

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator-(const Term& a);
// Numbers take the other side's type.
Term operator+(const Term& a, double b);
Term operator-(const Term& a, double b);
Term operator*(const Term& a, double b);
Term operator/(const Term& a, double b);
Term operator+(double a, const Term& b);
Term operator-(double a, const Term& b);
Term operator*(double a, const Term& b);
Term operator/(double a, const Term& b);

/// An operator of one input ("Exp", "Sqrt" ...), or of two.
Term call(const std::string& op, const Term& a);
Term call(const std::string& op, const Term& a, const Term& b);
Term where(const Term& condition, const Term& a, const Term& b);
/// `a` where the condition holds, else 0.
Term whereOrZero(const Term& condition, const Term& a);
Term cast(const Term& a, DType dtype);
/// "ReduceSum", "ReduceMax" ... over axes, which stay as dims of 1 with `keepDims`. Without axes: the value itself.
Term reduce(const std::string& op, const Term& a, const std::vector<int64_t>& axes, bool keepDims);
/// The value itself where it has these dims.
Term reshape(const Term& a, const std::vector<int64_t>& dims);
Term expand(const Term& a, const std::vector<int64_t>& dims);
/// The inverse of broadcasting `dims` to a's: sums over what was repeated.
Term sumTo(const Term& a, const std::vector<int64_t>& dims);
Term transpose(const Term& a, const std::vector<int64_t>& perm);
/// The last two dims swapped.
Term swapLast(const Term& a);
Term matMul(const Term& a, const Term& b);
/// Rows start .. end - 1 of one axis.
Term slice(const Term& a, int64_t axis, int64_t start, int64_t end);

}  // namespace locution::ops

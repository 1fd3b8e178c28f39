// How a scalar that depends on an operator's outputs changes with its inputs: reverse-mode rules, one function an operator, which
// appends the nodes that turn the gradients of the outputs into those of the inputs. The list is gradients.inc; an operator that
// isn't there has no gradient, which train/differentiate.h says by name. Second derivatives come for free where the rule's own nodes
// have rules.
#pragma once

#include <string_view>
#include <vector>

#include "ops/builder.h"

namespace locution::ops {

/// A node whose outputs' gradients are known; floats of static shape are all it deals with.
class GradientContext {
 public:
  /// `outputs`: one term an output, none where nothing depends on it; `wanted`: one flag an input.
  GradientContext(Builder& builder, graph::NodeId node, std::vector<Term> outputs, std::vector<bool> wanted);

  const graph::Node& node() const { return node_; }
  Builder& builder() { return builder_; }
  size_t inputCount() const { return node_.inputs.size(); }
  size_t outputCount() const { return node_.outputs.size(); }
  bool hasInput(size_t i) const { return node_.hasInput(i); }
  Term input(size_t i) { return builder_.of(node_.inputs[i]); }
  Term output(size_t i = 0) { return builder_.of(node_.outputs[i]); }
  /// The gradient of output i; none: nothing depends on it.
  const Term& gradient(size_t i = 0) const { return outputs_[i]; }
  /// The constant behind input i, or nullptr.
  const Tensor* constant(size_t i) const { return builder_.graph().constant(node_.input(i)); }
  /// The integers of a constant input; an error where it isn't constant.
  Result<std::vector<int64_t>> ints(size_t i) const;
  /// Something wanted depends on input i.
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  /// The gradient of input i. Its dims are the input's, or those that the input was broadcast to, or broadcast to the input's.
  void give(size_t i, const Term& gradient);
  /// What `give` was told, in the input's dims; none where it wasn't.
  const Term& given(size_t i) const { return given_[i]; }

 private:
  Builder& builder_;
  const graph::Node& node_;
  std::vector<Term> outputs_, given_;
  std::vector<bool> wanted_;
};

struct GradientDef {
  std::string_view op;
  /// Null: what comes out doesn't change with what goes in, but for jumps.
  Status (*make)(GradientContext&);
};

/// nullptr when the operator has no gradient.
const GradientDef* findGradient(std::string_view op);
/// Sorted by name.
const std::vector<GradientDef>& allGradients();

#define GRADIENT(Name, function) Status function(GradientContext&);
#define FLAT(Name)
#include "ops/gradients.inc"
#undef GRADIENT
#undef FLAT

}  // namespace locution::ops

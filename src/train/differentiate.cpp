#include "train/differentiate.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ops/gradient.h"
#include "support/strings.h"

namespace locution::train {

using graph::NodeId;
using graph::ValueId;
using ops::Term;

namespace {

class Differentiation {
 public:
  Differentiation(graph::Patch& patch, ValueId loss, const std::vector<ValueId>& wanted)
      : graph_(patch.graph()), builder_(patch), loss_(loss), depends_(wanted.begin(), wanted.end()) {}

  Status run() {
    LOCUTION_RETURN_IF_ERROR(findPath());
    add(loss_, builder_.full(graph_.type(loss_).dtype, graph_.type(loss_).shape.extents(), 1));
    for (size_t i = path_.size(); i-- > 0;) LOCUTION_RETURN_IF_ERROR(visit(path_[i]));
    return Status::ok();
  }

  ValueId gradientOf(ValueId v) {
    const Term sum = total(v);
    return sum ? sum.id() : builder_.full(graph_.type(v).dtype, graph_.type(v).shape.extents(), 0).id();
  }

 private:
  bool depends(ValueId v) const { return v.isValid() && depends_.contains(v); }

  /// Nodes between what is wanted and the loss, in order.
  Status findPath() {
    const std::vector<NodeId> nodes = graph_.main().nodes;
    std::vector<NodeId> after;
    for (NodeId id : nodes) {
      const graph::Node& node = graph_.node(id);
      if (!std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return depends(v); }) &&
          !capturesDependent(id))
        continue;
      after.push_back(id);
      const ops::GradientDef* def = ops::findGradient(node.op);
      if (def && !def->make) continue;
      for (ValueId v : node.outputs)
        if (v.isValid() && isFloat(graph_.type(v).dtype)) depends_.insert(v);
    }
    if (!depends(loss_)) return Status::ok();
    std::set<ValueId> needed = {loss_};
    std::vector<std::string> missing;
    for (size_t i = after.size(); i-- > 0;) {
      const graph::Node& node = graph_.node(after[i]);
      if (!std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return depends(v) && needed.contains(v); }))
        continue;
      path_.push_back(after[i]);
      for (ValueId v : node.inputs)
        if (depends(v)) needed.insert(v);
      if (!ops::findGradient(node.op)) missing.push_back(graph::describe(graph_, after[i]) + ": has no gradient");
      for (const std::vector<ValueId>& values : {node.inputs, node.outputs})
        for (ValueId v : values)
          if (depends(v) && !(graph_.type(v).shape.isRanked() && graph_.type(v).shape.isStatic()))
            missing.push_back("the shape of '" + graph_.value(v).name + "' isn't known: " + graph_.type(v).str());
    }
    std::reverse(path_.begin(), path_.end());
    if (!missing.empty()) {
      std::reverse(missing.begin(), missing.end());
      return Status::error(join(missing, "\n"));
    }
    return Status::ok();
  }

  /// A region of the node (a branch, a loop's body) reads it.
  bool capturesDependent(NodeId id) const {
    for (graph::RegionId r : graph_.node(id).regions)
      for (NodeId inner : graph_.region(r).nodes) {
        const graph::Node& node = graph_.node(inner);
        if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return depends(v); }) ||
            capturesDependent(inner))
          return true;
      }
    return false;
  }

  Status visit(NodeId id) {
    const graph::Node& node = graph_.node(id);
    std::vector<Term> outputs;
    std::vector<bool> wanted;
    bool any = false;
    for (ValueId v : node.outputs) {
      outputs.push_back(v.isValid() ? total(v) : Term());
      any = any || outputs.back();
    }
    for (ValueId v : node.inputs) wanted.push_back(depends(v));
    const ops::GradientDef* def = ops::findGradient(node.op);
    if (!any || !def->make) return Status::ok();
    ops::GradientContext context(builder_, id, std::move(outputs), wanted);
    Status s = def->make(context);
    if (!s.isOk()) return Status::error(graph::describe(graph_, id) + ": has no gradient with " + s.message());
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (context.given(i)) add(node.inputs[i], context.given(i));
    return Status::ok();
  }

  void add(ValueId v, const Term& gradient) { parts_[v].push_back(gradient); }

  /// The sum of what came back to a value, in the order it came.
  Term total(ValueId v) {
    auto found = parts_.find(v);
    if (found == parts_.end()) return {};
    std::vector<Term>& parts = found->second;
    Term sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
    parts = {sum};
    return sum;
  }

  const graph::Graph& graph_;
  ops::Builder builder_;
  ValueId loss_;
  std::set<ValueId> depends_;
  std::vector<NodeId> path_;
  std::map<ValueId, std::vector<Term>> parts_;
};

}  // namespace

Result<std::vector<ValueId>> differentiate(graph::Patch& patch, ValueId loss, const std::vector<ValueId>& wanted) {
  const graph::Graph& graph = patch.graph();
  const ValueType& type = graph.type(loss);
  if (!isFloat(type.dtype) || !type.shape.isRanked() || !type.shape.isStatic() || type.shape.elements() != 1)
    return Status::error("the loss '" + graph.value(loss).name + "' is " + type.str() + ", expected one float");
  for (ValueId v : wanted) {
    const ValueType& t = graph.type(v);
    if (!isFloat(t.dtype) || !t.shape.isRanked() || !t.shape.isStatic())
      return Status::error("'" + graph.value(v).name + "' is " + t.str() +
                           ": only floats of known shape have a gradient");
  }
  Differentiation d(patch, loss, wanted);
  LOCUTION_RETURN_IF_ERROR(d.run());
  std::vector<ValueId> out;
  for (ValueId v : wanted) out.push_back(d.gradientOf(v));
  return out;
}

}  // namespace locution::train

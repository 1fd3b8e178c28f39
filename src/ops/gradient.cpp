#include "ops/gradient.h"

#include <algorithm>

namespace locution::ops {

GradientContext::GradientContext(Builder& builder, graph::NodeId node, std::vector<Term> outputs,
                                 std::vector<bool> wanted)
    : builder_(builder),
      node_(builder.graph().node(node)),
      outputs_(std::move(outputs)),
      given_(node_.inputs.size()),
      wanted_(std::move(wanted)) {}

Result<std::vector<int64_t>> GradientContext::ints(size_t i) const {
  const Tensor* t = constant(i);
  if (t == nullptr) return Status::error("input " + std::to_string(i) + " must be known at compile time");
  return t->toInts();
}

void GradientContext::give(size_t i, const Term& gradient) {
  if (!wants(i)) return;
  const std::vector<int64_t> dims = input(i).dims();
  Term g = cast(gradient, input(i).dtype());
  std::vector<int64_t> from = g.dims(), target = dims;
  if (from.size() < dims.size()) {
    from.insert(from.begin(), dims.size() - from.size(), 1);
    g = reshape(g, from);
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (from[from.size() - dims.size() + d] == 1) target[d] = 1;
  g = expand(sumTo(g, target), dims);
  given_[i] = given_[i] ? given_[i] + g : g;
}

const std::vector<GradientDef>& allGradients() {
  // Made on first use; sorted by name for findGradient.
  static const std::vector<GradientDef> defs = [] {
    std::vector<GradientDef> table = {
#define GRADIENT(Name, function) {#Name, function},
#define FLAT(Name) {#Name, nullptr},
#include "ops/gradients.inc"
#undef GRADIENT
#undef FLAT
    };
    std::sort(table.begin(), table.end(), [](const GradientDef& a, const GradientDef& b) { return a.op < b.op; });
    return table;
  }();
  return defs;
}

const GradientDef* findGradient(std::string_view op) {
  const std::vector<GradientDef>& defs = allGradients();
  auto it = std::lower_bound(defs.begin(), defs.end(), op,
                             [](const GradientDef& def, std::string_view name) { return def.op < name; });
  return it != defs.end() && it->op == op ? &*it : nullptr;
}

}  // namespace locution::ops

// The table of operators, made from ops.inc.
#include "ops/op.h"

#include <algorithm>

#include "ops/families.h"

namespace locution::ops {

const std::vector<OpDef>& allOps() {
  // Made on first use; sorted by name for findOp.
  static const std::vector<OpDef> ops = [] {
    std::vector<OpDef> table = {
#define OP(Name, pattern, inferFunction, computeFunction) {#Name, Pattern::pattern, inferFunction, computeFunction},
#define OP_NO_COMPUTE(Name, pattern, inferFunction) {#Name, Pattern::pattern, inferFunction, nullptr},
#include "ops/ops.inc"
#undef OP
#undef OP_NO_COMPUTE
    };
    std::sort(table.begin(), table.end(), [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
    return table;
  }();
  return ops;
}

const OpDef* findOp(std::string_view name) {
  const std::vector<OpDef>& ops = allOps();
  auto it =
      std::lower_bound(ops.begin(), ops.end(), name, [](const OpDef& op, std::string_view n) { return op.name < n; });
  return it != ops.end() && it->name == name ? &*it : nullptr;
}

}  // namespace locution::ops

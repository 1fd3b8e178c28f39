// The rewrite rules of `simplify`, by theme. A rule looks at one node and edits the graph where it applies; the node may be gone
// afterwards.
#pragma once

#include <string_view>
#include <vector>

#include "passes/rewrite.h"

namespace locution::passes {

struct SimplifyRule {
  std::string_view op;
  void (*apply)(Patch&, NodeId);
};

const std::vector<SimplifyRule>& arithmeticRules();
const std::vector<SimplifyRule>& shapeRules();
const std::vector<SimplifyRule>& movementRules();

/// Output 0 is input `i` if the types agree, whatever the op: true and replaced.
bool becomeInput(Patch& patch, NodeId node, size_t i);

}  // namespace locution::passes

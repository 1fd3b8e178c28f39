// What names mean while a graph is imported: a scope a graph (or function body), a frame a function call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "frontend/onnx/attributes.h"
#include "graph/graph.h"

namespace locution::frontend {

using OpsetImports = std::map<std::string, int64_t, std::less<>>;

/// The model itself, or one call of a function.
struct Frame {
  OpsetImports opsets;
  AttrBindings bindings;
  bool isFunction = false;
  int depth = 0;
  std::string prefix;  ///< of the names of values and nodes made in it
};

struct Scope {
  const Scope* parent = nullptr;
  const Frame* frame = nullptr;
  graph::RegionId region;
  std::string where;      ///< for messages: "node 3 'if' (If, opset 16): then_branch: "
  int depth = 0;          ///< of graphs in graphs and calls in calls
  bool isShared = false;  ///< what is imported here may be imported again: tensors are kept, not taken
  int sourceIndex = -1;   ///< of the node of the main graph that this belongs to; -1 in the main graph
  /// An invalid id: known, and left out (an optional input of a function).
  std::unordered_map<std::string, graph::ValueId> values;

  bool isMain() const { return parent == nullptr && !frame->isFunction; }
  std::optional<graph::ValueId> find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->parent)
      if (auto at = s->values.find(name); at != s->values.end()) return at->second;
    return std::nullopt;
  }
};

}  // namespace locution::frontend

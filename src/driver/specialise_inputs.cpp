#include <algorithm>

#include "driver/prepare.h"
#include "graph/patch.h"
#include "passes/specialise.h"
#include "support/strings.h"

namespace locution::driver {

Status specialiseInputs(graph::Graph& graph, const CompileOptions& options, std::vector<std::string>* frozenNames,
                        bool* isOpen) {
  graph::Patch patch(graph);
  std::vector<graph::ValueId> frozen;
  LOCUTION_RETURN_IF_ERROR(passes::specialise(patch, options.inputShapes, options.inputValues, &frozen));
  const bool isDynamic = options.anyShape && !passes::dynamicDims(graph).empty();
  if (!isDynamic) LOCUTION_RETURN_IF_ERROR(passes::needStaticInputs(graph));
  std::vector<std::string> open;
  for (graph::ValueId v : passes::shapeInputs(graph))
    if (std::find(frozen.begin(), frozen.end(), v) == frozen.end()) open.push_back("'" + graph.value(v).name + "'");
  *isOpen = isDynamic || !open.empty();
  if (!open.empty() && !options.anyShape)
    return Status::error("the values of input" + std::string(open.size() > 1 ? "s " : " ") + join(open, ", ") +
                         " decide shapes: give them as files (--input NAME=FILE, or --value NAME=FILE for compile)");
  for (graph::ValueId v : frozen) frozenNames->push_back(graph.value(v).name);
  return Status::ok();
}

}  // namespace locution::driver

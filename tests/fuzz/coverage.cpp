#include "coverage.h"

#include <cstdlib>

namespace locution::fuzz {

namespace {

// Never destroyed: the report is printed when other statics may be gone.
Coverage* atExit = nullptr;
void (*reportAtExit)(const Coverage&) = nullptr;

}  // namespace

void countGraph(const graph::Graph& g, Coverage& coverage) {
  g.forEachNode([&](graph::NodeId n) {
    ++coverage.ops[g.node(n).op];
    for (const auto* list : {&g.node(n).inputs, &g.node(n).outputs})
      for (graph::ValueId v : *list)
        if (v.isValid()) ++coverage.dtypes[std::string(dtypeName(g.type(v).dtype))];
  });
}

std::string dtypesText(const Coverage& coverage) {
  std::string names;
  for (const auto& [name, uses] : coverage.dtypes) names += (names.empty() ? "" : ", ") + name;
  return std::to_string(coverage.dtypes.size()) + " dtypes (" + names + ")";
}

Coverage& reportedAtExit(void (*report)(const Coverage&)) {
  if (!atExit) {
    atExit = new Coverage;
    reportAtExit = report;
    std::atexit([] { reportAtExit(*atExit); });
  }
  return *atExit;
}

}  // namespace locution::fuzz

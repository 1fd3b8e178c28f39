// What a fuzzer has met, for its report.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.h"

namespace locution::fuzz {

struct Coverage {
  int64_t cases = 0, refused = 0;
  std::map<std::string, int64_t> ops, dtypes, marks;  ///< how often each was met
};

/// Adds the operators and element types of `g`, nested regions included.
void countGraph(const graph::Graph& g, Coverage& coverage);
/// "N dtypes (bool, float32, ...)"
std::string dtypesText(const Coverage& coverage);
/// The coverage of this process, which `report` prints when it ends: for libFuzzer, whose loop is not ours.
Coverage& reportedAtExit(void (*report)(const Coverage&));

}  // namespace locution::fuzz

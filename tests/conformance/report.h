// The suite's results as text: the list of expected passes, and docs/conformance.md.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node_case.h"
#include "support/status.h"

namespace locution::conformance {

struct NamedResult {
  std::string name, op;
  CaseResult result;
};

/// A message without what differs from case to case: paths, names, numbers. For grouping.
std::string shortReason(const CaseResult& result);

/// "NAME compiled|folded|host" a line; '#' starts a comment.
Result<std::map<std::string, Outcome>> readExpected(const std::string& path);
std::string expectedText(const std::vector<NamedResult>& results);
/// What was expected to pass and didn't, or to be compiled and wasn't (but with `anyForm`); one line each.
std::vector<std::string> regressions(const std::vector<NamedResult>& results,
                                     const std::map<std::string, Outcome>& expected, bool anyForm);

/// Starts of names and why such cases can't be held to their outputs: "START reason" a line.
using Excuses = std::vector<std::pair<std::string, std::string>>;
Result<Excuses> readExcuses(const std::string& path);

std::string markdown(const std::vector<NamedResult>& results, const Excuses& excuses);
std::string jsonLines(const std::vector<NamedResult>& results);

}  // namespace locution::conformance

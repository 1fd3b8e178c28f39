// A filter as the condition of a query.
#pragma once

#include <string>

#include "records/database.h"
#include "records/store.h"

namespace locution::records {

/// "1 = 1 AND workload = $1 ...", and its parameters.
struct Condition {
  std::string sql = "1 = 1";
  Row parameters;

  void equal(const char* column, const std::string& value) {
    if (!value.empty()) sql += std::string(" AND ") + column + " = " + parameter(value);
  }
  std::string parameter(Value value) {
    parameters.push_back(std::move(value));
    return "$" + std::to_string(parameters.size());
  }
  explicit Condition(const Filter& filter) {
    equal("workload", filter.workload);
    equal("target", filter.target);
    equal("machine", filter.machine);
    equal("sentence", filter.sentence);
    equal("proposer", filter.proposer);
    equal("model", filter.model);
    equal("incumbent", filter.incumbent);
    equal("compiler", filter.compiler);
    equal("code", filter.code);
    if (filter.outcome) equal("outcome", outcomeName(*filter.outcome));
    if (filter.stale == Filter::Stale::Exclude) sql += " AND stale = 0";
    if (filter.stale == Filter::Stale::Only) sql += " AND stale = 1";
  }
};

}  // namespace locution::records

// Which plans were proposed or observed already. Different answers may mean one plan, so plans are compared, not answers.
#pragma once

#include <unordered_set>

#include "schedule/plan.h"
#include "support/hash.h"

namespace locution::generator {

class Seen {
 public:
  /// Whether it is new.
  bool add(const schedule::Plan& plan) { return hashes_.insert(hashText(plan.str())).second; }
  bool contains(const schedule::Plan& plan) const { return hashes_.count(hashText(plan.str())) > 0; }

 private:
  std::unordered_set<uint64_t> hashes_;  // asked only, never walked through
};

}  // namespace locution::generator

// How large a kernel's space is, and what is decided in it: from random walks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "space/space.h"

namespace locution::space {

struct Census {
  struct Question {
    int32_t stage = 0;
    Decision decision{};
    std::vector<int64_t> values;  ///< all that were legal in some walk, ascending
    double share = 0;             ///< of the walks that were asked
  };
  std::vector<Question> questions;  ///< in the order of a walk
  int walks = 0;
  /// Estimated: the mean, over random walks, of the product of the numbers of legal values (D. Knuth: Estimating the efficiency of
  /// backtrack programs, 1975). It has no bias; one in some thousands of plans may be reached twice, by blocks that come out equal.
  double plans = 1;
};
Census takeCensus(const Space& space, int walks, uint64_t seed);

/// "about 2.1e+09 plans; ...", then a line for each question.
std::string print(const Census& census);
/// What each decision's name stands for, a line each.
std::string decisionLegend();

}  // namespace locution::space

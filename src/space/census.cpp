#include "space/census.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>

namespace locution::space {

Census takeCensus(const Space& space, int walks, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::map<std::pair<int32_t, Decision>, std::pair<std::set<int64_t>, int>> asked;
  double sum = 0;
  for (int i = 0; i < walks; ++i) {
    Walk walk(space);
    double product = 1;
    std::set<std::pair<int32_t, Decision>> here;
    while (!walk.isDone()) {
      const std::pair question{walk.stage(), walk.decision()};
      auto& [values, count] = asked[question];
      values.insert(walk.legal().begin(), walk.legal().end());
      if (here.insert(question).second) ++count;
      product *= static_cast<double>(walk.legal().size());
      walk.choose(walk.legal()[rng() % walk.legal().size()]);
    }
    sum += product;
  }
  Census census;
  census.walks = walks;
  census.plans = walks > 0 ? sum / walks : 0;
  for (const auto& [question, found] : asked)
    census.questions.push_back({question.first,
                                question.second,
                                {found.first.begin(), found.first.end()},
                                static_cast<double>(found.second) / walks});
  return census;
}

std::string print(const Census& census) {
  char line[160];
  std::snprintf(line, sizeof line, "about %.2g plans (from %d random walks)\n", census.plans, census.walks);
  std::string out = line;
  for (const Census::Question& q : census.questions) {
    const std::string stage = q.stage < 0 ? "kernel" : "stage " + std::to_string(q.stage);
    std::snprintf(line, sizeof line, "  %-8s %-7s %3.0f %%  ", stage.c_str(),
                  std::string(decisionName(q.decision)).c_str(), 100 * q.share);
    out += line;
    for (size_t i = 0; i < q.values.size(); ++i) {
      const std::string text = choiceText(q.decision, q.values[i]);
      out += (i ? " " : "") + text.substr(text.find('=') + 1);
    }
    out += "\n";
  }
  return out;
}

std::string decisionLegend() {
  std::string out;
  for (size_t d = 0; d < kDecisions; ++d) {
    std::string name(decisionName(static_cast<Decision>(d)));
    name.resize(8, ' ');
    out += name + std::string(decisionHelp(static_cast<Decision>(d))) + "\n";
  }
  return out;
}

}  // namespace locution::space

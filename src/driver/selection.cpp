#include "driver/selection.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/hash.h"

namespace locution::driver {

namespace {

// At most `count` of each kind of group, those whose hashes are least.
std::vector<Selected> sampleOf(const std::vector<Selected>& all, int64_t count, uint64_t seed) {
  std::map<std::string, std::set<std::pair<uint64_t, size_t>>> byKind;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::pair<uint64_t, size_t> place{hashText(all[i].workload->workload.id(), seed), i};
    if (all[i].groups.empty()) byKind[""].insert(place);
    for (const std::string& g : all[i].groups) byKind[HeldOut::kindOf(g)].insert(place);
  }
  std::set<size_t> chosen;
  for (const auto& [kind, places] : byKind) {
    int64_t taken = 0;
    for (auto it = places.begin(); it != places.end() && taken < count; ++it, ++taken) chosen.insert(it->second);
  }
  std::vector<Selected> out;
  for (size_t i : chosen) out.push_back(all[i]);
  return out;
}

}  // namespace

std::vector<Selected> select(const std::vector<CorpusWorkload>& corpus, const TargetSpec& target,
                             const Selection& selection) {
  std::vector<Selected> out;
  for (const CorpusWorkload& w : corpus) {
    Selected s{&w, selection.heldOut ? selection.heldOut->groupsOf(w, target) : std::vector<std::string>()};
    if (selection.part == Part::Training && !s.groups.empty()) continue;
    if (selection.part == Part::HeldOut && s.groups.empty()) continue;
    out.push_back(std::move(s));
  }
  return selection.sample > 0 ? sampleOf(out, selection.sample, selection.seed) : out;
}

}  // namespace locution::driver

#include "generator/tlm/proposer.h"

#include <algorithm>
#include <utility>

#include "generator/tlm/decoder.h"

namespace locution::generator::tlm {

Proposer::Proposer(const Weights& weights, ProgramSource programs)
    : network_(std::make_shared<const Network>(weights)),
      programs_(std::make_shared<const ProgramSource>(std::move(programs))),
      reader_(network_, programs_) {}

Result<std::vector<space::Choices>> Proposer::propose(const space::Space& space, int64_t draw, uint64_t seed) {
  Decoding decoding;
  decoding.sentences = draw;
  decoding.seed = seed;
  decoding.wantsValues = true;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Decoded> drawn, decode(reader_, *network_, space, decoding));
  std::stable_sort(drawn.begin(), drawn.end(), [](const Decoded& a, const Decoded& b) {
    return std::pair(!a.isLikeliest, a.value) < std::pair(!b.isLikeliest, b.value);
  });
  std::vector<space::Choices> out;
  for (const Decoded& d : drawn) out.push_back(d.walk.choices());
  return out;
}

}  // namespace locution::generator::tlm

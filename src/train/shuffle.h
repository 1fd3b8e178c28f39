// The order in which examples are seen: each once an epoch, in a random order that the seed and the epoch decide. A function of the
// place alone, so that training can go on anywhere.
#pragma once

#include <cstdint>
#include <vector>

namespace locution::train {

class Shuffle {
 public:
  Shuffle(int64_t count, uint64_t seed) : count_(count), seed_(seed) {}
  /// The example at a place counted from 0 over all epochs; `count` is not 0.
  int64_t at(int64_t place);

 private:
  int64_t count_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;  // of `epoch_`
};

}  // namespace locution::train

#include "train/shuffle.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace locution::train {

namespace {

// SplitMix64 (Steele et al. 2014): the same numbers with every standard library.
uint64_t nextRandom(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

int64_t Shuffle::at(int64_t place) {
  const int64_t epoch = place / count_;
  if (epoch != epoch_) {
    epoch_ = epoch;
    order_.resize(static_cast<size_t>(count_));
    std::iota(order_.begin(), order_.end(), 0);
    uint64_t state = seed_ ^ (static_cast<uint64_t>(epoch) * 0xD1342543DE82EF95u);
    for (size_t i = order_.size(); i-- > 1;) std::swap(order_[i], order_[nextRandom(state) % (i + 1)]);
  }
  return order_[static_cast<size_t>(place % count_)];
}

}  // namespace locution::train

#include "tune/allocation.h"

#include <algorithm>

namespace locution::tune {

namespace {
/// How much the past counts against the hope: Ansor's alpha.
constexpr double kPast = 0.5;
/// The share of a kernel's time that is hoped to go. With all of it, as in Ansor, hope outweighs what trials have really gained.
constexpr double kHope = 0.2;
/// Trials that a kernel counts as having had already, so that the first batch goes by time alone.
constexpr double kFirst = 8;
/// How fast old gains are forgotten.
constexpr double kForget = 0.5;
}  // namespace

Allocation::Allocation(const std::vector<Kernel>& kernels) {
  for (const Kernel& k : kernels) states_.push_back({k});
}

double Allocation::gradient(const State& s) {
  const double hope = kHope * s.kernel.seconds / (static_cast<double>(s.trials) + kFirst);
  return s.kernel.count * (kPast * s.lastGain + (1 - kPast) * hope);
}

std::optional<size_t> Allocation::next() const {
  std::optional<size_t> best;
  for (size_t k = 0; k < states_.size(); ++k)
    if (!states_[k].isFinished && (!best || gradient(states_[k]) > gradient(states_[*best]))) best = k;
  return best;
}

void Allocation::tried(size_t kernel, int64_t trials, double seconds) {
  State& s = states_[kernel];
  const double gain = std::max(0.0, s.kernel.seconds - seconds) / static_cast<double>(std::max<int64_t>(1, trials));
  s.lastGain = s.trials == 0 ? gain : kForget * s.lastGain + (1 - kForget) * gain;
  s.trials += trials;
  s.kernel.seconds = seconds;
}

double Allocation::seconds() const {
  double sum = 0;
  for (const State& s : states_) sum += s.kernel.count * s.kernel.seconds;
  return sum;
}

}  // namespace locution::tune

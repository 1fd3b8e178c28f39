// Which kernel of a model gets the next trials: Ansor's gradient (Zheng et al., OSDI 2020, section 6). What counts is the whole model's time,
// the sum of each kernel's best time by how often it occurs. For each kernel it is estimated how much a trial will take off that sum: from
// what its last trials took off, and from the hope that its time falls like one over its trials; the steepest gets the next batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace locution::tune {

class Allocation {
 public:
  struct Kernel {
    double count = 1;    ///< how often the model runs it
    double seconds = 0;  ///< what the best known plan takes
  };
  explicit Allocation(const std::vector<Kernel>& kernels);

  /// Nothing while every kernel is finished.
  std::optional<size_t> next() const;
  /// `trials` more of a kernel, after which its best plan takes `seconds`.
  void tried(size_t kernel, int64_t trials, double seconds);
  /// No more trials for the kernel: it has no other plans, or can't be measured.
  void finish(size_t kernel) { states_[kernel].isFinished = true; }
  bool isFinished(size_t kernel) const { return states_[kernel].isFinished; }
  int64_t trials(size_t kernel) const { return states_[kernel].trials; }
  /// Of the whole model, with the best plans so far.
  double seconds() const;

 private:
  struct State {
    Kernel kernel;
    int64_t trials = 0;
    double lastGain = 0;  ///< seconds a trial, of the last few batches
    bool isFinished = false;
  };
  static double gradient(const State& s);
  std::vector<State> states_;
};

}  // namespace locution::tune

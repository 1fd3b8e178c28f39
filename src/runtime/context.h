// One caller's state for running a Program: an arena and bound buffers. Re-entrant across contexts; one run at a time in each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "hostops/host_op.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"
#include "support/status.h"

namespace locution::runtime {

/// Time of one instruction, summed over runs.
struct InstructionProfile {
  double seconds = 0;
  int64_t runs = 0;
};

class Context {
 public:
  Context(std::shared_ptr<const Program> program, std::shared_ptr<ThreadPool> pool);
  ~Context();

  /// Inputs in port order; dtype and dims must match (the message names the input, what is wanted and what was given). Tensors
  /// whose data is not 64-byte aligned are accepted.
  Status setInput(size_t index, Tensor tensor);
  /// For inputs that are sequences or optionals, too.
  Status setInputValue(size_t index, hostops::HostValue value);
  /// Runs once. Outputs are then in `output(i)`, valid until the next run.
  Status run();
  const Tensor& output(size_t index) const;
  const hostops::HostValue& outputValue(size_t index) const;
  /// Binds all inputs, runs, and hands the outputs over: nothing of them is kept. For regions, whose values go from one iteration to
  /// the next. An input of one element may have another rank than its port.
  Result<std::vector<hostops::HostValue>> call(std::vector<hostops::HostValue> values);
  /// Memory for output `index`, instead of the context's own; must stay alive. dims as the port's. An invalid tensor: the
  /// context's own again.
  Status bindOutput(size_t index, Tensor tensor);

  void setProfiling(bool on);
  const std::vector<InstructionProfile>& profile() const;

  /// For `verify`: runs instruction after instruction and calls back after each with the tensors it read and wrote.
  using Observer = std::function<Status(size_t instruction, const std::vector<Tensor>& buffers)>;
  Status runObserved(const Observer& observer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace locution::runtime

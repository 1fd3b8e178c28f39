// Runs computations on tensors at compile time: small ones in the interpreter, copies by walking strides, all others as compiled code on
// this machine. Equal computations are compiled once. Used to fold constants and to pack them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "core/tensor.h"
#include "generator/scheduler.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::driver {

class Evaluator {
 public:
  /// `threads`: how many a large computation is shared out to.
  Evaluator(const codegen::KernelCompiler& host, const generator::Scheduler& scheduler, int threads);
  ~Evaluator();
  /// Off: everything is compiled, as when the compiled code itself is in question.
  void setInterpretSmall(bool on) { interpretSmall_ = on; }
  /// Inputs and outputs in the order of the computation's. Safe to call from several threads.
  Result<std::vector<Tensor>> evaluate(const loop::Computation& computation, const std::vector<Tensor>& inputs);

 private:
  struct Compiled;
  Result<std::shared_ptr<const Compiled>> compile(const loop::Computation& computation);

  const codegen::KernelCompiler& host_;
  const generator::Scheduler& scheduler_;
  int threads_;
  bool interpretSmall_ = true;
  std::mutex mutex_;
  // Shared: a thread may still run what another call replaces.
  std::map<uint64_t, std::shared_ptr<const Compiled>> cache_;
};

}  // namespace locution::driver

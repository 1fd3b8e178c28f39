// A plan made into code: what is compiled, on which buffers it runs, and what must be packed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_compiler.h"
#include "generator/scheduler.h"
#include "loop/compute.h"
#include "schedule/plan.h"

namespace locution::tune {

/// Buffers are numbered: the kernel's inputs, its outputs, then packed operands.
struct Code {
  std::vector<std::byte> bytes;
  int64_t extent = 1;
  bool shared = false;  ///< worth sharing out to threads
  std::vector<size_t> buffers;
};

struct Packing {
  size_t source = 0;        ///< input
  bool isConstant = false;  ///< done before the kernel runs, else with each run of it
  uint64_t key = 0;         ///< equal: the same bytes
  loop::Computation computation;
  Code code;  ///< empty: a constant that is copied by walking strides
};

struct Candidate {
  std::string illegal;  ///< not empty: the plan doesn't apply, or the target can't express it
  std::vector<Packing> packs;
  Code kernel;
  uint64_t codeHash = 0;  ///< of the kernel's code and that of the activations' packing
  double compileMs = 0;   ///< of processor time, applying the plan included
  bool isWinograd = false;
};

/// Code of packing, by Packing::key less the numbers of its buffers: plans that differ elsewhere share it. Safe to use from several threads.
class PackingCode {
 public:
  bool find(uint64_t key, Code* code) const;
  void add(uint64_t key, const Code& code);

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, Code> known_;
};

/// The code is what a model that is compiled with the plan gets. `packer` schedules the packing.
Candidate compileCandidate(const loop::Computation& kernel, const schedule::Plan& plan,
                           const codegen::KernelCompiler& compiler, const generator::Scheduler& packer,
                           PackingCode* packingCode);

}  // namespace locution::tune

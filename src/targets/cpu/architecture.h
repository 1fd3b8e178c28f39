// What differs between instruction sets: the names of CPUs, what kernels may use of each, the profile that is assumed of it, and
// how LLVM is told. One file an architecture; target.cpp holds the list.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/target.h"
#include "support/status.h"

namespace locution::targets::cpu {

/// How LLVM's machine for a target is made.
struct MachineRequest {
  std::string cpu;
  std::vector<std::string> switches;  ///< "+avx2", "-sse4a", in order
  bool tinyCode = false;              ///< code and constants within 1 MiB: PC-relative addresses without a page's base
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  virtual std::string name() const = 0;  ///< as in a triple
  /// The CPU that is meant where none is named and the target isn't this machine.
  virtual std::string baseline() const = 0;
  /// All features of a CPU by LLVM's names; of this machine when `isNative`.
  virtual Result<std::set<std::string>> featuresOf(const std::string& cpu, bool isNative) const = 0;
  /// Sets features, vectors and the assumed profile from those of `spec.cpu`. Errors: less than kernels need.
  virtual Status describe(const std::set<std::string>& has, TargetSpec* spec) const = 0;
  /// Registers LLVM's back end; called once.
  virtual void initialise() const = 0;
  virtual MachineRequest machine(const TargetSpec& spec) const = 0;
};

/// The features that `spec.features` lists, without their '+'.
std::set<std::string> listedFeatures(const TargetSpec& spec);
/// Those of `names` that are in `has`, as TargetSpec::features has them.
std::string featureList(const std::set<std::string>& has, const std::vector<const char*>& names);
/// "unknown CPU ... for ...; close names: ...".
Status unknownCpu(const std::string& cpu, const std::string& architecture, const std::vector<std::string>& names);

const Architecture& x86();
const Architecture& aarch64();

/// Nominal clock of built-in profiles.
inline constexpr double kGigahertz = 3.0;

}  // namespace locution::targets::cpu

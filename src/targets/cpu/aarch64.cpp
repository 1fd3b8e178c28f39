// AArch64: NEON. Kernels are compiled for the generic ARMv8-A of LLVM plus the features that are listed, and tuned for the CPU that
// is named: so that no instruction can come in by a CPU's name alone.
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/AArch64TargetParser.h>
#include <llvm/TargetParser/Host.h>

#include "support/strings.h"
#include "targets/cpu/architecture.h"

namespace locution::targets::cpu {
namespace {

constexpr const char* kGeneric = "generic";

// By which LLVM chooses instructions for vectors of a fixed size. Sorted. SVE isn't here: its vectors have no size that is known.
// runtime/cpu_features.cpp knows each.
constexpr const char* kFeatures[] = {"bf16",    "complxnum", "cssc", "dotprod", "fp-armv8", "fp16fml",
                                     "fptoint", "fullfp16",  "i8mm", "neon",    "rdm"};

class AArch64 final : public Architecture {
 public:
  std::string name() const override { return "aarch64"; }
  std::string baseline() const override { return kGeneric; }

  Result<std::set<std::string>> featuresOf(const std::string& cpu, bool isNative) const override {
    std::set<std::string> all;
    if (isNative) {
      for (const auto& entry : llvm::sys::getHostCPUFeatures()) {
        if (entry.getValue()) all.insert(entry.getKey().str());
      }
      return all;
    }
    if (cpu == kGeneric) return std::set<std::string>{"fp-armv8", "neon"};
    std::optional<llvm::AArch64::CpuInfo> info = llvm::AArch64::parseCpu(cpu);
    if (!info) {
      llvm::SmallVector<llvm::StringRef> names;
      llvm::AArch64::fillValidCPUArchList(names);
      std::vector<std::string> known(names.begin(), names.end());
      known.emplace_back(kGeneric);
      return unknownCpu(cpu, name(), known);
    }
    llvm::AArch64::ExtensionSet extensions;
    extensions.addCPUDefaults(*info);
    std::vector<std::string> features;
    extensions.toLLVMFeatureList(features);
    for (const std::string& f : features) {
      if (f.size() > 1 && f[0] == '+') all.insert(f.substr(1));
    }
    return all;
  }

  Status describe(const std::set<std::string>& has, TargetSpec* spec) const override {
    if (!has.contains("neon"))
      return Status::error("CPU " + quoted(spec->cpu) +
                           " lacks NEON; generic (ARMv8-A) is the least that is supported");
    spec->features = featureList(has, {std::begin(kFeatures), std::end(kFeatures)});
    spec->vectorBytes = 16;
    spec->vectorRegisters = 32;
    spec->hasFma = true;
    spec->hasMask = false;
    spec->hasVnni = false;
    spec->hasF16c = true;  // conversions of float16 are part of ARMv8-A
    spec->l1Bytes = 32 << 10;
    spec->l2Bytes = 512 << 10;
    spec->l3Bytes = 2 << 20;
    // Two vector units, each a multiply-add a cycle.
    spec->peakGflops = 4.0 * spec->lanes(4) * kGigahertz;
    spec->readGbs = 10;
    return Status::ok();
  }

  void initialise() const override {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  }

  MachineRequest machine(const TargetSpec& spec) const override {
    MachineRequest out;
    out.cpu = kGeneric;
    for (const std::string& feature : listedFeatures(spec)) out.switches.push_back("+" + feature);
    out.tinyCode = true;
    return out;
  }
};

}  // namespace

const Architecture& aarch64() {
  static const AArch64 kAArch64;
  return kAArch64;
}

}  // namespace locution::targets::cpu

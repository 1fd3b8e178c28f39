// x86-64: SSE4.2, AVX2 or AVX-512, by what the CPU has.
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "support/strings.h"
#include "targets/cpu/architecture.h"

namespace locution::targets::cpu {
namespace {

// Every feature of x86-64 by which LLVM chooses instructions for code that doesn't ask for them. Sorted: the order of
// TargetSpec::features. What isn't here (system instructions, AMX, cryptography) never shows in a kernel.
constexpr const char* kFeatures[] = {"avx",
                                     "avx10.1",
                                     "avx10.2",
                                     "avx2",
                                     "avx512bf16",
                                     "avx512bitalg",
                                     "avx512bw",
                                     "avx512cd",
                                     "avx512dq",
                                     "avx512f",
                                     "avx512fp16",
                                     "avx512ifma",
                                     "avx512vbmi",
                                     "avx512vbmi2",
                                     "avx512vl",
                                     "avx512vnni",
                                     "avx512vp2intersect",
                                     "avx512vpopcntdq",
                                     "avxifma",
                                     "avxneconvert",
                                     "avxvnni",
                                     "avxvnniint16",
                                     "avxvnniint8",
                                     "bmi",
                                     "bmi2",
                                     "f16c",
                                     "fma",
                                     "fma4",
                                     "gfni",
                                     "lzcnt",
                                     "movbe",
                                     "popcnt",
                                     "sse3",
                                     "sse4.1",
                                     "sse4.2",
                                     "ssse3",
                                     "tbm",
                                     "xop"};
// What some CPU names imply and no kernel gains from; never used, so that running a kernel never asks for them.
constexpr const char* kUnused[] = {"ccmp", "cf", "egpr", "ndd", "nf", "ppx", "push2pop2", "zu"};

class X86 final : public Architecture {
 public:
  std::string name() const override { return "x86_64"; }
  std::string baseline() const override { return "x86-64-v3"; }

  Result<std::set<std::string>> featuresOf(const std::string& cpu, bool isNative) const override {
    std::set<std::string> all;
    if (isNative) {
      for (const auto& entry : llvm::sys::getHostCPUFeatures()) {
        if (entry.getValue()) all.insert(entry.getKey().str());
      }
      return all;
    }
    if (llvm::X86::parseArchX86(cpu, true) == llvm::X86::CK_None) {
      llvm::SmallVector<llvm::StringRef> names;
      llvm::X86::fillValidCPUArchList(names, true);
      return unknownCpu(cpu, name(), {names.begin(), names.end()});
    }
    llvm::SmallVector<llvm::StringRef> features;
    llvm::X86::getFeaturesForCPU(cpu, features);
    // The list names the newest of each line; those imply the older ones.
    llvm::StringMap<bool> implied;
    for (llvm::StringRef f : features) {
      implied[f] = true;
      llvm::X86::updateImpliedFeatures(f, true, implied);
    }
    for (const auto& entry : implied) {
      if (entry.getValue()) all.insert(entry.getKey().str());
    }
    return all;
  }

  Status describe(const std::set<std::string>& has, TargetSpec* spec) const override {
    if (!has.contains("sse4.1") || !has.contains("ssse3"))
      return Status::error("CPU " + quoted(spec->cpu) + " lacks SSE4.1; x86-64-v2 is the least that is supported");
    spec->features = featureList(has, {std::begin(kFeatures), std::end(kFeatures)});
    bool wide =
        has.contains("avx512f") && has.contains("avx512vl") && has.contains("avx512bw") && has.contains("avx512dq");
    spec->vectorBytes = wide ? 64 : has.contains("avx") ? 32 : 16;
    spec->vectorRegisters = wide ? 32 : 16;
    spec->hasFma = has.contains("fma");
    spec->hasMask = wide;
    spec->hasVnni = has.contains("avx512vnni") || has.contains("avxvnni");
    spec->hasF16c = has.contains("f16c");
    spec->l1Bytes = 32 << 10;
    spec->l2Bytes = wide ? 1 << 20 : 512 << 10;
    spec->l3Bytes = 2 << 20;
    // Two vector units, each a multiply-add a cycle; without FMA one multiplies while the other adds.
    spec->peakGflops = (spec->hasFma ? 4.0 : 2.0) * spec->lanes(4) * kGigahertz;
    spec->readGbs = 10;
    return Status::ok();
  }

  void initialise() const override {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  }

  MachineRequest machine(const TargetSpec& spec) const override {
    MachineRequest out;
    out.cpu = spec.cpu;
    auto listed = listedFeatures(spec);
    for (const char* feature : kUnused) out.switches.push_back(std::string("-") + feature);
    for (const char* feature : kFeatures) {
      if (!listed.contains(feature)) out.switches.push_back(std::string("-") + feature);
    }
    for (const std::string& feature : listed) out.switches.push_back("+" + feature);
    return out;
  }
};

}  // namespace

const Architecture& x86() {
  static const X86 kX86;
  return kX86;
}

}  // namespace locution::targets::cpu

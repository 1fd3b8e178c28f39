// CPU names to TargetSpecs: which instructions the code may use, vector sizes, and a profile that is assumed until
// `locution machine` measures one.
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "support/strings.h"
#include "targets/cpu/caches.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cpu/llvm_target.h"

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

// Nominal clock of built-in profiles.
constexpr double kGigahertz = 3.0;

std::string closeNames(const std::string& name, const llvm::SmallVectorImpl<llvm::StringRef>& names) {
  std::vector<std::pair<unsigned, std::string>> scored;
  for (llvm::StringRef candidate : names) scored.emplace_back(candidate.edit_distance(name), candidate.str());
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> close;
  for (const auto& [distance, candidate] : scored) {
    if (close.size() < 5 && (distance <= 3 || close.size() < 3)) close.push_back(candidate);
  }
  return join(close, ", ");
}

Result<std::set<std::string>> featuresOf(const std::string& cpu, bool isNative) {
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
    return Status::error("unknown CPU " + quoted(cpu) + " for x86_64; close names: native, " + closeNames(cpu, names));
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

std::set<std::string> splitFeatures(const std::string& text) {
  std::set<std::string> out;
  for (const std::string& part : splitText(text, ',')) {
    if (part.size() > 1 && part[0] == '+') out.insert(part.substr(1));
  }
  return out;
}

}  // namespace

Result<TargetSpec> makeTarget(const std::string& triple, const std::string& cpu, int threads) {
  bool isNative = cpu == "native";
  llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  llvm::Triple asked(triple.empty() ? host.str() : llvm::Triple::normalize(triple));
  if (asked.getArch() != llvm::Triple::x86_64) {
    return Status::error("target " + quoted(asked.str()) + ": architecture " + asked.getArchName().str() +
                         " is not supported; there is x86_64");
  }
  if (!asked.isOSLinux()) {
    return Status::error("target " + quoted(asked.str()) + ": operating system " + asked.getOSName().str() +
                         " is not supported; there is linux");
  }
  if (isNative && host.getArch() != asked.getArch()) {
    return Status::error("CPU native: this machine is " + host.getArchName().str() + ", the target is " + asked.str());
  }
  if (threads < 1) return Status::error("a target needs 1 thread or more, not " + std::to_string(threads));

  TargetSpec spec;
  spec.triple = asked.isAndroid() ? "x86_64-unknown-linux-android" : "x86_64-unknown-linux-gnu";
  spec.cpu = isNative ? llvm::sys::getHostCPUName().str() : cpu;
  spec.threads = threads;
  LOCUTION_ASSIGN_OR_RETURN(auto has, featuresOf(spec.cpu, isNative));
  if (!has.contains("sse4.1") || !has.contains("ssse3")) {
    return Status::error("CPU " + quoted(spec.cpu) + " lacks SSE4.1; x86-64-v2 is the least that is supported");
  }
  std::vector<std::string> used;
  for (const char* feature : kFeatures) {
    if (has.contains(feature)) used.push_back(std::string("+") + feature);
  }
  std::sort(used.begin(), used.end());
  spec.features = join(used, ",");
  bool wide =
      has.contains("avx512f") && has.contains("avx512vl") && has.contains("avx512bw") && has.contains("avx512dq");
  spec.vectorBytes = wide ? 64 : has.contains("avx") ? 32 : 16;
  spec.vectorRegisters = wide ? 32 : 16;
  spec.hasFma = has.contains("fma");
  spec.hasMask = wide;
  spec.hasVnni = has.contains("avx512vnni") || has.contains("avxvnni");
  spec.hasF16c = has.contains("f16c");
  spec.l1Bytes = 32 << 10;
  spec.l2Bytes = wide ? 1 << 20 : 512 << 10;
  spec.l3Bytes = 2 << 20;
  // Two vector units, each a multiply-add a cycle; without FMA one multiplies while the other adds.
  spec.peakGflops = (spec.hasFma ? 4.0 : 2.0) * spec.lanes(4) * kGigahertz;
  spec.readGbs = 10;
  if (isNative) readCacheSizes(&spec);
  return spec;
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetSpec& spec) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string message;
  llvm::Triple triple(spec.triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) return Status::error("target " + quoted(spec.triple) + ": " + message);
  auto listed = splitFeatures(spec.features);
  std::vector<std::string> switches;
  for (const char* feature : kUnused) switches.push_back(std::string("-") + feature);
  for (const char* feature : kFeatures) {
    if (!listed.contains(feature)) switches.push_back(std::string("-") + feature);
  }
  for (const std::string& feature : listed) switches.push_back("+" + feature);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.EmulatedTLS = false;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, spec.cpu, join(switches, ","), options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) return Status::error("target " + quoted(spec.triple) + " can't be made");
  return machine;
}

}  // namespace locution::targets::cpu

// Triples and CPU names to TargetSpecs, and those to LLVM's machines. What differs by architecture is behind architecture.h.
#include <llvm/ADT/StringRef.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <mutex>

#include "support/strings.h"
#include "targets/cpu/architecture.h"
#include "targets/cpu/caches.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cpu/llvm_target.h"

namespace locution::targets::cpu {
namespace {

const Architecture* architectureOf(const llvm::Triple& triple) {
  switch (triple.getArch()) {
    case llvm::Triple::x86_64:
      return &x86();
    case llvm::Triple::aarch64:
      return &aarch64();
    default:
      return nullptr;
  }
}

std::string closeNames(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::pair<unsigned, std::string>> scored;
  for (const std::string& candidate : names)
    scored.emplace_back(llvm::StringRef(candidate).edit_distance(name), candidate);
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> close;
  for (const auto& [distance, candidate] : scored) {
    if (close.size() < 5 && (distance <= 3 || close.size() < 3)) close.push_back(candidate);
  }
  return join(close, ", ");
}

}  // namespace

std::set<std::string> listedFeatures(const TargetSpec& spec) {
  std::set<std::string> out;
  for (const std::string& part : splitText(spec.features, ',')) {
    if (part.size() > 1 && part[0] == '+') out.insert(part.substr(1));
  }
  return out;
}

std::string featureList(const std::set<std::string>& has, const std::vector<const char*>& names) {
  std::vector<std::string> used;
  for (const char* feature : names) {
    if (has.contains(feature)) used.push_back(std::string("+") + feature);
  }
  std::sort(used.begin(), used.end());
  return join(used, ",");
}

Status unknownCpu(const std::string& cpu, const std::string& architecture, const std::vector<std::string>& names) {
  return Status::error("unknown CPU " + quoted(cpu) + " for " + architecture + "; close names: native, " +
                       closeNames(cpu, names));
}

Result<TargetSpec> makeTarget(const std::string& triple, const std::string& cpu, int threads) {
  llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  llvm::Triple asked(triple.empty() ? host.str() : llvm::Triple::normalize(triple));
  const Architecture* architecture = architectureOf(asked);
  if (!architecture) {
    return Status::error("target " + quoted(asked.str()) + ": architecture " + asked.getArchName().str() +
                         " is not supported; there are x86_64 and aarch64");
  }
  if (!asked.isOSLinux()) {
    return Status::error("target " + quoted(asked.str()) + ": operating system " + asked.getOSName().str() +
                         " is not supported; there is linux");
  }
  bool isHost = host.getArch() == asked.getArch();
  std::string name = !cpu.empty() ? cpu : isHost ? "native" : architecture->baseline();
  bool isNative = name == "native";
  if (isNative && !isHost) {
    return Status::error("CPU native: this machine is " + host.getArchName().str() + ", the target is " + asked.str());
  }
  if (threads < 1) return Status::error("a target needs 1 thread or more, not " + std::to_string(threads));

  TargetSpec spec;
  spec.triple = architecture->name() + (asked.isAndroid() ? "-unknown-linux-android" : "-unknown-linux-gnu");
  spec.cpu = isNative ? llvm::sys::getHostCPUName().str() : name;
  spec.threads = threads;
  LOCUTION_ASSIGN_OR_RETURN(auto has, architecture->featuresOf(spec.cpu, isNative));
  LOCUTION_RETURN_IF_ERROR(architecture->describe(has, &spec));
  if (isNative) readCacheSizes(&spec);
  return spec;
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetSpec& spec) {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const Architecture* each : {&x86(), &aarch64()}) each->initialise();
  });
  std::string message;
  llvm::Triple triple(spec.triple);
  const Architecture* architecture = architectureOf(triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target || !architecture) return Status::error("target " + quoted(spec.triple) + ": " + message);
  MachineRequest request = architecture->machine(spec);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.EmulatedTLS = false;
  auto model = request.tinyCode ? llvm::CodeModel::Tiny : llvm::CodeModel::Small;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, request.cpu, join(request.switches, ","), options, llvm::Reloc::PIC_, model,
                                  llvm::CodeGenOptLevel::Default));
  if (!machine) return Status::error("target " + quoted(spec.triple) + " can't be made");
  return machine;
}

}  // namespace locution::targets::cpu

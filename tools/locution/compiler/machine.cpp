// `locution machine`: measures this machine; the profile is what compilation is told about it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "commands.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

Result<TargetSpec> writeMachineProfile(const std::string& triple, const std::string& cpu, const std::string& file) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec base, targets::cpu::makeTarget(triple, cpu, 1));
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec measured, targets::cpu::measureMachine(base));
  if (file.empty()) return measured;
  const std::string part = file + ".part";
  std::ofstream out(part, std::ios::binary);
  out << measured.str();
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(part, file, error);
  if (!out || error) return Status::error(file + ": can't write the profile");
  return measured;
}

Status machineCommand(const Options& options) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec measured, writeMachineProfile(options.triple, options.cpu, options.outputFile));
  std::printf("%s", measured.str().c_str());
  return Status::ok();
}

}  // namespace locution::tools

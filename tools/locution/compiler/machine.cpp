// `locution machine`: measures this machine; the profile is what compilation is told about it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "commands.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tools {

Status machineCommand(const Options& options) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec base, targets::cpu::makeTarget(options.triple, options.cpu, 1));
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec measured, targets::cpu::measureMachine(base));
  std::printf("%s", measured.str().c_str());
  if (options.outputFile.empty()) return Status::ok();
  std::string part = options.outputFile + ".part";
  std::ofstream file(part, std::ios::binary);
  file << measured.str();
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, options.outputFile, error);
  if (!file || error) return Status::error(options.outputFile + ": can't write the profile");
  return Status::ok();
}

}  // namespace locution::tools

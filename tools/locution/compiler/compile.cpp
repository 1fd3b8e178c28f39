// `locution compile`: a model file to a .loc file.
#include <cstdio>
#include <filesystem>

#include "commands.h"
#include "reproducer.h"

namespace locution::tools {

Status compileCommand(const Options& options) {
  armReproducer(options);
  if (options.outputFile.empty())
    return Status::error("-o FILE is missing: where to write the compiled model (net.loc)");
  if (options.outputFile.size() < 4 || options.outputFile.substr(options.outputFile.size() - 4) != ".loc")
    return Status::error("-o " + options.outputFile + ": the compiled model's name ends in .loc");
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  LOCUTION_ASSIGN_OR_RETURN(driver::Compiled compiled,
                            driver::compileModel(options.model, compile, terminalProgress()));
  report(compiled, options);
  LOCUTION_RETURN_IF_ERROR(runtime::writeExecutable(*compiled.executable, options.outputFile));
  const runtime::Executable& e = *compiled.executable;
  std::printf("%s: %zu kernels, %.1f kB of code, %.1f MB of weights, %.1f MB arena, compiled in %.2f s for %s\n",
              options.outputFile.c_str(), e.kernels.size(), static_cast<double>(e.code.size()) / 1e3,
              static_cast<double>(e.weightBytes()) / 1e6, static_cast<double>(e.arenaBytes) / 1e6, compiled.seconds,
              e.target.cpu.c_str());
  return Status::ok();
}

}  // namespace locution::tools

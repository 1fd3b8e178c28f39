// `locution verify`: every kernel against the reference interpreter.
#include "driver/verify_model.h"

#include <unistd.h>

#include <cstdio>

#include "commands.h"
#include "reproducer.h"

namespace locution::tools {

Status verifyCommand(const Options& options) {
  armReproducer(options);
  if (options.model.size() > 4 && options.model.substr(options.model.size() - 4) == ".loc")
    return Status::error(options.model + " is compiled already and holds no meaning to verify against: give the .onnx");
  GivenInputs given;
  LOCUTION_RETURN_IF_ERROR(readGivenInputs(options, &given));
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  std::map<std::string, Tensor> inputs;
  for (auto& [name, value] : given)
    if (value.isTensor()) {
      inputs[name] = value.tensor;
      compile.inputShapes[name] = value.tensor.shape();
      compile.inputValues[name] = value.tensor;
    }
  auto make = [&](const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
    return randomTensor(name, dtype, dims, options.seed);
  };
  bool terminal = isatty(STDERR_FILENO) != 0;
  size_t count = 0;
  auto onKernel = [&](const driver::KernelVerdict& v) {
    ++count;
    if (options.verbose)
      std::printf("%-36s %-16s %5.1f %% of rows %s\n", v.kernel.c_str(), v.op.c_str(), 100 * v.share,
                  v.difference.empty() ? "equal" : v.difference.c_str());
    else if (terminal)
      std::fprintf(stderr, "\r\033[K%zu kernels checked", count);
  };
  LOCUTION_ASSIGN_OR_RETURN(driver::VerifyReport report,
                            driver::verifyModel(options.model, compile, inputs, make, options.seed, onKernel));
  if (terminal && !options.verbose) std::fprintf(stderr, "\r\033[K");
  for (const driver::KernelVerdict& v : report.kernels)
    if (!v.difference.empty())
      return Status::error(options.model + ": kernel " + v.kernel + " (" + v.op + ") is off: " + v.difference +
                           "\nplan: " + v.plan);
  if (!report.outputProblems.empty())
    return Status::error(options.model + ": every kernel is right by itself, yet " + report.outputProblems[0]);
  std::printf("%s: all %zu kernels equal to the reference interpreter\n", options.model.c_str(), report.kernels.size());
  return Status::ok();
}

}  // namespace locution::tools

// What liblocution_compiler.so gives the command line.
#include "module.h"

#include "commands.h"
#include "frontend/onnx/tensor_files.h"

#define LOCUTION_CONCATENATE_INNER(a, b) a##b
#define LOCUTION_CONCATENATE(a, b) LOCUTION_CONCATENATE_INNER(a, b)

extern "C" __attribute__((visibility("default"))) const locution::tools::CompilerModule* LOCUTION_CONCATENATE(
    locutionCommandLine_, LOCUTION_VERSION_SYMBOL)() {
  using namespace locution::tools;  // NOLINT: one table
  static const CompilerModule kModule = {openOnnx,
                                         compileCommand,
                                         showCommand,
                                         verifyCommand,
                                         reduceCommand,
                                         machineCommand,
                                         auditCommand,
                                         recordsCommand,
                                         tuneCommand,
                                         collectCommand,
                                         evaluateCommand,
                                         trainCommand,
                                         adaptCommand,
                                         locution::frontend::readValueProto,
                                         locution::frontend::writeValueProto};
  return &kModule;
}

// Subcommands and helpers that need the compiler.
#pragma once

#include "core/target.h"
#include "driver/compiler.h"
#include "driver/selection.h"
#include "io.h"
#include "options.h"

namespace locution::tools {

/// Errors: a malformed --shape, a file that can't be read, a flag whose feature isn't there.
Result<driver::CompileOptions> compileOptions(const Options& options);
/// What --on names: a CPU and its threads, whatever this machine is. --cpu and --threads where it names nothing.
struct VirtualTarget {
  std::string cpu;
  int threads = 1;
};
/// Errors: text that isn't CPU:THREADS.
Result<std::vector<VirtualTarget>> virtualTargets(const Options& options);
/// The workloads of the corpus that the options name, and of them the selected ones. Errors: as driver::readCorpus; a --part that there
/// isn't, or without the list that says what it is; a --sample below 0.
struct SelectedCorpus {
  std::vector<driver::CorpusWorkload> all;
  std::vector<driver::Selected> selected;  ///< point into `all`
};
Result<SelectedCorpus> selectedCorpus(const Options& options, const driver::CompileOptions& compile);
/// Prints warnings and --time-passes on standard error.
void report(const driver::Compiled& compiled, const Options& options);
/// A progress line on a terminal, after the first second.
driver::Progress terminalProgress();

/// Compiles a .onnx; shapes of given files settle dynamic dims, and values those inputs that decide shapes.
Result<Model> openOnnx(const Options& options, GivenInputs* given);

/// Measures this machine and writes its profile; `file` empty: nowhere. Errors: as targets::cpu; the file can't be written.
Result<TargetSpec> writeMachineProfile(const std::string& triple, const std::string& cpu, const std::string& file);

Status compileCommand(const Options& options);
Status showCommand(const Options& options);
Status verifyCommand(const Options& options);
Status auditCommand(const Options& options);
Status reduceCommand(const Options& options);
Status machineCommand(const Options& options);
Status recordsCommand(const Options& options);
Status tuneCommand(const Options& options);
Status collectCommand(const Options& options);
Status evaluateCommand(const Options& options);
Status trainCommand(const Options& options);
Status adaptCommand(const Options& options);

}  // namespace locution::tools

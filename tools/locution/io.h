// Files and models of the command line: values in and out, a model as something that runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostops/host_op.h"
#include "options.h"
#include "runtime/context.h"
#include "runtime/executable.h"

namespace locution::tools {

/// .npy or .pb by the name's ending; `kind` says what a .pb holds.
Result<hostops::HostValue> readValue(const std::string& path, ValueKind kind);

/// Standard normal floats, integers 0 or 1, booleans. Depends on the seed and the input's name alone.
Result<Tensor> randomTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims, uint64_t seed);

/// A model ready to run: a .loc loaded, or a .onnx compiled to the same form.
struct Model {
  std::shared_ptr<const runtime::Program> program;
  double compileSeconds = 0, loadSeconds = 0;
  bool compiled = false;
  const char* cache = "off";  ///< or hit, miss
};

/// What --input gives: values by input name; `random` ones are left out.
using GivenInputs = std::map<std::string, hostops::HostValue>;

/// Reads the files that --input names.
Status readGivenInputs(const Options& options, GivenInputs* given);

/// Opens MODEL; shapes of given files settle dynamic dims, and values those inputs that decide shapes.
Result<Model> openModel(const Options& options, GivenInputs* given);
/// Sets every input of the context; says on standard error which were random.
Status bindInputs(const Options& options, const GivenInputs& given, const runtime::Program& program,
                  runtime::Context& context);
/// output_0.npy ... in --output-dir, each written whole or not at all.
Status writeOutputs(const Options& options, const runtime::Program& program, const runtime::Context& context);

/// The file is whole or not there.
Status writeText(const std::string& path, const std::string& text);

/// "name float32 1x3x224x224"
std::string portText(const std::string& name, DType dtype, const std::vector<int64_t>& dims);

}  // namespace locution::tools

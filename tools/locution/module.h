// The part of the command line that needs the compiler: liblocution_compiler.so, loaded on first use, so that running a .loc costs
// neither LLVM's memory nor its start-up time.
#pragma once

#include <string>

#include "io.h"
#include "options.h"

namespace locution::tools {

struct CompilerModule {
  Result<Model> (*openOnnx)(const Options&, GivenInputs*);
  Status (*compile)(const Options&);
  Status (*show)(const Options&);
  Status (*verify)(const Options&);
  Status (*reduce)(const Options&);
  Status (*machine)(const Options&);
  Status (*audit)(const Options&);
  Status (*records)(const Options&);
  Status (*tune)(const Options&);
  Status (*collect)(const Options&);
  Status (*evaluate)(const Options&);
  Status (*train)(const Options&);
  Status (*adapt)(const Options&);
  Result<hostops::HostValue> (*readProto)(const std::string& path, ValueKind kind);
  Status (*writeProto)(const std::string& path, const std::string& name, const hostops::HostValue& value,
                       ValueKind kind);
};

/// Errors: the library is missing or of another version.
Result<const CompilerModule*> compilerModule();

}  // namespace locution::tools

// The command line: parses flags, runs one subcommand, turns a Status into a message and an exit code (0, 1; 70 for our bugs).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "module.h"
#include "options.h"

namespace {

using locution::Status;
using locution::tools::CompilerModule;
using locution::tools::Options;

template <Status (*CompilerModule::*kMember)(const Options&)>
Status inCompiler(const Options& options) {
  LOCUTION_ASSIGN_OR_RETURN(const CompilerModule* compiler, locution::tools::compilerModule());
  return (compiler->*kMember)(options);
}

struct Command {
  const char* name;
  char letter;
  const char* help;
  locution::Status (*run)(const locution::tools::Options&);
  const char* operand;  ///< MODEL, CORPUS, RECORDS or none
};

constexpr Command kCommands[] = {
    {"run", 'R', "run a model once on given or random input", locution::tools::runCommand, "MODEL"},
    {"bench", 'B', "time a model", locution::tools::benchCommand, "MODEL"},
    {"compile", 'C', "write a compiled model (.loc)", inCompiler<&CompilerModule::compile>, "MODEL"},
    {"show", 'S', "print a stage of the compilation", inCompiler<&CompilerModule::show>, "MODEL"},
    {"verify", 'V', "compare every kernel with the reference interpreter", inCompiler<&CompilerModule::verify>,
     "MODEL"},
    {"reduce", 'D', "shrink a model that fails to the smallest that still fails", inCompiler<&CompilerModule::reduce>,
     "MODEL"},
    {"audit", 'A', "draw plans of a model's kernels at random and put them to the test",
     inCompiler<&CompilerModule::audit>, "CORPUS"},
    {"tune", 'T', "find faster plans for a model's kernels by measuring", inCompiler<&CompilerModule::tune>, "CORPUS"},
    {"collect", 'L', "measure plans of many workloads for the records", inCompiler<&CompilerModule::collect>, "CORPUS"},
    {"evaluate", 'E', "measure schedulers against the best plans that are known", inCompiler<&CompilerModule::evaluate>,
     "CORPUS"},
    {"train", 'N', "train the language model that writes plans on measured sentences",
     inCompiler<&CompilerModule::train>, nullptr},
    {"adapt", 'P', "adapt the language model to this machine by measuring what it writes",
     inCompiler<&CompilerModule::adapt>, "CORPUS"},
    {"machine", 'M', "measure this machine and write its profile", inCompiler<&CompilerModule::machine>, nullptr},
    {"records", 'K', "sum up, merge, export and import records of measured sentences",
     inCompiler<&CompilerModule::records>, "RECORDS"},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Locution compiles trained networks (ONNX) to machine code and runs them."};
  app.set_version_flag("--version", LOCUTION_VERSION_NAME);
  app.require_subcommand(1);
  locution::tools::Options options;
  for (int i = 0; i < argc; ++i) options.commandLine += (i ? " " : "") + std::string(argv[i]);
  for (const Command& c : kCommands) {
    CLI::App* sub = app.add_subcommand(c.name, c.help);
    std::string operand = c.operand ? c.operand : "";
    if (operand == "MODEL")
      sub->add_option(operand, options.model, "a .onnx or .loc file, or a graph as text")->required();
    if (operand == "CORPUS")
      sub->add_option(operand, options.places, "models (.onnx files or graphs as text) and folders with models");
    if (operand == "RECORDS")
      sub->add_option(operand, options.records, "a file of records or postgresql://...")->required();
    locution::tools::addFlags(*sub, options, c.letter);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  if (!options.places.empty()) options.model = options.places.front();
  for (const Command& c : kCommands) {
    if (!app.got_subcommand(c.name)) continue;
    try {
      locution::Status s = c.run(options);
      if (s.isOk()) return 0;
      std::fprintf(stderr, "locution %s: %s\n", c.name, s.message().c_str());
    } catch (const std::bad_alloc&) {
      std::fprintf(stderr, "locution %s: not enough memory\n", c.name);
    }
    return 1;
  }
  return 1;
}

#include "reproducer.h"

#include <filesystem>
#include <fstream>

#include "commands.h"
#include "frontend/onnx/onnx_importer.h"
#include "support/check.h"
#include "support/hash.h"

namespace locution::tools {

void armReproducer(const Options& options) {
  setReproducerWriter([options](const std::string& failure) -> std::string {
    std::string text =
        "command: " + options.commandLine + "\nversion: " + driver::compilerVersion() + "\n\n" + failure + "\n\n";
    driver::CompileOptions compile;
    compile.cpu = options.cpu;
    compile.triple = options.triple;
    compile.threads = options.threads;
    auto target = driver::resolveTarget(compile);
    if (target.isOk()) text += "target:\n" + target->str() + "\n";
    auto model = frontend::importModel(options.model);
    if (model.isOk()) text += graph::print(model->graph);
    std::string name = "locution-bug-" + hexDigits(hashText(text)) + ".txt";
    std::error_code error;
    for (const std::filesystem::path& folder :
         {std::filesystem::current_path(error), std::filesystem::temp_directory_path(error)}) {
      std::ofstream file(folder / name, std::ios::binary);
      file << text;
      file.close();
      if (file) return "This is a bug in Locution. Please report it with " + (folder / name).string();
    }
    return "This is a bug in Locution; no report could be written";
  });
}

}  // namespace locution::tools

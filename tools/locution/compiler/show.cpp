// `locution show`: the product of one stage, as text.
#include "driver/show.h"

#include <cstdio>

#include "commands.h"
#include "reproducer.h"

namespace locution::tools {

Status showCommand(const Options& options) {
  armReproducer(options);
  if (options.model.size() > 4 && options.model.substr(options.model.size() - 4) == ".loc") {
    if (options.stage != "memory")
      return Status::error(options.model + " is compiled already: only --stage memory can be shown of it");
    LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program,
                              runtime::Program::loadFile(options.model));
    std::fputs(driver::showMemory(program->executable()).c_str(), stdout);
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  LOCUTION_ASSIGN_OR_RETURN(std::string text, driver::showModel(options.model, compile, options.stage, options.kernel));
  std::fputs(text.c_str(), stdout);
  return Status::ok();
}

}  // namespace locution::tools

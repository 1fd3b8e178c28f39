#include <chrono>

#include "commands.h"
#include "reproducer.h"

namespace locution::tools {

using Clock = std::chrono::steady_clock;

Result<Model> openOnnx(const Options& options, GivenInputs* given) {
  armReproducer(options);
  Model model;
  auto start = Clock::now();
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  for (auto& [name, value] : *given)
    if (value.isTensor()) {
      auto shape = compile.inputShapes.find(name);
      if (shape != compile.inputShapes.end() && !(shape->second == value.tensor.shape()))
        return Status::error("input '" + name + "': --shape says " + shape->second.str() + ", the file holds " +
                             value.tensor.shape().str());
      compile.inputShapes[name] = value.tensor.shape();
      compile.inputValues[name] = value.tensor;
    }
  LOCUTION_ASSIGN_OR_RETURN(driver::Compiled compiled,
                            driver::compileModel(options.model, compile, terminalProgress()));
  auto loading = Clock::now();
  LOCUTION_ASSIGN_OR_RETURN(model.program, runtime::Program::load(compiled.executable));
  model.loadSeconds = std::chrono::duration<double>(Clock::now() - loading).count();
  model.compileSeconds = std::chrono::duration<double>(Clock::now() - start).count();
  model.compiled = true;
  model.cache = compiled.cache == driver::CacheUse::Hit    ? "hit"
                : compiled.cache == driver::CacheUse::Miss ? "miss"
                                                           : "off";
  report(compiled, options);
  return model;
}

}  // namespace locution::tools

// The compile entry points of the C API (compiler.h). Handles are made by this library's copy of the runtime and used by the
// program's: both come from one build, whose structures and allocator are the same.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "commands.h"
#include "locution/compiler.h"
#include "runtime/c_api.h"

namespace {

using locution::Result;
using locution::Status;
using locution::tools::Options;

// The flags of `locution compile`, each in one string.
Result<Options> parseOptions(const char* const* options, size_t count) {
  Options out;
  CLI::App app;
  app.set_help_flag();
  locution::tools::addFlags(app, out, 'C');
  std::vector<std::string> args;
  for (size_t i = 0; i < count; ++i) args.emplace_back(options[i] ? options[i] : "");
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) {
    return Status::error(e.what());
  }
  return out;
}

locution::driver::Progress progressOf(const locution_progress* progress) {
  if (!progress || !progress->report) return {};
  locution_progress copy = *progress;
  return [copy](const std::string& what, double fraction) { copy.report(copy.user, what.c_str(), fraction); };
}

// Runs `use` on the compiled model.
template <typename F>
locution_status compileThen(const char* path, const char* const* options, size_t count,
                            const locution_progress* progress, locution_error* error, bool anyShape, F&& use) {
  using locution::runtime::reportError;
  if (!path || (count > 0 && !options)) return reportError(error, LOCUTION_INVALID_ARGUMENT, "a null pointer");
  try {
    auto parsed = parseOptions(options, count);
    if (!parsed.isOk()) return reportError(error, LOCUTION_INVALID_ARGUMENT, parsed.status().message());
    auto compile = locution::tools::compileOptions(*parsed);
    if (!compile.isOk()) return reportError(error, LOCUTION_INVALID_ARGUMENT, compile.status().message());
    compile->anyShape = anyShape;
    auto compiled = locution::driver::compileModel(path, *compile, progressOf(progress));
    if (!compiled.isOk()) return reportError(error, LOCUTION_CANNOT_COMPILE, compiled.status().message());
    Status s = use(compiled->executable);
    return s.isOk() ? LOCUTION_OK : reportError(error, LOCUTION_CANNOT_COMPILE, s.message());
  } catch (const std::bad_alloc&) {
    return reportError(error, LOCUTION_OUT_OF_MEMORY, "not enough memory");
  }
}

}  // namespace

extern "C" {

locution_status locution_compile(const char* model_path, const char* const* options, size_t option_count,
                                 const char* output_path, const locution_progress* progress, locution_error* error) {
  if (!output_path) return locution::runtime::reportError(error, LOCUTION_INVALID_ARGUMENT, "output_path is null");
  return compileThen(model_path, options, option_count, progress, error, false, [&](const auto& executable) {
    return locution::runtime::writeExecutable(*executable, output_path);
  });
}

locution_status locution_compile_model(const char* model_path, const char* const* options, size_t option_count,
                                       const locution_progress* progress, locution_model** model,
                                       locution_error* error) {
  if (!model) return locution::runtime::reportError(error, LOCUTION_INVALID_ARGUMENT, "model is null");
  return compileThen(model_path, options, option_count, progress, error, true, [&](const auto& executable) -> Status {
    LOCUTION_ASSIGN_OR_RETURN(auto program, locution::runtime::Program::load(executable));
    *model = locution::runtime::makeModelHandle(program);
    return Status::ok();
  });
}

}  // extern "C"

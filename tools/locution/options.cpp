#include "options.h"

#include <CLI/CLI.hpp>

namespace locution::tools {

namespace {

void add(CLI::App& app, const char* name, bool& field, const char* help) { app.add_flag(name, field, help); }
template <typename T>
void add(CLI::App& app, const char* name, T& field, const char* help) {
  app.add_option(name, field, help)->capture_default_str();
}
void add(CLI::App& app, const char* name, std::vector<std::string>& field, const char* help) {
  app.add_option(name, field, help)->allow_extra_args(false);
}

}  // namespace

void addFlags(CLI::App& app, Options& options, char command) {
#define FLAG(name, field, commands, help) \
  if (std::string_view(commands).find(command) != std::string_view::npos) add(app, name, options.field, help);
#include "flags.inc"
#undef FLAG
}

}  // namespace locution::tools

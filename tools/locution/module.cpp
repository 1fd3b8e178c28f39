#include "module.h"

#include <dlfcn.h>

namespace locution::tools {

Result<const CompilerModule*> compilerModule() {
  static const CompilerModule* loaded = nullptr;
  if (loaded) return loaded;
  void* library = dlopen("liblocution_compiler.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Status::error(std::string("the compiler can't be loaded: ") + dlerror());
  // The name carries the version: a library of another one doesn't have it.
  auto get = reinterpret_cast<const CompilerModule* (*)()>(
      dlsym(library, "locutionCommandLine_" LOCUTION_VERSION_SYMBOL_NAME));
  if (!get) return Status::error("liblocution_compiler.so is of another version than this program");
  return loaded = get();
}

}  // namespace locution::tools

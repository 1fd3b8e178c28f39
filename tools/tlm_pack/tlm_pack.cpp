// locution-tlm-pack FILE: compiles the language model's inference for each instruction set and writes the programs to one file, which the
// compiler then carries (src/driver/tlm_embedded.h). Part of the build.
#include <cstdio>

#include "driver/tlm_embedded.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: locution-tlm-pack FILE\n");
    return 1;
  }
  const locution::Status s = locution::driver::writeTlmPrograms(argv[1]);
  if (!s.isOk()) std::fprintf(stderr, "locution-tlm-pack: %s\n", s.message().c_str());
  return s.isOk() ? 0 : 1;
}

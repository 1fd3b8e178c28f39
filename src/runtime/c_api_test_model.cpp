// usage: c_api_test_model FILE      writes the test model
#include <cstdio>

#include "runtime/test_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto model = locution::runtime::testModel();
  model->instructions.erase(model->instructions.begin() + 3);  // the range check
  locution::Status s = locution::runtime::writeExecutable(*model, argv[1]);
  if (!s.isOk()) std::fprintf(stderr, "%s\n", s.message().c_str());
  return s.isOk() ? 0 : 1;
}

// `locution verify`: every kernel against the reference interpreter.
#include "io.h"
#include "options.h"

namespace locution::tools {

Status verifyCommand(const Options&) { return Status::error("not there yet"); }

}  // namespace locution::tools

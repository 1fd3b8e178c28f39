// `locution verify`: every kernel against the reference interpreter.
#include "commands.h"

namespace locution::tools {

Status verifyCommand(const Options&) { return Status::error("not there yet"); }

}  // namespace locution::tools

// What the compiler library needs of the C API's insides.
#pragma once

#include <memory>
#include <string_view>

#include "locution/locution.h"
#include "runtime/executable.h"

namespace locution::runtime {

/// A handle of its own to `program`; freed by locution_model_free.
locution_model* makeModelHandle(std::shared_ptr<const Program> program);
/// Fills `error` (when there is one) and returns `status`.
locution_status reportError(locution_error* error, locution_status status, std::string_view message);

}  // namespace locution::runtime

// Cache sizes of the machine this runs on.
#pragma once

#include "core/target.h"

namespace locution::targets::cpu {

/// Sets the cache sizes of `spec` to those of this machine's first core; a shared cache counts by its share a core. What the
/// system doesn't tell stays as it is.
void readCacheSizes(TargetSpec* spec);

}  // namespace locution::targets::cpu

// Is an Executable safe to run? Everything a context relies on without looking again: indices, offsets, sizes, order.
#pragma once

#include <cstdint>

#include "runtime/executable.h"
#include "support/status.h"

namespace locution::runtime {

/// Bytes of a slot with static dims; -1 when a dim is unknown or the size is absurd.
int64_t slotBytes(const Slot& slot);
/// True when every dim is a number.
bool isStaticSlot(const Slot& slot);

/// The first thing that is off. Code itself can't be checked: a file from someone you don't trust is a program from them.
Status validate(const Executable& executable);

}  // namespace locution::runtime

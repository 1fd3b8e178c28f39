// The text of what a kernel computes, as something that is read: from files, records, users.
#pragma once

#include <string>
#include <string_view>

#include "loop/compute.h"
#include "support/status.h"

namespace locution::loop {

/// Inverse of print(Computation): printing what was read gives the same text, and the hashes are equal. Equal expressions of a stage
/// become one node. Errors: with the line; what is not well formed (see `verify`).
Result<Computation> parseComputation(std::string_view text);

/// print, with names that say only what a thing is and how many of its kind were there: axes i0 i1, reduced ones r0, buffers b0 in
/// the order inputs, outputs, temporaries, lets v0. Computations that differ only in names have the same text.
std::string printNameFree(const Computation& c);

/// Axes that fit the buffers, types, defined variables and buffers, combiners that their type has, outputs all written.
Status verify(const Computation& c);

}  // namespace locution::loop

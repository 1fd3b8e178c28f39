// Elements of 4 and 2 bits share bytes, and a byte has one writer. So a stage of such elements is made to give bytes of one element
// each, and a further stage puts them together, a byte at a time:
//     int4 y[5] = f(i)   ->   uint8 y.wide[5] = f(i);  uint8 y.bytes[3] = y.wide[2 j] & 15 | (y.wide[2 j + 1] & 15) << 4
#pragma once

#include <vector>

#include "loop/compute.h"

namespace locution::schedule {

struct WholeBytes {
  loop::BufferRef from, to;  ///< an output as it was, and its bytes, which have taken its place
};

/// Changes every stage whose elements are smaller than a byte; what it no longer says is what to call an output's bytes.
std::vector<WholeBytes> writeWholeBytes(loop::Computation* computation);

}  // namespace locution::schedule

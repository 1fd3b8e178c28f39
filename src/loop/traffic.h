// What a computation moves, for the profiler and for models of cost.
#pragma once

#include "loop/compute.h"

namespace locution::loop {

/// How many elements of an input the computation reads at most: all of them, unless its loads go through fewer points.
double countReads(const Computation& c, const Buffer& input);

}  // namespace locution::loop

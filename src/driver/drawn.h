// Networks of a layer or a block each, drawn at random: kinds of layers as they occur in vision and language models, extents
// log-uniform, so that small, large, odd, prime and skinny ones are all met.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace locution::driver {

/// The network of that number: the same for the same seed. Types other than those of inputs and constants are not inferred yet.
graph::Graph drawNetwork(uint64_t seed, int64_t number);

}  // namespace locution::driver

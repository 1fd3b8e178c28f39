// What a bug of ours leaves behind: one text file that a report can carry.
#pragma once

#include "options.h"

namespace locution::tools {

/// From now on a failed check writes `locution-bug-HASH.txt` in the current folder (or the temporary one): command line, version,
/// target, the failure and the model's graph, weights as hashes.
void armReproducer(const Options& options);

}  // namespace locution::tools

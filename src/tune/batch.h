// A worker's side: compiles a batch, checks each candidate's outputs, and times those that are right in turns with the incumbent.
#pragma once

#include <vector>

#include "tune/shared_block.h"
#include "tune/worker.h"

namespace locution::tune {

/// Runs in the forked process. Candidates whose slot is done already are left out. `jobs`: threads that compile.
void runBatch(const Subject& subject, const std::vector<schedule::Plan>& plans, Task task, int jobs,
              SharedBlock* block);

}  // namespace locution::tune

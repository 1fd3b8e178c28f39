// Plans from a file of sentences, as `locution show --stage sentences` writes it and a user may have edited it: a line a workload,
//     3f2a90c1d2e4b568 TARGET | WORKLOAD | PLAN
// Lines that begin with # are comments. Kernels whose workload the file does not name get another scheduler's plan.
#pragma once

#include <memory>
#include <string>

#include "generator/scheduler.h"

namespace locution::generator {

/// `name` is the file's, for messages. Errors: a line that is no such line, or a workload named twice. What a sentence says is checked when
/// its kernel is met (Scheduler::check).
Result<std::unique_ptr<Scheduler>> makeFromSentences(const std::string& text, const std::string& name,
                                                     std::unique_ptr<Scheduler> otherwise);

/// The line for a kernel.
std::string sentenceLine(const space::Space& space, const space::Choices& choices);

}  // namespace locution::generator

// A training's state as a safetensors file: parameters under their own names, so that the file is a model's weights too, moments as
// "adamw.first.NAME" and "adamw.second.NAME", the step and what the caller adds in the metadata.
#pragma once

#include <map>
#include <string>

#include "support/status.h"
#include "train/step.h"

namespace locution::train {

using Metadata = std::map<std::string, std::string>;

/// Written beside `path` and then put in its place: a kill leaves the old file or the new one.
Status saveCheckpoint(const std::string& path, const State& state, const Metadata& metadata = {});
struct Checkpoint {
  State state;
  Metadata metadata;
};
/// Errors name the file.
Result<Checkpoint> loadCheckpoint(const std::string& path);

}  // namespace locution::train

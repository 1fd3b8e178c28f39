// A file of values: tensors, sequences and empty optionals in a row, as .loc files keep them. What .npy can't hold (strings of any
// length, sequences, 16- and 8-bit floats as they are) goes through such files to and from locution-runner.
#pragma once

#include <string>
#include <vector>

#include "hostops/host_op.h"
#include "support/status.h"

namespace locution::runtime {

/// Errors name the path: not such a file, cut off.
Result<std::vector<hostops::HostValue>> readValues(const std::string& path);
Status writeValues(const std::string& path, const std::vector<hostops::HostValue>& values);

}  // namespace locution::runtime

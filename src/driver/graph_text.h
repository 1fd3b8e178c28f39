// Models as graph text (graph::print with its constants), where a command takes a .onnx: what `locution reduce` writes.
#pragma once

#include <string>

#include "graph/graph.h"
#include "support/status.h"

namespace locution::driver {

/// The file starts like a printed graph; no .onnx does.
bool isGraphText(const std::string& path);
/// Errors: an unreadable file, text that isn't a graph or that holds hashes instead of constants; with the file's name.
Result<graph::Graph> readGraphText(const std::string& path);

}  // namespace locution::driver

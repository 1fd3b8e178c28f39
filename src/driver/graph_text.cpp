#include "driver/graph_text.h"

#include <fstream>
#include <sstream>

namespace locution::driver {

bool isGraphText(const std::string& path) {
  constexpr std::string_view kStart = "graph \"";
  std::string start(kStart.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == kStart;
}

Result<graph::Graph> readGraphText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return Status::error(path + ": can't be read");
  auto graph = graph::parseGraph(text.str());
  if (!graph.isOk()) return graph.status().withContext(path);
  return graph;
}

}  // namespace locution::driver

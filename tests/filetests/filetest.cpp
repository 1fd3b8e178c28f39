// File tests: a text file holds the names of passes, a graph, and the whole graph that must come out.
//     // passes: simplify dce
//     graph "name" { ... }
//     // expected
//     graph "name" { ... }
// `LOCUTION_BLESS=1 filetests` rewrites the expected part of every file. A pass's error is expected as "error: MESSAGE".
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/graph.h"
#include "passes/pass.h"
#include "support/strings.h"

namespace locution {
namespace {

constexpr std::string_view kPasses = "// passes:", kExpected = "// expected\n";

std::vector<std::string> findFiles() {
  std::vector<std::string> files;
  const std::filesystem::path root = std::filesystem::path(LOCUTION_SOURCE_DIR) / "tests/filetests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
      files.push_back(std::filesystem::relative(entry.path(), root).string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string runPasses(const std::vector<std::string>& names, std::string_view input) {
  Result<graph::Graph> graph = graph::parseGraph(input);
  if (!graph.isOk()) return "error: " + graph.status().message() + "\n";
  passes::PassContext context;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const passes::PassDef* pass = passes::findPass(name);
    if (!pass) return "error: no pass " + name + "\n";
    if (Status s = passes::runPass(*pass, *graph, context, {}); !s.isOk()) return "error: " + s.message() + "\n";
  }
  std::string out = graph::print(*graph);
  for (const std::string& warning : context.warnings) out += "// warning: " + warning + "\n";
  return out;
}

class FileTest : public testing::TestWithParam<std::string> {};

TEST_P(FileTest, GivesWhatIsExpected) {
  const std::filesystem::path path = std::filesystem::path(LOCUTION_SOURCE_DIR) / "tests/filetests" / GetParam();
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  const std::string text = buffer.str();
  const size_t passesAt = text.find(kPasses), passesEnd = text.find('\n', passesAt);
  ASSERT_NE(passesAt, std::string::npos) << "no line '// passes:' in " << path;
  const size_t expectedAt = text.find(kExpected);
  const std::string names = text.substr(passesAt + kPasses.size(), passesEnd - passesAt - kPasses.size());
  const std::string got = runPasses(splitText(names, ' '), text.substr(passesEnd, expectedAt - passesEnd));
  if (std::getenv("LOCUTION_BLESS")) {
    std::ofstream(path) << text.substr(0, expectedAt) << kExpected << got;
    return;
  }
  ASSERT_NE(expectedAt, std::string::npos) << "no line '// expected' in " << path;
  EXPECT_EQ(got, text.substr(expectedAt + kExpected.size()));
}

std::string testName(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (char c : info.param.substr(0, info.param.size() - 4))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, FileTest, testing::ValuesIn(findFiles()), testName);

}  // namespace
}  // namespace locution

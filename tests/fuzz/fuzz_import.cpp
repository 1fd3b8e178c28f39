// Bytes into the importer: whatever they are, there is a graph that verifies, or one message.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "coverage.h"
#include "frontend/onnx/onnx_importer.h"
#include "graph/graph.h"

namespace locution::fuzz {

namespace {

void report(const Coverage& coverage) {
  std::printf("%lld files, %lld imported, with %zu operators, %s\n", static_cast<long long>(coverage.cases),
              static_cast<long long>(coverage.cases - coverage.refused), coverage.ops.size(),
              dtypesText(coverage).c_str());
}

}  // namespace

int fuzzImport(const uint8_t* data, size_t size) {
  static Coverage& coverage = reportedAtExit(report);
  ++coverage.cases;
  frontend::ImportOptions options;
  options.requireKnownOps = false;
  options.maxDenseBytes = 1 << 20;
  options.maxInlinedNodes = 10'000;
  auto model = frontend::importModel(std::as_bytes(std::span(data, size)), "fuzz.onnx", "", options);
  if (!model) {
    ++coverage.refused;
    LOCUTION_CHECK(!model.status().message().empty());
    return 0;
  }
  Status broken = graph::verify(model->graph);
  LOCUTION_CHECK(broken.isOk()) << broken.message();
  countGraph(model->graph, coverage);
  // What was imported can be printed, and a print without long constants read back.
  std::string text = graph::print(model->graph, 1 << 20);
  auto parsed = graph::parseGraph(text);
  LOCUTION_CHECK(parsed.isOk()) << parsed.status().message();
  LOCUTION_CHECK(graph::hash(*parsed) == graph::hash(model->graph)) << text;
  return 0;
}

}  // namespace locution::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return locution::fuzz::fuzzImport(data, size);
}

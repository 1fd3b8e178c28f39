// Bytes of real models, mutated, into the importer, all passes and the lowering to kernels, without a run: whatever they hold, there
// are kernels or a message, in bounded time. The models are the node suite's of the unpacked onnx wheel: small, every operator.
//   fuzz_models [--seconds N] [--seed S] [--count N] [--only S] [--print]
// --only takes one case in this process; --print writes its bytes to fuzz_models-S.onnx.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "driver/prepare.h"
#include "frontend/onnx/onnx_importer.h"
#include "fuzz_main.h"
#include "graph/graph.h"
#include "wire_mutator.h"

namespace locution::fuzz {

namespace {

using Bytes = std::string;

// In order of their names.
const std::vector<std::filesystem::path>& models() {
  static const std::vector<std::filesystem::path> kAll = [] {
    std::vector<std::filesystem::path> out;
    std::error_code error;
    const std::filesystem::path suite = LOCUTION_ONNX_WHEEL "/onnx/backend/test/data/node";
    for (const auto& entry : std::filesystem::directory_iterator(suite, error)) {
      std::filesystem::path file = entry.path() / "model.onnx";
      if (std::filesystem::exists(file, error)) out.push_back(file);
    }
    std::sort(out.begin(), out.end());
    return out;
  }();
  return kAll;
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// One in eight is damaged without regard to its structure: most of those end in the parser.
Bytes mutant(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto any = [&] { return read(models()[static_cast<size_t>(random() % models().size())]); };
  Bytes bytes = any();
  return random() % 8 == 0 ? mutateBytes(std::move(bytes), random) : mutateMessage(bytes, any(), random);
}

std::string lowerBytes(std::span<const std::byte> bytes, Coverage& coverage) {
  frontend::ImportOptions import;
  import.maxDenseBytes = 1 << 24;
  import.maxInlinedNodes = 10'000;
  auto model = frontend::importModel(bytes, "fuzz.onnx", "", import);
  if (!model.isOk()) return model.status().message().empty() ? "an error without a message" : "refused";
  ++coverage.marks["imported"];
  Status broken = graph::verify(model->graph);
  if (!broken.isOk()) return "the imported graph is broken: " + broken.message();
  countGraph(model->graph, coverage);
  driver::CompileOptions options;
  options.jobs = 1;
  options.foldCapBytes = 1 << 24;
  auto session = driver::Session::create(options);
  if (!session.isOk()) return session.status().message();
  for (Status s : {(*session)->specialise(model->graph), (*session)->optimise(model->graph)})
    if (!s.isOk()) return "refused";
  auto lowered = (*session)->lower(model->graph);
  if (!lowered.isOk()) return "refused";
  ++coverage.marks["lowered"];
  return "";
}

std::string runBytes(const Bytes& bytes, Coverage& coverage) {
  return lowerBytes(std::as_bytes(std::span(bytes.data(), bytes.size())), coverage);
}

void report(const Coverage& coverage) {
  auto marked = [&](const char* mark) {
    auto found = coverage.marks.find(mark);
    return static_cast<long long>(found == coverage.marks.end() ? 0 : found->second);
  };
  std::printf("%lld mutants of %zu models, %lld imported, %lld lowered, with %zu operators, %s\n",
              static_cast<long long>(coverage.cases), models().size(), marked("imported"), marked("lowered"),
              coverage.ops.size(), dtypesText(coverage).c_str());
}

}  // namespace

int fuzzModelsMain(int argc, char** argv) {
  Flags flags;
  if (!parseFlags(argc, argv, "fuzz_models", &flags)) return 2;
  if (models().empty()) {
    std::printf("no models in " LOCUTION_ONNX_WHEEL "\n0 passed, 1 failed\n");
    return 1;
  }
  if (flags.only) {
    Bytes bytes = mutant(*flags.only);
    if (flags.print) std::ofstream("fuzz_models-" + std::to_string(*flags.only) + ".onnx", std::ios::binary) << bytes;
    Coverage coverage;
    std::string problem = runBytes(bytes, coverage);
    std::printf("%s\n", problem.empty() ? "lowered" : problem.c_str());
    return !problem.empty() && !problem.starts_with("refused");
  }
  Coverage coverage;
  int failed = runBatches(
      flags, "fuzz_models", [](uint64_t seed, Coverage& c) { return runBytes(mutant(seed), c); }, coverage);
  report(coverage);
  std::printf("%lld passed, %d failed\n", static_cast<long long>(coverage.cases - failed), failed);
  return failed > 0;
}

int fuzzModelBytes(const uint8_t* data, size_t size) {
  // What the report reads is made before it is registered, so that it outlives it.
  static Coverage& coverage = (models(), reportedAtExit(report));
  ++coverage.cases;
  std::string problem = lowerBytes(std::as_bytes(std::span(data, size)), coverage);
  LOCUTION_CHECK(problem.empty() || problem == "refused") << problem;
  return 0;
}

}  // namespace locution::fuzz

#ifdef LOCUTION_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return locution::fuzz::fuzzModelBytes(data, size);
}
#else
int main(int argc, char** argv) { return locution::fuzz::fuzzModelsMain(argc, argv); }
#endif

// `locution reduce`: a failing model to the smallest that still fails, as graph text.
#include "driver/reduce.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "commands.h"
#include "driver/prepare.h"

namespace locution::tools {

namespace {

using driver::Failure;

const char* kindText(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::Off:
      return "is off";
    case Failure::Kind::Crash:
      return "crashes";
    case Failure::Kind::Hang:
      return "hangs";
    case Failure::Kind::Refused:
      return "is refused";
    case Failure::Kind::None:
      break;
  }
  return "is right";
}

}  // namespace

Status reduceCommand(const Options& options) {
  GivenInputs given;
  LOCUTION_RETURN_IF_ERROR(readGivenInputs(options, &given));
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  if (options.limit < 1) return Status::error("--limit: at least one second");
  std::map<std::string, Tensor> inputs;
  for (auto& [name, value] : given)
    if (value.isTensor()) {
      inputs[name] = value.tensor;
      compile.inputShapes[name] = value.tensor.shape();
      compile.inputValues[name] = value.tensor;
    }
  const std::string out = options.outputFile.empty()
                              ? options.model.substr(options.model.rfind('/') + 1) + ".reduced.txt"
                              : options.outputFile;
  // No compiling in this process: what crashes shall crash in a child's.
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<driver::Session> session, driver::Session::create(compile));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(options.model));
  LOCUTION_RETURN_IF_ERROR(session->inferTypes(graph).withContext(options.model));
  compile.inputShapes.clear();  // they are in the graph now
  compile.inputValues.clear();
  auto make = [&](const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
    return randomTensor(name, dtype, dims, options.seed);
  };
  auto failure = [&](const graph::Graph& g) {
    return driver::failureOf(g, compile, inputs, make, options.seed, static_cast<unsigned>(options.limit));
  };
  Failure first = failure(graph);
  if (first.kind == Failure::Kind::None) return Status::error(options.model + ": nothing fails");
  if (first.kind == Failure::Kind::Refused)
    return Status::error(options.model + ": it can't be compiled, which is no failure to reduce: " + first.text);
  std::fprintf(stderr, "%s %s: %s\n", options.model.c_str(), kindText(first.kind), first.text.c_str());
  const bool terminal = isatty(STDERR_FILENO) != 0;
  auto onStep = [&](const graph::Graph& g, const driver::ReduceStats& stats) {
    if (terminal)
      std::fprintf(stderr, "\r\033[K%zu nodes left, %d candidates tried", g.main().nodes.size(), stats.tried);
    return true;
  };
  const size_t before = graph.main().nodes.size();
  graph::Graph small = driver::reduceGraph(
      std::move(graph), [&](const graph::Graph& g) { return failure(g).kind == first.kind; }, onStep);
  if (terminal) std::fprintf(stderr, "\r\033[K");
  std::ofstream file(out, std::ios::binary);
  file << graph::print(small, INT64_MAX);
  file.close();
  if (!file) return Status::error(out + ": can't be written");
  std::printf("%s: %zu of %zu nodes; it %s: %s\n", out.c_str(), small.main().nodes.size(), before, kindText(first.kind),
              failure(small).text.c_str());
  return Status::ok();
}

}  // namespace locution::tools

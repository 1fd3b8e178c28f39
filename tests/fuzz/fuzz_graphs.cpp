// Random small graphs over every compiled operator, compiled whole and run, against the interpreter on unfused, unscheduled loops.
//   fuzz_graphs [--seconds N] [--seed S] [--count N] [--only S] [--print] [--dump FOLDER]
// --only runs (and with --print shows) one graph, in this process: for the debugger. --dump writes what is right by the interpreter to
// FOLDER/S, for a second implementation. The last line is "N passed, N failed".
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "driver/compiler.h"
#include "dump_case.h"
#include "fuzz_main.h"
#include "graph_maker.h"
#include "ops/op.h"
#include "reference_graph.h"
#include "runtime/context.h"
#include "support/check.h"

namespace locution::fuzz {

namespace {

struct Case {
  graph::Graph graph;
  std::map<std::string, Tensor> inputs;
  driver::CompileOptions options;
};

Case makeCase(uint64_t seed) {
  GraphMaker maker(seed);
  Case c;
  c.graph = maker.run(1 + static_cast<int>(seed % 10));
  c.inputs = maker.inputValues();
  c.options.threads = 1 + static_cast<int>(maker.pick(2));
  c.options.cpu = maker.oneOf({"native", "native", "x86-64-v3", "x86-64-v2"});
  c.options.jobs = 1;
  return c;
}

// "" when right, "refused ..." when both or neither could tell, else what is wrong.
std::string runCase(const Case& c, uint64_t seed, const std::string& dump) {
  auto want = runReference(c.graph, c.inputs);
  auto compiled = driver::compileGraph(c.graph, c.options);
  if (!compiled.isOk()) {
    if (!want.isOk()) return "refused by both: " + want.status().message();
    return "not compiled: " + compiled.status().message();
  }
  auto program = runtime::Program::load(compiled->executable);
  if (!program.isOk()) return "not loaded: " + program.status().message();
  runtime::Context context(*program, runtime::ThreadPool::create(c.options.threads));
  for (size_t i = 0; i < c.graph.main().inputs.size(); ++i) {
    Status s = context.setInput(i, c.inputs.at(c.graph.value(c.graph.main().inputs[i]).name));
    if (!s.isOk()) return "input: " + s.message();
  }
  Status ran = context.run();
  if (!want.isOk()) return "refused by the reference: " + want.status().message();
  if (!ran.isOk()) return "the run failed: " + ran.message();
  std::vector<Tensor> have;
  for (size_t i = 0; i < want->size(); ++i) have.push_back(context.output(i));
  std::string difference = differenceFromReference(c.graph, c.inputs, *want, have, seed);
  if (!difference.empty() || dump.empty()) return difference;
  Status dumped = dumpCase(dump + "/" + std::to_string(seed), c.graph, c.inputs, have);
  return dumped.isOk() ? "" : dumped.message();
}

void report(const Coverage& coverage) {
  size_t compiled = 0;
  std::string missing;
  for (const ops::OpDef& op : ops::allOps()) {
    if (!op.compute) continue;
    ++compiled;
    if (!coverage.ops.contains(std::string(op.name))) missing += " " + std::string(op.name);
  }
  std::printf("%lld graphs, %zu of %zu compiled operators, %s\n", static_cast<long long>(coverage.cases),
              coverage.ops.size(), compiled, dtypesText(coverage).c_str());
  if (!missing.empty()) std::printf("not met:%s\n", missing.c_str());
}

}  // namespace

std::string runSeed(uint64_t seed, Coverage& coverage, const std::string& dump = "") {
  Case c = makeCase(seed);
  countGraph(c.graph, coverage);
  return runCase(c, seed, dump);
}

int fuzzGraphsMain(int argc, char** argv) {
  Flags flags;
  if (!parseFlags(argc, argv, "fuzz_graphs", &flags)) return 2;
  if (flags.only) {
    Case c = makeCase(*flags.only);
    if (flags.print)
      std::printf("%s--cpu %s --threads %d\n", graph::print(c.graph, 1 << 20).c_str(), c.options.cpu.c_str(),
                  c.options.threads);
    std::fflush(stdout);
    std::string problem = runCase(c, *flags.only, flags.dump);
    std::printf("%s\n", problem.empty() ? "equal" : problem.c_str());
    return !problem.empty() && !problem.starts_with("refused");
  }
  Coverage coverage;
  int failed = runBatches(
      flags, "fuzz_graphs", [&](uint64_t seed, Coverage& c) { return runSeed(seed, c, flags.dump); }, coverage);
  report(coverage);
  std::printf("%lld passed, %d failed\n", static_cast<long long>(coverage.cases - failed), failed);
  return failed > 0;
}

void fuzzGraph(uint64_t seed) {
  // What the report reads is made before it is registered, so that it outlives it.
  static Coverage& coverage = (ops::allOps(), reportedAtExit(report));
  ++coverage.cases;
  std::string problem = runSeed(seed, coverage);
  LOCUTION_CHECK(problem.empty() || problem.starts_with("refused")) << "seed " << seed << ": " << problem;
}

}  // namespace locution::fuzz

#ifdef LOCUTION_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t seed = 0;
  std::memcpy(&seed, data, std::min(size, sizeof seed));
  locution::fuzz::fuzzGraph(seed);
  return 0;
}
#else
int main(int argc, char** argv) { return locution::fuzz::fuzzGraphsMain(argc, argv); }
#endif

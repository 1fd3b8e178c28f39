// The ONNX node suite on the CPU target: every case in a process of its own. Fails when a case that is expected to pass doesn't, or
// when any case crashes or hangs. Its last line is "N passed, N failed".
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "driver/compiler.h"
#include "emulated.h"
#include "graph/graph.h"
#include "node_case.h"
#include "report.h"
#include "workers.h"

namespace locution::conformance {
namespace {

/// What CTest takes for "not run".
constexpr int kSkipped = 77;

const char* const kUsage =
    "usage: conformance [options]\n"
    "  --suite FOLDER     the node tests (default: of the unpacked onnx wheel)\n"
    "  --filter TEXT      only cases whose name contains TEXT\n"
    "  --threads N        of the target and of each run (default 1)\n"
    "  --cpu NAME         compile for that CPU (default native; generic for another architecture)\n"
    "  --target TRIPLE    compile for that machine (needs --emulator or --compile-only)\n"
    "  --emulator COMMAND runs the compiled cases: \"qemu-aarch64 build/aarch64/locution-runner\"\n"
    "  --compile-only     what compiles passes\n"
    "  --sample N         only N cases, spread over all\n"
    "  --constants        inputs become constants\n"
    "  --dynamic          every dim of the inputs becomes dynamic\n"
    "  --processes N      cases at a time (default 2)\n"
    "  --json FILE        one line a case\n"
    "  --list             prints each case that doesn't pass\n"
    "  --update           writes expected_passes.txt and docs/conformance.md, unless a case crashed or hung\n";

struct Options {
  std::string suite = LOCUTION_ONNX_WHEEL "/onnx/backend/test/data/node";
  std::string filter, json;
  CaseOptions cases;
  int processes = 2;
  size_t sample = 0;  ///< 0: all
  bool update = false, list = false;
};

bool parse(int argc, char** argv, Options* o) {
  o->cases.compile.cpu.clear();
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--update") {
      o->update = true;
    } else if (flag == "--list") {
      o->list = true;
    } else if (flag == "--constants") {
      o->cases.constants = true;
    } else if (flag == "--dynamic") {
      o->cases.dynamic = true;
    } else if (flag == "--compile-only") {
      o->cases.compileOnly = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (flag == "--suite") {
      o->suite = argv[++i];
    } else if (flag == "--filter") {
      o->filter = argv[++i];
    } else if (flag == "--json") {
      o->json = argv[++i];
    } else if (flag == "--cpu") {
      o->cases.compile.cpu = argv[++i];
    } else if (flag == "--target") {
      o->cases.compile.triple = argv[++i];
    } else if (flag == "--emulator") {
      o->cases.emulator = argv[++i];
    } else if (flag == "--sample") {
      o->sample = static_cast<size_t>(std::max(1, std::atoi(argv[++i])));
    } else if (flag == "--threads") {
      o->cases.compile.threads = std::max(1, std::atoi(argv[++i]));
    } else if (flag == "--processes") {
      o->processes = std::max(1, std::atoi(argv[++i]));
    } else {
      return false;
    }
  }
  return true;
}

// Its last word is the runner.
bool isRunnerThere(const std::string& emulator) {
  return access(emulator.substr(emulator.rfind(' ') + 1).c_str(), X_OK) == 0;
}

std::vector<std::string> chosenCases(const Options& o) {
  std::vector<std::string> all, chosen;
  for (const std::string& name : caseNames(o.suite))
    if (name.find(o.filter) != std::string::npos) all.push_back(name);
  if (o.sample == 0 || o.sample >= all.size()) return all;
  for (size_t i = 0; i < o.sample; ++i) chosen.push_back(all[i * all.size() / o.sample]);
  return chosen;
}

bool writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return true;
  std::fprintf(stderr, "%s: can't write\n", path.c_str());
  return false;
}

// What every child would do again: LLVM's tables.
void warmUp(const CaseOptions& options) {
  auto graph =
      graph::parseGraph("graph \"warm\" {\n  input %x: float32[4]\n  %y: float32[4] = Relu(%x)\n  output %y\n}\n");
  LOCUTION_CHECK(graph.isOk()) << graph.status().message();
  auto compiled = driver::compileGraph(std::move(*graph), options.compile);
  LOCUTION_CHECK(compiled.isOk()) << compiled.status().message();
}

int run(Options o) {
  o.cases.compile.jobs = 1;
  if (!o.cases.emulator.empty() && !isRunnerThere(o.cases.emulator)) {
    std::fprintf(stderr, "%s: it is not there; cmake --preset aarch64 && cmake --build --preset aarch64 makes it\n",
                 o.cases.emulator.c_str());
    return kSkipped;
  }
  std::vector<std::string> names = chosenCases(o);
  if (names.empty()) {
    std::fprintf(stderr, "%s: no cases (scripts/setup unpacks the wheel)\n", o.suite.c_str());
    return 1;
  }
  auto expected = readExpected(LOCUTION_SOURCE_DIR "/tests/conformance/expected_passes.txt");
  if (!expected.isOk() && !o.update) {
    std::fprintf(stderr, "%s\n", expected.status().message().c_str());
    return 1;
  }
  warmUp(o.cases);
  auto task = [&](size_t i) {
    CaseResult r = runCase(o.suite + "/" + names[i], o.cases);
    return std::string(1, static_cast<char>(r.outcome)) + r.message;
  };
  bool terminal = isatty(STDERR_FILENO) != 0;
  auto progress = [&](size_t done) {
    if (terminal) std::fprintf(stderr, "\r%zu of %zu%s", done, names.size(), done == names.size() ? "\n" : "");
  };
  const unsigned seconds = o.cases.emulator.empty() ? 20 : 120;
  std::vector<TaskEnd> ends = runForked(names.size(), o.processes, seconds, task, progress);
  std::vector<NamedResult> results;
  int onFirstUse = 0;
  std::map<Outcome, int> counts;
  for (size_t i = 0; i < names.size(); ++i) {
    NamedResult r{names[i], caseOperator(o.suite, names[i]), {}};
    if (ends[i].how == TaskEnd::How::Finished && !ends[i].text.empty()) {
      r.result = {static_cast<Outcome>(ends[i].text[0]), ends[i].text.substr(1)};
    } else {
      r.result = {ends[i].how == TaskEnd::How::TimedOut ? Outcome::Hung : Outcome::Crashed, ends[i].text};
    }
    if (!o.cases.emulator.empty() && r.result.outcome == Outcome::Refused && needsCompilerToRun(r.result.message)) {
      ++onFirstUse;
      continue;
    }
    ++counts[r.result.outcome];
    if (o.list && !passed(r.result.outcome))
      std::printf("%s (%s): %c %s\n", r.name.c_str(), r.op.c_str(), static_cast<char>(r.result.outcome),
                  r.result.message.c_str());
    results.push_back(std::move(r));
  }
  if (!o.json.empty() && !writeFile(o.json, jsonLines(results))) return 1;
  // What crashes or hangs is not to be blessed.
  bool sound = counts[Outcome::Crashed] + counts[Outcome::Hung] == 0;
  if (o.update && o.filter.empty() && o.sample == 0 && sound) {
    if (!writeFile(LOCUTION_SOURCE_DIR "/tests/conformance/expected_passes.txt", expectedText(results))) return 1;
    auto excuses = readExcuses(LOCUTION_SOURCE_DIR "/tests/conformance/not_comparable.txt");
    if (!excuses.isOk()) {
      std::fprintf(stderr, "%s\n", excuses.status().message().c_str());
      return 1;
    }
    if (!writeFile(LOCUTION_SOURCE_DIR "/docs/conformance.md", markdown(results, *excuses))) return 1;
  }
  std::vector<std::string> lines;
  if (expected.isOk()) lines = regressions(results, *expected, o.cases.constants || o.cases.dynamic);
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  int passes = counts[Outcome::Compiled] + counts[Outcome::Folded] + counts[Outcome::Host];
  std::printf("%zu cases: %d compiled, %d folded, %d host, %d refused, %d wrong, %d crashed, %d hung\n", results.size(),
              counts[Outcome::Compiled], counts[Outcome::Folded], counts[Outcome::Host], counts[Outcome::Refused],
              counts[Outcome::Wrong], counts[Outcome::Crashed], counts[Outcome::Hung]);
  if (onFirstUse > 0) std::printf("%d more can't run where there is no compiler\n", onFirstUse);
  std::printf("%d passed, %zu failed\n", passes, lines.size());
  return lines.empty() ? 0 : 1;
}

}  // namespace
}  // namespace locution::conformance

int main(int argc, char** argv) {
  locution::conformance::Options options;
  if (!locution::conformance::parse(argc, argv, &options)) {
    std::fputs(locution::conformance::kUsage, stderr);
    return 2;
  }
  return locution::conformance::run(options);
}

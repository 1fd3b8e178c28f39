#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "commands.h"
#include "passes/pass.h"
#include "support/strings.h"

namespace locution::tools {

Result<driver::CompileOptions> compileOptions(const Options& options) {
  driver::CompileOptions out;
  if (options.threads < 1 || options.threads > 1024)
    return Status::error("--threads: " + std::to_string(options.threads) + " is not in 1 to 1024");
  if (options.cache.empty()) return Status::error("--cache: want a folder, or off");
  if (options.cacheLimit < 1) return Status::error("--cache-limit: at least 1 (MiB)");
  if (options.cache != "off") out.cacheFolder = options.cache;
  out.cacheLimitBytes = std::min<int64_t>(options.cacheLimit, int64_t{1} << 40) << 20;
  out.threads = options.threads;
  out.jobs = options.jobs;
  out.triple = options.triple;
  out.cpu = options.cpu;
  out.machineFile = options.machine;
  out.scheduler = options.scheduler;
  out.scheduleFile = options.schedule;
  out.records = options.records;
  out.seed = options.seed;
  out.tlmWeights = options.tlmWeights;
  out.adapter = options.adapter;
  out.strict = options.strict;
  for (const std::string& s : options.shapes) {
    size_t eq = s.rfind('=');
    if (eq == std::string::npos) return Status::error("--shape " + s + ": want NAME=1x3x224x224");
    std::vector<int64_t> dims;
    std::string text = s.substr(eq + 1);
    if (text != "scalar" && !text.empty())
      for (const std::string& part : splitText(text, 'x')) {
        int64_t d = -1;
        auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), d);
        if (error != std::errc() || end != part.data() + part.size() || d < 0)
          return Status::error("--shape " + s + ": '" + part + "' is not an extent");
        dims.push_back(d);
      }
    if (!out.inputShapes.emplace(s.substr(0, eq), Shape::of(dims)).second)
      return Status::error("--shape " + s + ": given twice");
  }
  for (const std::string& v : options.values) {
    size_t eq = v.find('=');
    if (eq == std::string::npos) return Status::error("--value " + v + ": want NAME=FILE");
    LOCUTION_ASSIGN_OR_RETURN(hostops::HostValue value, readValue(v.substr(eq + 1), ValueKind::Tensor));
    out.inputValues[v.substr(0, eq)] = value.tensor;
  }
  for (const std::string& p : options.disabledPasses) {
    if (!passes::findPass(p)) return Status::error("--disable-pass: there is no pass '" + p + "'");
    out.disabledPasses.insert(p);
  }
  for (const std::string& p : options.dumpAfter) {
    if (p != "all" && !passes::findPass(p)) return Status::error("--dump-ir-after: there is no pass '" + p + "'");
    out.dumpAfter.insert(p);
  }
  out.dump = &std::cerr;
  return out;
}

Result<std::vector<VirtualTarget>> virtualTargets(const Options& options) {
  std::vector<VirtualTarget> out;
  for (const std::string& text : options.on) {
    const size_t colon = text.rfind(':');
    VirtualTarget t{text.substr(0, colon), 0};
    const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), t.threads);
    if (error != std::errc() || end != number.data() + number.size() || t.threads < 1 || t.threads > 1024)
      return Status::error("--on " + text + ": want CPU:THREADS, e.g. x86-64-v3:2");
    out.push_back(std::move(t));
  }
  if (out.empty()) out.push_back({options.cpu, options.threads});
  return out;
}

void report(const driver::Compiled& compiled, const Options& options) {
  for (const std::string& w : compiled.warnings) std::fprintf(stderr, "warning: %s\n", w.c_str());
  if (!options.timePasses) return;
  std::fprintf(stderr, "%-20s %10s\n", "part", "ms");
  for (const driver::StageTime& t : compiled.times)
    std::fprintf(stderr, "%-20s %10.2f\n", t.name.c_str(), t.seconds * 1e3);
  std::fprintf(stderr, "%-20s %10.2f\n", "whole", compiled.seconds * 1e3);
}

driver::Progress terminalProgress() {
  if (!isatty(STDERR_FILENO)) return {};
  auto start = std::chrono::steady_clock::now();
  return [start](const std::string& what, double fraction) {
    if (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) return;
    std::fprintf(stderr, "\r\033[K%3.0f %% %s", fraction * 100, what.c_str());
    if (fraction >= 1) std::fprintf(stderr, "\r\033[K");
  };
}

}  // namespace locution::tools

// `locution bench`: latency, with --blocks in turns with other engines (the protocol stands in docs/bench.md).
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io.h"
#include "options.h"
#include "profile.h"

namespace locution::tools {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int64_t peakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

double percentile(const std::vector<double>& sorted, double p) {
  auto at = static_cast<size_t>(std::ceil(p * static_cast<double>(sorted.size()))) - 1;
  return sorted[std::min(at, sorted.size() - 1)];
}

struct Usage {
  double cpu;
  long involuntary;
};
Usage usage() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return {seconds(u.ru_utime) + seconds(u.ru_stime), u.ru_nivcsw};
}

void say(const Json& j) {
  std::printf("@@%s\n", j.dump().c_str());
  std::fflush(stdout);
}

Status blocks(const Options& options) {
  GivenInputs given;
  auto fail = [](const Status& s) {
    say({{"ok", 0}, {"err", s.message()}});
    return s;
  };
  auto opened = openModel(options, &given);
  if (!opened.isOk()) return fail(opened.status());
  Model& model = *opened;
  runtime::Context context(model.program, runtime::ThreadPool::create(options.threads));
  Status s = bindInputs(options, given, *model.program, context);
  auto first = Clock::now();
  if (s.isOk()) s = context.run();
  double firstMs = secondsSince(first) * 1e3;
  if (s.isOk()) s = writeOutputs(options, *model.program, context);
  if (!s.isOk()) return fail(s);
  for (auto start = Clock::now(); secondsSince(start) < 0.3;) LOCUTION_RETURN_IF_ERROR(context.run());
  auto start = Clock::now();
  LOCUTION_RETURN_IF_ERROR(context.run());
  double one = secondsSince(start);
  int batch = one > 3e-4 ? 1 : std::max(1, static_cast<int>(1e-3 / std::max(one, 1e-6)));
  say({{"ok", 1},
       {"info",
        {{"compile_s", model.compileSeconds},
         {"load_s", model.loadSeconds},
         {"first_ms", firstMs},
         {"rss_mb", static_cast<double>(peakRssBytes()) / (1 << 20)}}},
       {"est", one},
       {"batch", batch}});
  for (std::string line; std::getline(std::cin, line);) {
    double seconds = std::atof(line.c_str());
    Usage before = usage();
    Json samples = Json::array();
    auto block = Clock::now();
    do {
      long switches = usage().involuntary;
      auto sample = Clock::now();
      for (int i = 0; i < batch; ++i) LOCUTION_RETURN_IF_ERROR(context.run());
      double each = secondsSince(sample) / batch;
      samples.push_back({each, usage().involuntary - switches});
    } while (secondsSince(block) < seconds);
    say({{"s", std::move(samples)}, {"cpu", usage().cpu - before.cpu}});
  }
  return Status::ok();
}

}  // namespace

Status benchCommand(const Options& options) {
  if (options.blocks) return blocks(options);
  GivenInputs given;
  LOCUTION_ASSIGN_OR_RETURN(Model model, openModel(options, &given));
  runtime::Context context(model.program, runtime::ThreadPool::create(options.threads));
  LOCUTION_RETURN_IF_ERROR(bindInputs(options, given, *model.program, context));
  LOCUTION_RETURN_IF_ERROR(context.run().withContext(options.model));
  LOCUTION_RETURN_IF_ERROR(writeOutputs(options, *model.program, context));
  for (auto start = Clock::now(); secondsSince(start) < options.warmupMs / 1e3;)
    LOCUTION_RETURN_IF_ERROR(context.run());
  std::vector<double> ms;
  ProfileCollector collector(context);
  const bool isProfiled = options.profile || !options.trace.empty();
  auto begin = Clock::now();
  do {
    auto start = Clock::now();
    LOCUTION_RETURN_IF_ERROR(context.run());
    ms.push_back(secondsSince(start) * 1e3);
    // In turns, so that the latency and the kernels' times are of the same minutes.
    if (isProfiled) LOCUTION_RETURN_IF_ERROR(collector.run());
    // A mean of two runs is no profile, however long they take.
  } while (secondsSince(begin) < options.duration || (isProfiled && ms.size() < 5));
  std::sort(ms.begin(), ms.end());
  const runtime::Executable& e = model.program->executable();
  double median = percentile(ms, 0.5);
  Json j = {{"model", options.model},
            {"target", e.target.triple},
            {"cpu", e.target.cpu},
            {"threads", options.threads},
            {"scheduler", options.scheduler},
            {"compile_s", model.compileSeconds},
            {"cache", model.cache},
            {"load_s", model.loadSeconds},
            {"runs", ms.size()},
            {"latency_ms",
             {{"min", ms.front()}, {"median", median}, {"p90", percentile(ms, 0.9)}, {"p99", percentile(ms, 0.99)}}},
            {"gflop", e.flops / 1e9},
            {"gflops", e.flops / median / 1e6},
            {"peak_gflops", e.target.peakGflops * options.threads},
            {"read_gbs", e.target.readGbs},
            {"arena_bytes", e.arenaBytes},
            {"weight_bytes", e.weightBytes()},
            {"peak_rss_bytes", peakRssBytes()}};
  Profile profile;
  if (isProfiled) profile = collector.take(e, options.threads);
  if (options.profile) {
    Json kernels = Json::array();
    for (const ProfiledKernel& k : profile.kernels) kernels.push_back(toJson(k));
    j["kernels"] = std::move(kernels);
    j["by_op"] = byOp(profile);
    j["kernels_ms"] = profile.totalMs;
  }
  std::printf("%s on %s, %d thread%s: median %.3f ms (min %.3f, p90 %.3f, p99 %.3f) over %zu runs, %.1f GFLOP/s\n",
              options.model.c_str(), e.target.cpu.c_str(), options.threads, options.threads > 1 ? "s" : "", median,
              ms.front(), percentile(ms, 0.9), percentile(ms, 0.99), ms.size(), e.flops / median / 1e6);
  std::printf("compile %.2f s, load %.3f s, weights %.1f MB, arena %.1f MB, peak memory %.1f MB\n",
              model.compileSeconds, model.loadSeconds, static_cast<double>(e.weightBytes()) / 1e6,
              static_cast<double>(e.arenaBytes) / 1e6, static_cast<double>(peakRssBytes()) / 1e6);
  if (options.profile) printProfile(profile, median);
  if (!options.trace.empty()) LOCUTION_RETURN_IF_ERROR(writeTrace(options.trace, options.model, context, e, profile));
  return options.json.empty() ? Status::ok() : writeText(options.json, j.dump(1) + "\n");
}

}  // namespace locution::tools

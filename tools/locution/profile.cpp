#include "profile.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "io.h"
#include "support/strings.h"

namespace locution::tools {

namespace {

using Json = nlohmann::ordered_json;

ProfiledKernel describe(const runtime::Executable& e, const runtime::Instruction& instruction, int threads) {
  ProfiledKernel out;
  if (const auto* k = std::get_if<runtime::RunKernel>(&instruction)) {
    const runtime::KernelInfo& info = e.kernels[static_cast<size_t>(k->kernel)];
    out.name = info.name;
    out.op = info.op;
    out.ops = info.ops;
    out.sentence = info.sentence;
    out.flops = info.flops;
    out.bytes = info.bytes;
    const double compute = info.flops / (e.target.peakGflops * 1e6 * threads);
    const double memory = info.bytes / (e.target.readGbs * 1e6 * threads);
    out.rooflineMs = std::max(compute, memory);
    out.boundByMemory = memory > compute;
  } else if (const auto* h = std::get_if<runtime::RunHostOp>(&instruction)) {
    out.name = h->nodeName;
    out.op = h->op;
    out.ops = {h->op};
    out.sentence = "host";
  } else if (const auto* r = std::get_if<runtime::RunRegion>(&instruction)) {
    out.name = r->nodeName;
    out.op = "region";
    out.sentence = "region";
  } else {
    const bool isCheck = std::holds_alternative<runtime::CheckRange>(instruction);
    out.name = isCheck ? "check of indices" : "copy to an output";
    out.op = isCheck ? "check" : "copy";
  }
  return out;
}

struct OpTotal {
  std::string op;
  int count = 0;
  double ms = 0, flops = 0, bytes = 0;
};
std::vector<OpTotal> totalsOf(const Profile& profile) {
  std::map<std::string, OpTotal> byName;
  for (const ProfiledKernel& k : profile.kernels) {
    OpTotal& t = byName[k.op];
    t.op = k.op;
    ++t.count;
    t.ms += k.ms;
    t.flops += k.flops;
    t.bytes += k.bytes;
  }
  std::vector<OpTotal> out;
  for (auto& [name, total] : byName) out.push_back(total);
  std::stable_sort(out.begin(), out.end(), [](const OpTotal& a, const OpTotal& b) { return a.ms > b.ms; });
  return out;
}

// 0: there is no terminal, and lines may be as long as they want.
size_t terminalColumns() {
  winsize size{};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return std::max<size_t>(size.ws_col, 60);
}

std::string cut(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width > 2 ? width - 2 : width) + (width > 2 ? ".." : "");
}

std::string number(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

using Row = std::vector<std::string>;

// The first `texts` columns are aligned to the left. Where the line is too long, the last column (the plan) gives way, then the others that
// hold text.
void printTable(const std::vector<Row>& rows, size_t texts, size_t columns) {
  std::vector<size_t> width(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  const size_t last = width.size() - 1, kLeast = 8;
  auto total = [&] { return std::accumulate(width.begin(), width.end(), 2 * last); };
  std::vector<size_t> giving = {last};
  for (size_t i = texts; i-- > 0;)
    if (i != last) giving.push_back(i);
  for (size_t i : giving)
    if (columns > 0 && total() > columns)
      width[i] -= std::min(width[i] - std::min(width[i], kLeast), total() - columns);
  if (columns > 0 && total() > columns) width[last] = 0;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (width[i] == 0) continue;
      std::string cell = cut(row[i], width[i]);
      const std::string blank(width[i] - cell.size(), ' ');
      line += (i ? "  " : "") + (i < texts || i == last ? cell + blank : blank + cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

std::string fusedText(const ProfiledKernel& k) { return k.ops.empty() ? k.op : join(k.ops, " "); }

}  // namespace

Status ProfileCollector::run() {
  constexpr size_t kMostRuns = 20000;
  context_.setProfiling(true);
  before_ = context_.profile();
  Status status = context_.run();
  context_.setProfiling(false);
  if (!status.isOk()) return status;
  std::vector<float> seconds;
  const std::vector<runtime::InstructionProfile>& after = context_.profile();
  for (size_t i = 0; i < after.size(); ++i)
    seconds.push_back(static_cast<float>(after[i].seconds - before_[i].seconds));
  if (runs_.size() < kMostRuns) runs_.push_back(std::move(seconds));
  return status;
}

Profile ProfileCollector::take(const runtime::Executable& executable, int threads) const {
  Profile out;
  for (const runtime::Instruction& i : executable.instructions) out.kernels.push_back(describe(executable, i, threads));
  std::vector<std::pair<double, size_t>> lengths;
  for (size_t r = 0; r < runs_.size(); ++r)
    lengths.emplace_back(std::accumulate(runs_[r].begin(), runs_[r].end(), 0.0), r);
  std::sort(lengths.begin(), lengths.end());
  const size_t quarter = lengths.size() / 4, kept = lengths.size() - 2 * quarter;
  for (size_t i = quarter; i < quarter + kept; ++i)
    for (size_t k = 0; k < out.kernels.size(); ++k)
      out.kernels[k].ms += runs_[lengths[i].second][k] * 1e3 / static_cast<double>(kept);
  for (const ProfiledKernel& k : out.kernels) out.totalMs += k.ms;
  for (ProfiledKernel& k : out.kernels) k.share = out.totalMs > 0 ? k.ms / out.totalMs : 0;
  return out;
}

Json toJson(const ProfiledKernel& k) {
  return {{"name", k.name},
          {"op", k.op},
          {"ops", k.ops},
          {"count", 1},
          {"ms", k.ms},
          {"share", k.share},
          {"gflops", k.gflops()},
          {"gbs", k.gbs()},
          {"roofline_fraction", k.rooflineFraction()},
          {"bound", k.rooflineMs == 0 ? ""
                    : k.boundByMemory ? "memory"
                                      : "arithmetic"},
          {"sentence", k.sentence}};
}

Json byOp(const Profile& profile) {
  Json list = Json::array();
  for (const OpTotal& t : totalsOf(profile))
    list.push_back({{"op", t.op},
                    {"count", t.count},
                    {"ms", t.ms},
                    {"share", profile.totalMs > 0 ? t.ms / profile.totalMs : 0},
                    {"gflops", t.ms > 0 ? t.flops / t.ms / 1e6 : 0},
                    {"gbs", t.ms > 0 ? t.bytes / t.ms / 1e6 : 0}});
  return list;
}

void printProfile(const Profile& profile, double latencyMs) {
  constexpr size_t kMostShown = 40;
  const size_t columns = terminalColumns();
  std::vector<const ProfiledKernel*> sorted;
  for (const ProfiledKernel& k : profile.kernels) sorted.push_back(&k);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ProfiledKernel* a, const ProfiledKernel* b) { return a->ms > b->ms; });
  std::vector<Row> rows = {{"kernel", "computes", "ms", "share", "GFLOP/s", "GB/s", "roofline", "bound by", "plan"}};
  const size_t shown = std::min(sorted.size(), kMostShown);
  double rest = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const ProfiledKernel& k = *sorted[i];
    if (i >= shown) {
      rest += k.ms;
      continue;
    }
    const bool isMeasured = k.rooflineMs > 0;
    rows.push_back({k.name, fusedText(k), number("%.4f", k.ms), number("%.1f %%", 100 * k.share),
                    isMeasured ? number("%.1f", k.gflops()) : "", isMeasured ? number("%.1f", k.gbs()) : "",
                    isMeasured ? number("%.0f %%", 100 * k.rooflineFraction()) : "",
                    !isMeasured       ? ""
                    : k.boundByMemory ? "memory"
                                      : "arithmetic",
                    k.sentence});
  }
  std::printf("\n");
  printTable(rows, 2, columns);
  if (shown < sorted.size()) std::printf("and %zu more, together %.4f ms\n", sorted.size() - shown, rest);
  std::vector<Row> totals = {{"by operator", "kernels", "ms", "share", "GFLOP/s", "GB/s"}};
  for (const OpTotal& t : totalsOf(profile))
    totals.push_back({t.op, std::to_string(t.count), number("%.4f", t.ms),
                      number("%.1f %%", profile.totalMs > 0 ? 100 * t.ms / profile.totalMs : 0),
                      number("%.1f", t.ms > 0 ? t.flops / t.ms / 1e6 : 0),
                      number("%.1f", t.ms > 0 ? t.bytes / t.ms / 1e6 : 0)});
  std::printf("\n");
  printTable(totals, 1, columns);
  std::printf("\nthe kernels add up to %.3f ms, %.1f %% of the median latency of %.3f ms\n", profile.totalMs,
              latencyMs > 0 ? 100 * profile.totalMs / latencyMs : 0, latencyMs);
}

Status writeTrace(const std::string& path, const std::string& model, runtime::Context& context,
                  const runtime::Executable& executable, const Profile& profile) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 3;
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "process_name"}, {"args", {{"name", model}}}});
  events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "thread_name"}, {"args", {{"name", "inference"}}}});
  context.setProfiling(true);
  std::vector<runtime::InstructionProfile> before = context.profile();
  const Clock::time_point zero = Clock::now();
  auto microseconds = [&](Clock::time_point t) { return std::chrono::duration<double, std::micro>(t - zero).count(); };
  Status status;
  for (int r = 0; r < kRuns && status.isOk(); ++r) {
    const double begin = microseconds(Clock::now());
    status = context.runObserved([&](size_t i, const std::vector<Tensor>&) {
      // What it took is the profiler's; it ended just now.
      const double end = microseconds(Clock::now());
      const double took = (context.profile()[i].seconds - before[i].seconds) * 1e6;
      before[i] = context.profile()[i];
      const ProfiledKernel& k = profile.kernels[i];
      events.push_back({{"ph", "X"},
                        {"pid", 1},
                        {"tid", 1},
                        {"ts", std::max(begin, end - took)},
                        {"dur", took},
                        {"name", k.name},
                        {"cat", k.op},
                        {"args",
                         {{"computes", fusedText(k)},
                          {"gflops", took > 0 ? k.flops / took / 1e3 : 0},
                          {"gbs", took > 0 ? k.bytes / took / 1e3 : 0},
                          {"roofline", took > 0 ? k.rooflineMs * 1e3 / took : 0},
                          {"plan", k.sentence}}}});
      return Status::ok();
    });
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", begin},
                      {"dur", microseconds(Clock::now()) - begin},
                      {"name", "run " + std::to_string(r)},
                      {"cat", "run"}});
  }
  context.setProfiling(false);
  if (!status.isOk()) return status;
  const Json trace = {
      {"displayTimeUnit", "ms"}, {"otherData", {{"cpu", executable.target.cpu}}}, {"traceEvents", std::move(events)}};
  return writeText(path, trace.dump() + "\n");
}

}  // namespace locution::tools

#include "fuzz_main.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#include "support/check.h"
#include "support/child.h"

namespace locution::fuzz {

namespace {

constexpr int kBatch = 32;
constexpr rlim_t kSecondsPerCase = 30;    // of processor time: a loaded machine is not a hang
constexpr unsigned kSecondsAsleep = 300;  // of real time, for what waits and never wakes

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// From now on.
void limitTime() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto end = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + kSecondsPerCase;
  rlimit limit{end, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
  alarm(kSecondsAsleep);
}

std::string oneLine(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// Shared with the child at work: how far it has come (what it was at when it died is a failure), and how many failures it printed.
struct Progress {
  std::atomic<uint64_t> reached{0};
  std::atomic<int> failed{0};
};

// A child's coverage as lines: "op NAME N", "dtype NAME N", "mark NAME N", "refused N".
void readLines(const std::string& text, Coverage& coverage) {
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind, name;
    int64_t n = 0;
    words >> kind;
    if (kind == "refused" && words >> n) coverage.refused += n;
    if (kind == "op" && words >> name >> n) coverage.ops[name] += n;
    if (kind == "mark" && words >> name >> n) coverage.marks[name] += n;
    if (kind == "dtype" && words >> name >> n) coverage.dtypes[name] += n;
  }
}

}  // namespace

bool parseFlags(int argc, char** argv, const char* name, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--print") {
      flags->print = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    if (flag == "--seconds" && value)
      flags->seconds = std::atof(value);
    else if (flag == "--seed" && value)
      flags->seed = std::strtoull(value, nullptr, 10);
    else if (flag == "--count" && value)
      flags->count = std::atoll(value);
    else if (flag == "--dump" && value)
      flags->dump = value;
    else if (flag == "--only" && value)
      flags->only = std::strtoull(value, nullptr, 10);
    else {
      std::fprintf(stderr, "usage: %s [--seconds N] [--seed S] [--count N] [--only SEED [--print]] [--dump FOLDER]\n",
                   name);
      return false;
    }
  }
  return true;
}

int runBatches(const Flags& flags, const char* name,
               const std::function<std::string(uint64_t seed, Coverage& coverage)>& run, Coverage& coverage) {
  // How far the child has come: what it was at when it died is the failure.
  void* shared =
      mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  LOCUTION_CHECK(shared != MAP_FAILED) << std::strerror(errno);
  auto* progress = new (shared) Progress;
  auto start = Clock::now();
  for (uint64_t next = flags.seed; since(start) < flags.seconds && coverage.cases < flags.count;) {
    progress->reached.store(next);
    const auto batch = static_cast<uint64_t>(std::min<int64_t>(kBatch, flags.count - coverage.cases));
    ChildEnd end = runInChild(kSecondsAsleep, [&]() -> std::string {
#ifndef LOCUTION_SANITIZED  // a sanitizer reserves far more
      constexpr rlim_t kMaxMemory = rlim_t{8} << 30;
      rlimit limit{kMaxMemory, kMaxMemory};
      setrlimit(RLIMIT_AS, &limit);
#endif
      Coverage own;
      std::string out;
      for (uint64_t seed = next; seed < next + batch && since(start) < flags.seconds; ++seed) {
        progress->reached.store(seed);
        limitTime();
        std::string problem;
        try {
          problem = run(seed, own);
        } catch (const std::bad_alloc&) {
          problem = "refused: not enough memory";
        }
        if (problem.starts_with("refused")) {
          ++own.refused;
        } else if (!problem.empty()) {
          ++progress->failed;
          std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), oneLine(problem).c_str());
          std::fflush(stdout);
        }
        progress->reached.store(seed + 1);
      }
      for (const auto& [op, n] : own.ops) out += "op " + op + " " + std::to_string(n) + "\n";
      for (const auto& [dtype, n] : own.dtypes) out += "dtype " + dtype + " " + std::to_string(n) + "\n";
      for (const auto& [mark, n] : own.marks) out += "mark " + mark + " " + std::to_string(n) + "\n";
      return out + "refused " + std::to_string(own.refused) + "\n";
    });
    uint64_t at = progress->reached.load();
    if (end.how == ChildEnd::How::Finished) {
      readLines(end.text, coverage);
    } else {
      ++progress->failed;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(at), oneLine(end.text).c_str());
      ++at;
    }
    coverage.cases += static_cast<int64_t>(at - next);
    std::fflush(stdout);
    if (at == next) break;
    next = at;
  }
  const int failed = progress->failed.load();
  munmap(shared, sizeof(Progress));
  std::printf("%s: seeds %llu to %llu, %lld refused\n", name, static_cast<unsigned long long>(flags.seed),
              static_cast<unsigned long long>(flags.seed + static_cast<uint64_t>(coverage.cases) - 1),
              static_cast<long long>(coverage.refused));
  return failed;
}

}  // namespace locution::fuzz

// `locution tune`: measures plans of a model's kernels, keeps what it measured, and says what was gained.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "commands.h"
#include "driver/tune_corpus.h"
#include "long_run.h"
#include "reproducer.h"

namespace locution::tools {

namespace {

std::string progressText(const tune::TuneProgress& p) {
  const auto measured = static_cast<double>(p.trials - p.resumed);
  const double rate = p.seconds > 0 ? measured / p.seconds : 0;
  char text[256];
  std::snprintf(text, sizeof text, "%lld of %lld plans", static_cast<long long>(p.trials),
                static_cast<long long>(p.wanted));
  std::string out = text;
  if (measured > 0) {
    std::snprintf(text, sizeof text, ", %.1f/s, %s left", rate,
                  duration(static_cast<double>(p.wanted - p.trials) / rate).c_str());
    out += text;
  }
  if (p.now > 0) {
    std::snprintf(text, sizeof text, "; best %.3f ms, %.3f times faster than at the start", p.now * 1e3,
                  p.before / p.now);
    out += text;
  }
  return p.kernel.empty() ? out : out + "; " + p.kernel;
}

// One line that is rewritten on a terminal; elsewhere a line now and then.
class ProgressLine {
 public:
  void show(const tune::TuneProgress& p) {
    const bool isLast = p.kernel.empty();
    constexpr double kEvery = 10, kEveryOnTerminal = 0.2;
    if (!isLast && p.seconds - last_ < (isTerminal_ ? kEveryOnTerminal : kEvery)) return;
    last_ = p.seconds;
    std::string text = progressText(p);
    if (!isTerminal_) {
      std::fprintf(stderr, "%s\n", text.c_str());
      return;
    }
    winsize size{};
    const size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
    text.resize(std::min(text.size(), width));
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }
  void end() const {
    if (isTerminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool isTerminal_ = isatty(STDERR_FILENO) != 0;
  double last_ = -INFINITY;
};

void printGains(const tune::TuneResult& result, const Options& options) {
  std::vector<const tune::TunedKernel*> kernels;
  for (const tune::TunedKernel& k : result.kernels)
    if (k.before > 0 || !k.problem.empty()) kernels.push_back(&k);
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto* a, const auto* b) {
    return static_cast<double>(a->count) * a->before > static_cast<double>(b->count) * b->before;
  });
  std::printf("%-40s %-18s %5s %12s %12s %7s %7s\n", "kernel", "op", "times", "before, us", "after, us", "ratio",
              "plans");
  double before = 0, after = 0;
  for (const tune::TunedKernel* k : kernels) {
    if (!k->problem.empty()) {
      std::printf("%-40s %-18s %5lld not measured: %s\n", k->name.c_str(), k->op.c_str(),
                  static_cast<long long>(k->count), k->problem.c_str());
      continue;
    }
    std::printf("%-40s %-18s %5lld %12.2f %12.2f %7.3f %7lld%s\n", k->name.c_str(), k->op.c_str(),
                static_cast<long long>(k->count), k->before * 1e6, k->after * 1e6, k->before / k->after,
                static_cast<long long>(k->trials), k->plan && !k->isConfirmed ? " (measured once)" : "");
    if (options.verbose && k->plan) std::printf("    %s\n", k->sentence.c_str());
    before += static_cast<double>(k->count) * k->before;
    after += static_cast<double>(k->count) * k->after;
  }
  if (before <= 0) return;
  const auto measured = static_cast<double>(result.trials - result.resumed);
  std::printf("%s: kernels %.3f ms -> %.3f ms, %.3f times faster; %lld plans", options.model.c_str(), before * 1e3,
              after * 1e3, before / after, static_cast<long long>(result.trials));
  if (result.resumed > 0) std::printf(" (%lld from the records)", static_cast<long long>(result.resumed));
  std::printf(", %.1f measured a second%s\n", measured / std::max(1e-9, result.seconds),
              result.isInterrupted ? "; interrupted: the same command goes on" : "");
}

}  // namespace

Status tuneCommand(const Options& options) {
  armReproducer(options);
  if (options.model.ends_with(".loc"))
    return Status::error(options.model + " is compiled already: give the .onnx, then compile with --scheduler records");
  if (options.trialsEach < 0) return Status::error("--trials-each: at least 1, or 0 for what --trials says");
  if (options.trials < 1) return Status::error("--trials: at least 1");
  LOCUTION_ASSIGN_OR_RETURN(driver::CompileOptions compile, compileOptions(options));
  tune::TuneOptions tune;
  tune.search = options.search;
  tune.trials = options.trials;
  tune.trialsEach = options.trialsEach;
  tune.seed = options.seed;
  ProgressLine line;
  const Interrupts interrupts;
  tune.isStopped = Interrupts::met;
  tune.progress = [&](const tune::TuneProgress& p) { line.show(p); };
  const bool isOneModel = options.places.size() == 1 && options.drawn == 0;
  if (isOneModel) tune.model = std::filesystem::path(options.model).stem().string();
  Options own = options;
  own.records.clear();
  LOCUTION_ASSIGN_OR_RETURN(const driver::CompileOptions reading, compileOptions(own));
  LOCUTION_ASSIGN_OR_RETURN(const SelectedCorpus corpus, selectedCorpus(own, reading));
  auto result = driver::tuneCorpus(corpus.selected, compile, tune);
  line.end();
  if (!result.isOk()) return result.status();
  printGains(*result, options);
  if (options.records.empty())
    std::printf("nothing was kept: give --records FILE, then compile with --scheduler records --records FILE\n");
  return Status::ok();
}

}  // namespace locution::tools

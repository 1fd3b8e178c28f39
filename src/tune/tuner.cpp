#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "generator/rules.h"
#include "generator/search/search.h"
#include "language/sentence.h"
#include "loop/passes.h"
#include "support/hash.h"
#include "tune/allocation.h"
#include "tune/history.h"

namespace locution::tune {

namespace {

using Clock = std::chrono::steady_clock;
using generator::Proposal;

/// Plans of a batch: enough to share the start of a process, few enough that the model learns between them.
constexpr int64_t kMostBatch = 16, kLeastBatch = 4;
/// Where every kernel gets many trials anyway.
constexpr int64_t kBatchOfEach = 32;
/// The best of the search are measured again, so often: the least of many measurements is one of luck as well.
constexpr size_t kFinalists = 4;
constexpr int kFinalRounds = 3;
/// What is faster by less stays as the rules wrote it.
constexpr double kWorthwhile = 0.99;
constexpr int64_t kMostTaught = 4000;

class Tuner {
 public:
  Tuner(const std::vector<TuneKernel>& kernels, const TargetSpec& target, const TuneOptions& options)
      : target_(target), options_(options), start_(Clock::now()) {
    for (const TuneKernel& k : kernels) {
      TunedKernel t;
      t.name = k.computation.name;
      t.op = k.op;
      t.count = k.count;
      result_.kernels.push_back(std::move(t));
    }
  }

  Status prepare(const std::vector<TuneKernel>& kernels) {
    if (options_.search != "random") {
      LOCUTION_ASSIGN_OR_RETURN(model_, generator::makeBoostedTrees());
    }
    if (options_.store) {
      LOCUTION_ASSIGN_OR_RETURN(
          History history,
          History::open(*options_.store, target_, {options_.search, options_.seed, options_.model, options_.compiler}));
      history_.emplace(std::move(history));
    }
    for (size_t k = 0; k < kernels.size(); ++k) {
      const loop::Computation& c = kernels[k].computation;
      if (c.raw) continue;
      auto space = std::make_unique<space::Space>(c, target_);
      if (space::Walk(*space).isDone()) continue;  // nothing to decide
      Task t;
      t.kernel = k;
      t.space = std::move(space);
      const space::Walk incumbent = generator::analyticWalk(*t.space);
      t.choices = incumbent.choices();
      t.incumbent = incumbent.plan();
      LOCUTION_ASSIGN_OR_RETURN(
          t.search,
          generator::makeSearch(options_.search, *t.space, hashText("search", loop::hash(c)) ^ options_.seed, model_));
      if (history_) LOCUTION_RETURN_IF_ERROR(history_->add(*t.space, t.choices));
      tasks_.push_back(std::move(t));
    }
    return Status::ok();
  }

  std::vector<BenchTimer::Kernel> timed(const std::vector<TuneKernel>& kernels) const {
    std::vector<BenchTimer::Kernel> out;
    for (const Task& t : tasks_) out.push_back({&kernels[t.kernel].computation, t.incumbent});
    return out;
  }

  Result<TuneResult> run(PlanTimer& timer) {
    timer_ = &timer;
    LOCUTION_RETURN_IF_ERROR(measureIncumbents());
    LOCUTION_RETURN_IF_ERROR(recall());
    LOCUTION_RETURN_IF_ERROR(search());
    LOCUTION_RETURN_IF_ERROR(confirm());
    result_.seconds = since();
    for (Task& t : tasks_) result_.kernels[t.kernel].trials = t.trials;
    return std::move(result_);
  }

 private:
  struct Task {
    size_t kernel = 0;
    std::unique_ptr<space::Space> space;
    std::unique_ptr<generator::Search> search;
    space::Choices choices;  ///< of the incumbent
    schedule::Plan incumbent;
    double seconds = 0;  ///< of the incumbent
    int64_t trials = 0;
    /// Plans that were faster or nearly as fast, by ratio.
    std::multimap<double, space::Choices> best;
    bool isOut = false;
  };

  int64_t wanted() const {
    return options_.trialsEach > 0 ? options_.trialsEach * static_cast<int64_t>(tasks_.size()) : options_.trials;
  }
  double since() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool isStopped() {
    if (options_.isStopped && options_.isStopped()) result_.isInterrupted = true;
    return result_.isInterrupted;
  }
  TunedKernel& resultOf(const Task& t) { return result_.kernels[t.kernel]; }
  static double bestRatio(const Task& t) { return t.best.empty() ? 1 : std::min(1.0, t.best.begin()->first); }

  static void keep(Task& t, double ratio, const space::Choices& choices) {
    constexpr size_t kKept = 4 * kFinalists;
    t.best.emplace(ratio, choices);
    if (t.best.size() > kKept) t.best.erase(std::prev(t.best.end()));
  }

  void leaveOut(Task& t, const Status& why) {
    t.isOut = true;
    resultOf(t).problem = why.message();
  }

  void report(const std::string& kernel) {
    if (!options_.progress) return;
    TuneProgress p;
    p.trials = result_.trials;
    p.wanted = wanted();
    p.resumed = result_.resumed;
    p.seconds = since();
    for (const Task& t : tasks_) {
      const auto count = static_cast<double>(result_.kernels[t.kernel].count);
      p.before += count * t.seconds;
      p.now += count * t.seconds * bestRatio(t);
    }
    p.kernel = kernel;
    options_.progress(p);
  }

  Status measureIncumbents() {
    for (size_t i = 0; i < tasks_.size() && !isStopped(); ++i) {
      Task& t = tasks_[i];
      auto measured = timer_->measure(i, {t.incumbent});
      if (!measured.isOk() || (*measured)[0].outcome != Outcome::Ok) {
        leaveOut(t, measured.isOk() ? Status::error((*measured)[0].reason) : measured.status());
        continue;
      }
      t.seconds = (*measured)[0].seconds;
      resultOf(t).before = resultOf(t).after = t.seconds;
      t.search->observe(t.choices, 1);
      if (history_) LOCUTION_RETURN_IF_ERROR(history_->storeIncumbent(i, (*measured)[0]));
      report(resultOf(t).name);
    }
    return Status::ok();
  }

  // What the records say is not measured again.
  Status recall() {
    if (!history_) return Status::ok();
    if (model_ && !tasks_.empty()) LOCUTION_RETURN_IF_ERROR(history_->teach(*model_, kMostTaught).status());
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Task& t = tasks_[i];
      LOCUTION_ASSIGN_OR_RETURN(std::vector<History::Known> known, history_->known(i));
      for (const History::Known& k : known) {
        if (k.choices == t.choices) continue;
        t.search->observe(k.choices, k.ratio);
        if (k.ratio) keep(t, *k.ratio, k.choices);
        if (!k.isOwn) continue;
        ++t.trials;
        ++result_.resumed;
      }
    }
    result_.trials = result_.resumed;
    return Status::ok();
  }

  Status search() {
    std::vector<Allocation::Kernel> times;
    for (const Task& t : tasks_) times.push_back({static_cast<double>(resultOf(t).count), t.seconds});
    Allocation allocation(times);
    const auto kernels = static_cast<int64_t>(std::max<size_t>(1, tasks_.size()));
    const int64_t batch =
        options_.trialsEach > 0 ? kBatchOfEach : std::clamp(options_.trials / (2 * kernels), kLeastBatch, kMostBatch);
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].isOut) allocation.finish(i);
      if (tasks_[i].trials > 0) allocation.tried(i, tasks_[i].trials, tasks_[i].seconds * bestRatio(tasks_[i]));
    }
    while (result_.trials < wanted() && !isStopped()) {
      const auto next = options_.trialsEach > 0 ? leastTried(allocation) : allocation.next();
      if (!next) break;
      Task& t = tasks_[*next];
      report(resultOf(t).name);
      const int64_t open = options_.trialsEach > 0 ? options_.trialsEach - t.trials : options_.trials - result_.trials;
      const std::vector<Proposal> proposals = t.search->propose(static_cast<size_t>(std::min(batch, open)));
      if (proposals.empty()) {
        allocation.finish(*next);
        continue;
      }
      std::vector<schedule::Plan> plans;
      for (const Proposal& p : proposals) plans.push_back(p.plan);
      auto measured = timer_->measure(*next, plans);
      if (!measured.isOk()) {
        leaveOut(t, measured.status());
        allocation.finish(*next);
        continue;
      }
      if (history_) LOCUTION_RETURN_IF_ERROR(history_->store(*next, proposals, *measured));
      for (size_t i = 0; i < proposals.size(); ++i) {
        const Measurement& m = (*measured)[i];
        const auto ratio = m.ratio > 0 && m.outcome == Outcome::Ok ? std::optional(m.ratio) : std::nullopt;
        t.search->observe(proposals[i].choices, ratio);
        if (ratio) keep(t, *ratio, proposals[i].choices);
      }
      const auto count = static_cast<int64_t>(proposals.size());
      t.trials += count;
      result_.trials += count;
      allocation.tried(*next, count, t.seconds * bestRatio(t));
    }
    report("");
    return Status::ok();
  }

  std::optional<size_t> leastTried(const Allocation& allocation) const {
    std::optional<size_t> least;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (allocation.isFinished(i) || tasks_[i].trials >= options_.trialsEach) continue;
      if (!least || tasks_[i].trials < tasks_[*least].trials) least = i;
    }
    return least;
  }

  Status confirm() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Task& t = tasks_[i];
      if (t.isOut || bestRatio(t) >= kWorthwhile) continue;
      std::vector<Proposal> finalists;
      for (const auto& [ratio, choices] : t.best)
        if (ratio < kWorthwhile && finalists.size() < kFinalists)
          finalists.push_back({choices, *space::planOf(*t.space, choices)});
      std::map<size_t, std::vector<double>> ratios;
      if (!isStopped()) {
        report(resultOf(t).name);
        LOCUTION_RETURN_IF_ERROR(measureAgain(i, finalists, &ratios));
      }
      size_t winner = 0;
      double ratio = ratios.empty() ? t.best.begin()->first : 1;
      for (const auto& [k, values] : ratios)
        if (values.size() == kFinalRounds && records::median(values) < ratio) {
          winner = k;
          ratio = records::median(values);
        }
      TunedKernel& out = resultOf(t);
      out.isConfirmed = !ratios.empty();
      if (ratio >= kWorthwhile) continue;
      out.after = t.seconds * ratio;
      out.plan = finalists[winner].plan;
      out.choices = finalists[winner].choices;
      out.sentence = language::planText(finalists[winner].choices);
    }
    return Status::ok();
  }

  Status measureAgain(size_t task, const std::vector<Proposal>& finalists,
                      std::map<size_t, std::vector<double>>* ratios) {
    std::vector<schedule::Plan> plans;
    for (const Proposal& p : finalists) plans.push_back(p.plan);
    for (int round = 0; round < kFinalRounds; ++round) {
      auto measured = timer_->measure(task, plans);
      if (!measured.isOk()) {
        leaveOut(tasks_[task], measured.status());
        ratios->clear();
        return Status::ok();
      }
      if (history_) LOCUTION_RETURN_IF_ERROR(history_->store(task, finalists, *measured));
      for (size_t k = 0; k < plans.size(); ++k) {
        const Measurement& m = (*measured)[k];
        (*ratios)[k];
        if (m.outcome == Outcome::Ok && m.ratio > 0) (*ratios)[k].push_back(m.ratio);
        if (history_ && round == 0 && m.outcome == Outcome::Ok)
          LOCUTION_RETURN_IF_ERROR(history_->codeIs(task, finalists[k].choices, m.codeHash));
      }
    }
    return Status::ok();
  }

  const TargetSpec& target_;
  const TuneOptions& options_;
  Clock::time_point start_;
  TuneResult result_;
  std::shared_ptr<generator::CostModel> model_;
  std::optional<History> history_;
  std::vector<Task> tasks_;
  PlanTimer* timer_ = nullptr;
};

}  // namespace

Result<TuneResult> tuneKernels(const std::vector<TuneKernel>& kernels, const TargetSpec& target,
                               const MakeTimer& makeTimer, const TuneOptions& options) {
  Tuner tuner(kernels, target, options);
  LOCUTION_RETURN_IF_ERROR(tuner.prepare(kernels));
  const std::unique_ptr<PlanTimer> timer = makeTimer(tuner.timed(kernels));
  return tuner.run(*timer);
}

Result<TuneResult> tuneKernels(const std::vector<TuneKernel>& kernels, const codegen::KernelCompiler& compiler,
                               int jobs, const TuneOptions& options) {
  return tuneKernels(kernels, compiler.target(), benchTimers(compiler, jobs, options.seed + 1), options);
}

}  // namespace locution::tune

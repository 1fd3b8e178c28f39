#include "tune/sampling.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "generator/random.h"
#include "generator/rules.h"
#include "generator/search/search.h"
#include "generator/search/seen.h"
#include "support/hash.h"
#include "tune/history.h"

namespace locution::tune {

namespace {

using Clock = std::chrono::steady_clock;
using generator::Proposal;

/// Plans of a workload at a time: enough to share the start of a process and the draw of many sentences.
constexpr int64_t kMostBatch = 20, kLeastBatch = 5;
/// One in so many is drawn uniformly: what is bad must be seen too, and what the model never says.
constexpr int64_t kUniform = 5;

}  // namespace

struct Sampling::Impl {
  struct Task {
    std::string id;
    std::unique_ptr<space::Space> space;
    space::Choices rules;
    generator::Seen seen;
    std::multimap<double, space::Choices> known;  ///< by ratio
    bool isBegun = false, isOut = false, isExhausted = false;
  };

  Impl(records::Store& s, const SamplingOptions& o) : store(s), options(o) {}

  double since() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  bool isOver() {
    if (options.isStopped && options.isStopped()) result.isInterrupted = true;
    const bool isMeasured = options.measurements > 0 && result.measured + ownBefore >= options.measurements;
    return result.isInterrupted || isMeasured || (options.seconds > 0 && since() >= options.seconds);
  }
  void report() const {
    if (!options.progress) return;
    SamplingProgress p;
    p.workloads = std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.isBegun; });
    p.of = static_cast<int64_t>(tasks.size());
    p.measured = result.measured + ownBefore;
    p.wanted = options.measurements;
    p.seconds = since();
    options.progress(p);
  }

  Status open(const std::vector<SamplingWorkload>& workloads, const TargetSpec& target, const MakeTimer& makeTimer) {
    std::vector<size_t> order(workloads.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    // Shuffled, so that what was measured when the time is over is a sample of the whole.
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(hashText(workloads[a].workload->id(), options.seed), a) <
             std::pair(hashText(workloads[b].workload->id(), options.seed), b);
    });
    std::vector<BenchTimer::Kernel> timed;
    for (size_t i : order) {
      const space::Workload& w = *workloads[i].workload;
      Task t;
      t.id = w.id();
      t.space = std::make_unique<space::Space>(w.kernel, target);
      if (space::Walk(*t.space).isDone()) {
        ++result.single;
        continue;
      }
      const space::Walk rules = generator::analyticWalk(*t.space);
      t.rules = rules.choices();
      t.seen.add(rules.plan());
      LOCUTION_ASSIGN_OR_RETURN(
          History own,
          History::open(store, target, {options.proposer, options.seed, workloads[i].model, options.compiler}));
      LOCUTION_RETURN_IF_ERROR(own.add(*t.space, t.rules));
      LOCUTION_RETURN_IF_ERROR(recall(&t, own));
      timed.push_back({&w.kernel, rules.plan()});
      histories.push_back(std::move(own));
      tasks.push_back(std::move(t));
    }
    timer = makeTimer(std::move(timed));
    return Status::ok();
  }

  // What the records say is not measured again.
  Status recall(Task* t, History& history) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<History::Known> known, history.known(0));
    for (const History::Known& k : known) {
      const auto plan = space::planOf(*t->space, k.choices);
      if (!plan || !t->seen.add(*plan)) continue;
      ++result.recalled;
      ownBefore += k.isOwn;
      if (k.ratio) t->known.emplace(*k.ratio, k.choices);
    }
    return Status::ok();
  }

  Result<std::vector<Proposal>> proposals(Task& t, const Propose& propose, size_t count, uint64_t round) {
    const uint64_t seed = hashText(t.id, options.seed ^ (round << 32));
    std::vector<Proposal> out;
    auto take = [&](const space::Choices& choices) {
      auto plan = space::planOf(*t.space, choices);
      if (plan && t.seen.add(*plan)) out.push_back({choices, std::move(*plan)});
    };
    const size_t uniform = count > 1 ? std::max<size_t>(1, count / kUniform) : 0;
    LOCUTION_ASSIGN_OR_RETURN(std::vector<space::Choices> drawn, propose(*t.space, seed));
    for (size_t i = 0; i < drawn.size() && out.size() + uniform < count; ++i) take(drawn[i]);
    // Small spaces are soon exhausted: then there are fewer.
    const size_t tries = 8 * count;
    for (size_t i = 0; i < tries && out.size() < count; ++i)
      take(generator::randomWalk(*t.space, seed + 1 + i).choices());
    return out;
  }

  Status begin(size_t i) {
    Task& t = tasks[i];
    t.isBegun = true;
    auto measured = timer->measure(i, {*space::planOf(*t.space, t.rules)});
    if (!measured.isOk() || (*measured)[0].outcome != Outcome::Ok) {
      t.isOut = true;
      ++result.unmeasurable;
      return Status::ok();
    }
    return histories[i].storeIncumbent(0, (*measured)[0]);
  }

  Status batch(size_t i, const Propose& propose, size_t count, uint64_t round) {
    Task& t = tasks[i];
    if (!t.isBegun) LOCUTION_RETURN_IF_ERROR(begin(i));
    if (t.isOut) return Status::ok();
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Proposal> open, proposals(t, propose, count, round));
    t.isExhausted = open.empty();
    if (open.empty()) return Status::ok();
    std::vector<schedule::Plan> plans;
    for (const Proposal& p : open) plans.push_back(p.plan);
    auto measured = timer->measure(i, plans);
    if (!measured.isOk()) {  // the incumbent, which ran a moment ago, does not
      t.isOut = true;
      ++result.unmeasurable;
      return Status::ok();
    }
    LOCUTION_RETURN_IF_ERROR(histories[i].store(0, open, *measured));
    result.measured += static_cast<int64_t>(open.size());
    for (size_t k = 0; k < open.size(); ++k) {
      const Measurement& m = (*measured)[k];
      if (m.outcome == Outcome::Ok && m.ratio > 0)
        t.known.emplace(m.ratio, open[k].choices);
      else
        ++result.failed;
    }
    report();
    return Status::ok();
  }

  Status run(const Propose& propose) {
    const auto all = static_cast<int64_t>(std::max<size_t>(1, tasks.size()));
    const int64_t most =
        options.measurements > 0 ? std::clamp(options.measurements / all, kLeastBatch, kMostBatch) : kMostBatch;
    bool isOpen = true;
    for (uint64_t round = 0; isOpen && !isOver(); ++round) {
      isOpen = false;
      for (size_t i = 0; i < tasks.size() && !isOver(); ++i) {
        if (tasks[i].isOut || tasks[i].isExhausted) continue;
        const int64_t left = options.measurements - result.measured - ownBefore;
        LOCUTION_RETURN_IF_ERROR(
            batch(i, propose, static_cast<size_t>(options.measurements > 0 ? std::min(most, left) : most), round));
        isOpen = isOpen || !(tasks[i].isOut || tasks[i].isExhausted);
      }
    }
    result.workloads =
        std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return !t.isOut && !t.known.empty(); });
    result.seconds = since();
    return Status::ok();
  }

  records::Store& store;
  const SamplingOptions options;
  const Clock::time_point start = Clock::now();
  std::vector<Task> tasks;
  std::vector<History> histories;  ///< of each task
  std::unique_ptr<PlanTimer> timer;
  SamplingResult result;
  int64_t ownBefore = 0;  ///< of `recalled`: by this proposer and seed
};

Sampling::Sampling(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampling::~Sampling() = default;

Result<std::unique_ptr<Sampling>> Sampling::open(const std::vector<SamplingWorkload>& workloads,
                                                 const TargetSpec& target, const MakeTimer& makeTimer,
                                                 records::Store& store, const SamplingOptions& options) {
  auto impl = std::make_unique<Impl>(store, options);
  LOCUTION_RETURN_IF_ERROR(impl->open(workloads, target, makeTimer));
  return std::unique_ptr<Sampling>(new Sampling(std::move(impl)));
}

Result<SamplingResult> Sampling::run(const Propose& propose) {
  LOCUTION_RETURN_IF_ERROR(impl_->run(propose));
  return impl_->result;
}

size_t Sampling::count() const { return impl_->tasks.size(); }
const space::Space& Sampling::space(size_t workload) const { return *impl_->tasks[workload].space; }

std::vector<space::Choices> Sampling::best(size_t workload, size_t most) const {
  std::vector<space::Choices> out;
  const Impl::Task& t = impl_->tasks[workload];
  for (const auto& [ratio, choices] : t.known)
    if (!t.isOut && out.size() < most) out.push_back(choices);
  return out;
}

Result<std::vector<Compared>> Sampling::compare(size_t workload, const std::vector<space::Choices>& plans, int rounds) {
  const Impl::Task& t = impl_->tasks[workload];
  std::vector<Proposal> proposals;
  std::vector<schedule::Plan> texts;
  for (const space::Choices& c : plans) {
    proposals.push_back({c, *space::planOf(*t.space, c)});
    texts.push_back(proposals.back().plan);
  }
  std::vector<std::vector<double>> ratios[2];
  for (auto& set : ratios) set.resize(plans.size());
  for (int round = 0; round < 2 * rounds; ++round) {
    auto measured = impl_->timer->measure(workload, texts);
    if (!measured.isOk()) break;  // the incumbent fails: too few rounds for anything to count
    LOCUTION_RETURN_IF_ERROR(impl_->histories[workload].store(0, proposals, *measured));
    for (size_t i = 0; i < plans.size(); ++i) {
      const Measurement& m = (*measured)[i];
      if (m.outcome == Outcome::Ok && m.ratio > 0) ratios[round % 2][i].push_back(m.ratio);
    }
  }
  auto middle = [&](const std::vector<double>& values) {
    return static_cast<int>(values.size()) == rounds ? records::median(values) : INFINITY;
  };
  std::vector<Compared> out;
  for (size_t i = 0; i < plans.size(); ++i) out.push_back({middle(ratios[0][i]), middle(ratios[1][i])});
  return out;
}

}  // namespace locution::tune

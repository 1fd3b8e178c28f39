#include "tune/collect.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "generator/rules.h"
#include "generator/search/spread.h"
#include "support/hash.h"
#include "tune/history.h"
#include "tune/measure.h"

namespace locution::tune {

namespace {

using Clock = std::chrono::steady_clock;
using generator::Proposal;

constexpr const char* kProposer = "collect";
/// Enough to share the start of a process, few enough to lose little.
constexpr size_t kBatch = 25;
constexpr auto kWait = std::chrono::milliseconds(500);

class Collector {
 public:
  Collector(const std::vector<CollectWorkload>& workloads, const codegen::KernelCompiler& compiler,
            records::Store& store, const CollectOptions& options)
      : workloads_(workloads), compiler_(compiler), store_(store), options_(options) {
    const std::string target = hexDigits(hashText(compiler.target().str()));
    for (const CollectWorkload& w : workloads)
      names_.push_back("collect/" + std::to_string(options.seed) + "/" + std::to_string(options.plans) + "/" + target +
                       "/" + w.workload->id());
    // Shuffled, so that a collection that is not finished is a sample of the whole.
    order_.resize(workloads.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::pair(hashText(names_[a]), a) < std::pair(hashText(names_[b]), b);
    });
  }

  Result<CollectResult> run() {
    std::vector<bool> isDone(workloads_.size());
    for (bool isOpen = true; isOpen && !isStopped();) {
      isOpen = false;
      bool hasWorked = false;
      for (size_t i : order_) {
        if (isStopped()) break;
        if (isDone[i]) continue;
        LOCUTION_ASSIGN_OR_RETURN(records::Claim claim, claimTask(i));
        if (claim == records::Claim::Mine) {
          LOCUTION_RETURN_IF_ERROR(work(i));
          hasWorked = true;
        } else if (claim == records::Claim::Done) {
          ++result_.elsewhere;
        }
        isDone[i] = claim != records::Claim::Busy && !result_.isInterrupted;
        isOpen = isOpen || !isDone[i];
        report();
      }
      // Others are at the rest: it is theirs unless they end.
      if (isOpen && !hasWorked) std::this_thread::sleep_for(kWait);
    }
    result_.seconds = since();
    return std::move(result_);
  }

 private:
  double since() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool isStopped() {
    if (options_.isStopped && options_.isStopped()) result_.isInterrupted = true;
    return result_.isInterrupted;
  }
  void report() const {
    if (!options_.progress) return;
    int64_t left = 0;
    for (const auto& [reason, count] : result_.left) left += count;
    options_.progress({result_.workloads + result_.elsewhere + left, static_cast<int64_t>(workloads_.size()),
                       result_.measured, since()});
  }
  Result<records::Claim> claimTask(size_t i) { return store_.claim(names_[i], options_.worker, options_.leaseSeconds); }

  Status work(size_t i) {
    const loop::Computation& kernel = workloads_[i].workload->kernel;
    const space::Space space(kernel, compiler_.target());
    if (space::Walk(space).isDone()) return leave(i, "has one plan only");
    const space::Walk rules = generator::analyticWalk(space);
    LOCUTION_ASSIGN_OR_RETURN(
        History history,
        History::open(store_, compiler_.target(), {kProposer, options_.seed, workloads_[i].model, options_.compiler}));
    LOCUTION_RETURN_IF_ERROR(history.add(space, rules.choices()));
    MeasureOptions measure;
    measure.jobs = options_.jobs;
    measure.seed = options_.seed + 1;
    auto bench = Measurer(compiler_, measure).open(kernel, rules.plan());
    if (!bench.isOk()) return leave(i, "can't be measured");
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Proposal> open, openPlans(space, rules.choices(), history));
    auto incumbent = (*bench)->measure({rules.plan()});
    if (!incumbent.isOk() || (*incumbent)[0].outcome != Outcome::Ok) return leave(i, "can't be measured");
    LOCUTION_RETURN_IF_ERROR(history.storeIncumbent(0, (*incumbent)[0]));
    for (size_t from = 0; from < open.size(); from += kBatch) {
      if (isStopped()) return store_.release(names_[i], options_.worker);
      LOCUTION_ASSIGN_OR_RETURN(records::Claim claim, claimTask(i));
      if (claim != records::Claim::Mine) return Status::ok();  // the lease ran out, another took it
      const std::span<const Proposal> batch(open.data() + from, std::min(kBatch, open.size() - from));
      LOCUTION_RETURN_IF_ERROR(measureBatch(**bench, batch, history));
      report();
    }
    LOCUTION_ASSIGN_OR_RETURN(bool isMine, store_.finish(names_[i], options_.worker));
    ++(isMine ? result_.workloads : result_.elsewhere);
    return Status::ok();
  }

  // The task's plans that nobody has stored yet.
  Result<std::vector<Proposal>> openPlans(const space::Space& space, const space::Choices& rules, History& history) {
    const uint64_t seed = hashText(workloadOf(space), options_.seed);
    std::vector<Proposal> plans = generator::spread(space, rules, static_cast<size_t>(options_.plans), seed);
    LOCUTION_ASSIGN_OR_RETURN(std::vector<History::Known> known, history.known(0));
    std::erase_if(plans, [&](const Proposal& p) {
      const bool isKnown = std::any_of(known.begin(), known.end(),
                                       [&](const History::Known& k) { return k.isOwn && k.choices == p.choices; });
      result_.recalled += isKnown;
      return isKnown;
    });
    return plans;
  }
  static std::string workloadOf(const space::Space& space) { return space::canonical(space.kernel()).id(); }

  Status measureBatch(KernelBench& bench, std::span<const Proposal> batch, History& history) {
    std::vector<schedule::Plan> plans;
    for (const Proposal& p : batch) plans.push_back(p.plan);
    auto measured = bench.measure(plans);
    // The incumbent, which ran a moment ago, does not: as if these plans did not either.
    if (!measured.isOk()) return Status::ok();
    result_.measured += static_cast<int64_t>(batch.size());
    result_.failed += std::count_if(measured->begin(), measured->end(),
                                    [](const Measurement& m) { return m.outcome != Outcome::Ok; });
    return history.store(0, batch, *measured);
  }

  Status leave(size_t i, const std::string& reason) {
    ++result_.left[reason];
    return store_.finish(names_[i], options_.worker).status();
  }

  const std::vector<CollectWorkload>& workloads_;
  const codegen::KernelCompiler& compiler_;
  records::Store& store_;
  const CollectOptions& options_;
  const Clock::time_point start_ = Clock::now();
  std::vector<std::string> names_;
  std::vector<size_t> order_;
  CollectResult result_;
};

}  // namespace

Result<CollectResult> collect(const std::vector<CollectWorkload>& workloads, const codegen::KernelCompiler& compiler,
                              records::Store& store, const CollectOptions& options) {
  return Collector(workloads, compiler, store, options).run();
}

}  // namespace locution::tune

#include "train/adaptation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "driver/tlm_programs.h"
#include "generator/tlm/proposer.h"
#include "generator/tlm/tlm_scheduler.h"
#include "language/sentence.h"
#include "records/record.h"
#include "records/store.h"
#include "space/workload.h"
#include "support/hash.h"

namespace locution::train {

namespace {

namespace tlm = generator::tlm;
using Clock = std::chrono::steady_clock;

/// Of the time that there is.
constexpr double kMeasuring = 0.6, kTraining = 0.25;
/// Sentences to draw for a batch of plans to measure: the value head takes about one in four.
constexpr int64_t kDrawn = 64;
/// Best plans of a workload that are measured again, and rounds of either kind.
constexpr size_t kFinalists = 3;
constexpr int kRounds = 3;
/// One measured workload in so many is not learnt from: matrices are for kernels that nobody measured, the others have their plans.
constexpr size_t kHeldBack = 5;
/// What is faster by less stays as it was.
constexpr double kWorthwhile = 0.99;
constexpr int64_t kSentences = 64, kEpochs = 20, kLeastSteps = 100, kMostSteps = 5000;

/// Whether an interrupt came while this lives: one that came before has done its work.
class Phase {
 public:
  explicit Phase(const std::function<bool()>& isInterrupted) : asks_(isInterrupted), wasInterrupted_(now()) {}
  bool isEnded() const { return !wasInterrupted_ && now(); }

 private:
  bool now() const { return asks_ && asks_(); }
  const std::function<bool()>& asks_;
  bool wasInterrupted_;
};

/// The geometric mean of what is finite.
class Mean {
 public:
  void add(double before, double after) {
    if (!std::isfinite(before) || !std::isfinite(after)) return;
    const double ratio = std::log(before / after);
    sum_ += ratio;
    least_ = count_ == 0 ? ratio : std::min(least_, ratio);
    ++count_;
  }
  double value() const { return count_ > 0 ? std::exp(sum_ / count_) : 1; }
  double least() const { return std::exp(least_); }

 private:
  double sum_ = 0, least_ = 0;
  int count_ = 0;
};

class Adapting {
 public:
  Adapting(const Adaptation& a, const codegen::KernelCompiler& compiler, const AdaptationWatch& watch)
      : a_(a),
        compiler_(compiler),
        watch_(watch),
        target_(compiler.target()),
        programs_(driver::inferencePrograms(a.model.base.config)) {}

  Result<AdaptationResult> run() {
    out_.adapter.base = a_.model.base.key();
    out_.adapter.words = a_.model.base.config.words;
    out_.adapter.machine = records::machineText(target_.str());
    if (a_.model.adapter) out_.adapter.plans = a_.model.adapter->plans;
    LOCUTION_ASSIGN_OR_RETURN(store_, records::Store::open(a_.records));
    LOCUTION_RETURN_IF_ERROR(measure());
    holdBack();
    LOCUTION_RETURN_IF_ERROR(learn());
    LOCUTION_RETURN_IF_ERROR(judge());
    out_.isInterrupted = watch_.isInterrupted && watch_.isInterrupted();
    out_.seconds = since(start_);
    out_.adapter.notes = {{"seed", std::to_string(a_.seed)},
                          {"measured", std::to_string(out_.measured.measured + out_.measured.recalled)},
                          {"workloads", std::to_string(out_.judged)},
                          {"steps", std::to_string(out_.steps)}};
    return std::move(out_);
  }

 private:
  static double since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

  Status measure() {
    const Phase phase(watch_.isInterrupted);
    tune::SamplingOptions options;
    options.measurements = a_.measurements;
    options.seconds = kMeasuring * a_.seconds;
    options.seed = a_.seed;
    // A record tells whose proposal it is; another adapter's are others.
    options.proposer = "adapt/" + (a_.model.adapter ? a_.model.adapter->key() : out_.adapter.base);
    options.compiler = a_.compiler;
    options.isStopped = [&] { return phase.isEnded(); };
    options.progress = watch_.measuring;
    LOCUTION_ASSIGN_OR_RETURN(
        sampling_, tune::Sampling::open(a_.workloads, target_, tune::benchTimers(compiler_, a_.jobs, a_.seed + 1),
                                        *store_, options));
    tlm::Proposer proposer(a_.model.weights, programs_);
    LOCUTION_ASSIGN_OR_RETURN(out_.measured, sampling_->run([&](const space::Space& space, uint64_t seed) {
      return proposer.propose(space, kDrawn, seed);
    }));
    if (out_.measured.workloads == 0) return Status::error("there is no kernel whose plans could be measured");
    return Status::ok();
  }

  std::string keyOfWorkload(size_t i) const { return keyOf(space::canonical(sampling_->space(i).kernel()).text); }

  /// Those that are judged first are the ones that are not learnt from.
  void holdBack() {
    std::vector<std::pair<uint64_t, size_t>> order;
    for (size_t i = 0; i < sampling_->count(); ++i)
      if (!sampling_->best(i, 1).empty()) order.emplace_back(hashText(keyOfWorkload(i), a_.seed), i);
    std::sort(order.begin(), order.end());
    for (const auto& [hash, i] : order) judged_.push_back(i);
    heldBack_ = judged_.size() < 2 ? 0 : std::max<size_t>(1, judged_.size() / kHeldBack);
  }

  Status learn() {
    const Phase phase(watch_.isInterrupted);
    const auto start = Clock::now();
    TlmTraining t;
    // Records may be shared: times on other kinds of machines say nothing of this one.
    const std::string model = "model = " + records::cpuModel() + "\n";
    LOCUTION_ASSIGN_OR_RETURN(t.examples, readExamples({a_.records}, a_.model.base.config.context,
                                                       [&](const std::string& m) { return m.starts_with(model); }));
    for (size_t k = 0; k < heldBack_; ++k)
      std::erase_if(t.examples.groups,
                    [key = keyOfWorkload(judged_[k])](const ExampleGroup& g) { return g.workload == key; });
    if (heldBack_ == 0) {
      out_.untrained = "with one workload alone nothing would tell whether others gain";
      return Status::ok();
    }
    if (t.examples.count() == 0) {
      out_.untrained = "no sentence that the model could read";
      return Status::ok();
    }
    t.adaptation = {a_.lora, a_.model.base};
    t.model = a_.model.base.config;
    t.sentences = kSentences;
    t.steps = std::clamp(kEpochs * t.examples.count() / kSentences, kLeastSteps, kMostSteps);
    if (a_.seconds > 0) t.seconds = kTraining * a_.seconds;
    // Interrupted before: no more than would have followed on so much measuring.
    if (out_.measured.isInterrupted) {
      const double share = out_.measured.seconds * kTraining / kMeasuring;
      t.seconds = t.seconds > 0 ? std::min(t.seconds, share) : share;
    }
    if (t.seconds > 0) t.seconds = std::max(1e-3, t.seconds - since(start));
    t.rate = a_.rate;
    t.optimiser.weightDecay = 0;  // the matrices start at nothing
    t.heldOut = 0;
    t.seed = a_.seed;
    t.compile.threads = a_.jobs > 0 ? a_.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    t.compile.jobs = a_.jobs;
    TlmWatch watch = watch_.training;
    watch.isInterrupted = [&] {
      ++out_.steps;  // asked after each step
      return phase.isEnded();
    };
    LOCUTION_ASSIGN_OR_RETURN(trained_.parameters, trainTlm(t, watch));
    trained_.lora = a_.lora;
    trained_.base = out_.adapter.base;
    return Status::ok();
  }

  std::unique_ptr<generator::Scheduler> scheduler(const tlm::Weights& weights, const tlm::KnownPlans& plans) const {
    tlm::SchedulerOptions options;
    options.known = plans;
    return tlm::makeTlm(weights, programs_, options);
  }

  Status judge() {
    const Phase phase(watch_.isInterrupted);
    const tlm::KnownPlans before = out_.adapter.plans;
    const bool isTrained = trained_.lora.rank > 0;
    LOCUTION_ASSIGN_OR_RETURN(const tlm::Weights weights, isTrained ? tlm::adapted(a_.model.base, trained_)
                                                                    : Result<tlm::Weights>(a_.model.weights));
    now_ = scheduler(a_.model.weights, before);
    nowAlone_ = scheduler(a_.model.weights, {});
    then_ = scheduler(weights, {});
    Mean model, whole;
    for (size_t done = 0; done < judged_.size() && !phase.isEnded(); ++done) {
      if (a_.seconds > 0 && since(start_) >= a_.seconds) break;
      if (watch_.judging) watch_.judging(done, judged_.size());
      LOCUTION_RETURN_IF_ERROR(judge(judged_[done], done < heldBack_ ? &model : nullptr, &whole));
    }
    out_.model = model.value();
    out_.whole = whole.value();
    out_.least = whole.least();
    out_.hasNewMatrices = isTrained && out_.model > 1 / kWorthwhile;
    const tlm::Adapter* matrices = out_.hasNewMatrices ? &trained_ : a_.model.adapter ? &*a_.model.adapter : nullptr;
    if (matrices) {
      out_.adapter.lora = matrices->lora;
      out_.adapter.parameters = matrices->parameters;
    }
    out_.isBetter = out_.changed > 0 || out_.hasNewMatrices;
    return Status::ok();
  }

  /// The plan that a workload gets from now on: the one that it had, unless another was faster both when it was chosen and when it was
  /// looked at again. `model` is told what the model itself gains, where it is not null.
  Status judge(size_t workload, Mean* model, Mean* whole) {
    const space::Space& space = sampling_->space(workload);
    std::vector<space::Choices> plans;
    std::vector<std::string> texts;
    auto add = [&](const space::Choices& choices) {
      const std::string text = space::planOf(space, choices)->str();
      const auto at = std::find(texts.begin(), texts.end(), text) - texts.begin();
      if (at == static_cast<std::ptrdiff_t>(texts.size())) {
        plans.push_back(choices);
        texts.push_back(text);
      }
      return static_cast<size_t>(at);
    };
    const size_t before = add(*now_->choices(space)), alone = add(*nowAlone_->choices(space)),
                 after = add(*then_->choices(space));
    for (const space::Choices& c : sampling_->best(workload, kFinalists)) add(c);
    LOCUTION_ASSIGN_OR_RETURN(const std::vector<tune::Compared> times, sampling_->compare(workload, plans, kRounds));
    size_t chosen = before;
    for (size_t i = 0; i < plans.size(); ++i)
      if (times[i].choosing < times[chosen].choosing) chosen = i;
    const bool isFaster =
        times[chosen].choosing < kWorthwhile * times[before].choosing && times[chosen].telling < times[before].telling;
    if (!isFaster) chosen = before;
    if (!std::isfinite(times[chosen].telling)) return Status::ok();  // nothing could be measured to its end
    if (model) {
      model->add(times[alone].telling, times[after].telling);
      ++out_.heldBack;
    }
    whole->add(times[before].telling, times[chosen].telling);
    ++out_.judged;
    if (chosen != before) ++out_.changed;
    out_.adapter.plans[{space::workloadHash(space.kernel()), hashText(target_.str())}] =
        language::planText(plans[chosen]);
    return Status::ok();
  }

  const Adaptation& a_;
  const codegen::KernelCompiler& compiler_;
  const AdaptationWatch& watch_;
  const TargetSpec& target_;
  const tlm::ProgramSource programs_;
  const Clock::time_point start_ = Clock::now();
  std::unique_ptr<records::Store> store_;
  std::unique_ptr<tune::Sampling> sampling_;
  std::vector<size_t> judged_;  ///< in this order
  size_t heldBack_ = 0;         ///< of them, at the beginning
  tlm::Adapter trained_;
  std::unique_ptr<generator::Scheduler> now_, nowAlone_, then_;
  AdaptationResult out_;
};

}  // namespace

Result<AdaptationResult> adapt(const Adaptation& adaptation, const codegen::KernelCompiler& compiler,
                               const AdaptationWatch& watch) {
  return Adapting(adaptation, compiler, watch).run();
}

}  // namespace locution::train

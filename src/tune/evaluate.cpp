#include "tune/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "generator/rules.h"
#include "language/sentence.h"
#include "space/kernel_kind.h"
#include "tune/measure.h"

namespace locution::tune {

namespace {

class Evaluator {
 public:
  Evaluator(const std::vector<Contender>& contenders, const codegen::KernelCompiler& compiler, records::Store& store,
            const EvaluateOptions& options)
      : contenders_(contenders), compiler_(compiler), store_(store), options_(options) {}

  Result<std::string> targetKey() { return store_.put(records::TextKind::Target, compiler_.target().str()); }

  Status row(const EvaluateWorkload& of, const std::string& target, Evaluated* row) {
    const loop::Computation& kernel = of.workload->kernel;
    row->id = of.workload->id();
    row->kind = space::kindText(space::kindOf(kernel));
    row->count = of.count;
    row->groups = of.groups;
    const space::Space space(kernel, compiler_.target());
    const space::Walk rules = generator::analyticWalk(space);
    LOCUTION_ASSIGN_OR_RETURN(std::vector<space::Choices> known, bestKnown(space, *of.workload, target, row));
    std::vector<schedule::Plan> plans = {rules.plan()};
    for (const space::Choices& c : known) plans.push_back(*space::planOf(space, c));
    for (const Contender& c : contenders_) plans.push_back(c.scheduler->propose(kernel, compiler_.target()));
    const size_t all = plans.size() - 1;
    MeasureOptions measure;
    measure.jobs = options_.jobs;
    measure.seed = options_.seed + 1;
    measure.abandonRatio = INFINITY;
    auto bench = Measurer(compiler_, measure).open(kernel, rules.plan());
    if (!bench.isOk()) {
      row->problem = bench.status().message();
      return Status::ok();
    }
    std::vector<std::vector<double>> choosing(all), telling(all);
    // The best known is chosen by some rounds and judged by others: the least of several noisy numbers is too small.
    for (int round = 0; round < 2 * options_.rounds; ++round) {
      auto measured = (*bench)->measure(plans);
      if (!measured.isOk()) {
        row->problem = measured.status().message();
        return Status::ok();
      }
      if (round == 0) row->seconds = (*measured)[0].seconds;
      for (size_t i = 0; i < all; ++i) {
        const Measurement& m = (*measured)[i + 1];
        if (m.outcome == Outcome::Ok && m.ratio > 0) (round % 2 ? telling : choosing)[i].push_back(m.ratio);
      }
    }
    auto middle = [&](const std::vector<double>& v) {
      return static_cast<int>(v.size()) == options_.rounds ? records::median(v) : INFINITY;
    };
    size_t chosen = known.size();
    for (size_t i = 0; i < known.size(); ++i)
      if (middle(choosing[i]) < (chosen < known.size() ? middle(choosing[chosen]) : 1)) chosen = i;
    if (chosen < known.size() && middle(telling[chosen]) < 1) {
      row->best = middle(telling[chosen]);
      row->bestPlan = language::planText(known[chosen]);
    }
    for (size_t i = known.size(); i < all; ++i) {
      const double ratio = plans[i + 1].str() == plans[0].str() ? 1 : middle(telling[i]);
      row->ratios.push_back(std::isfinite(ratio) ? ratio : 0);
    }
    return Status::ok();
  }

 private:
  Result<std::vector<space::Choices>> bestKnown(const space::Space& space, const space::Workload& workload,
                                                const std::string& target, Evaluated* row) {
    LOCUTION_ASSIGN_OR_RETURN(std::string key, store_.put(records::TextKind::Workload, workload.text));
    // Many: single measurements that were lucky stand in front of those that hold.
    constexpr int kAll = 1 << 20;
    LOCUTION_ASSIGN_OR_RETURN(std::vector<records::Best> best,
                              store_.best(key, target, {}, records::Rank::Ratio, kAll));
    row->trials = static_cast<int64_t>(best.size());
    std::vector<space::Choices> out;
    for (const records::Best& b : best) {
      if (static_cast<int>(out.size()) >= options_.finalists || b.value >= 1) break;
      if (auto choices = language::parsePlanText(space, b.record.sentence)) out.push_back(std::move(*choices));
    }
    return out;
  }

  const std::vector<Contender>& contenders_;
  const codegen::KernelCompiler& compiler_;
  records::Store& store_;
  const EvaluateOptions& options_;
};

class Mean {
 public:
  void add(double value) {
    sum_ += std::log(value);
    least_ = std::min(least_, value);
    ++count_;
  }
  double geometric() const { return count_ ? std::exp(sum_ / count_) : 0; }
  double least() const { return count_ ? least_ : 0; }

 private:
  double sum_ = 0, least_ = INFINITY;
  int count_ = 0;
};

bool counts(const Evaluated& row, int64_t leastTrials, const std::string& group) {
  return row.problem.empty() && row.trials >= leastTrials && (group.empty() || row.groups.count(group) > 0);
}
bool hasGap(const Evaluated& row, double gap) { return -std::log(row.best) > gap; }

std::string printed(const EvaluateSummary& s, const std::string& group, int64_t leastTrials, double gap) {
  char text[256];
  std::string out;
  std::snprintf(text, sizeof text,
                "%s%lld workloads with at least %lld known plans; the analytic plan reaches %.3f of the best known "
                "(geometric mean; worst %.3f); gap above %.0f %%: %lld\n",
                group.empty() ? "" : ("held out by " + group + ": ").c_str(), static_cast<long long>(s.workloads),
                static_cast<long long>(leastTrials), s.analytic, s.analyticWorst, gap * 100,
                static_cast<long long>(s.gaps));
  out += text;
  for (const EvaluateSummary::Of& c : s.contenders) {
    std::snprintf(text, sizeof text,
                  "%s: %.3f of the best known (worst %.3f), %.3f times the analytic plan's speed (worst %.3f), closes "
                  "%.0f %% of the gaps%s\n",
                  c.name.c_str(), c.mean, c.worst, c.overAnalytic, c.least, c.closed * 100,
                  c.failed > 0 ? (", failed " + std::to_string(c.failed) + " times").c_str() : "");
    out += text;
  }
  return out;
}

}  // namespace

std::set<std::string> groupsOf(const std::vector<Evaluated>& rows) {
  std::set<std::string> out;
  for (const Evaluated& r : rows) out.insert(r.groups.begin(), r.groups.end());
  return out;
}

Result<std::vector<Evaluated>> evaluate(const std::vector<EvaluateWorkload>& workloads,
                                        const std::vector<Contender>& contenders,
                                        const codegen::KernelCompiler& compiler, records::Store& best,
                                        const EvaluateOptions& options) {
  Evaluator evaluator(contenders, compiler, best, options);
  LOCUTION_ASSIGN_OR_RETURN(std::string target, evaluator.targetKey());
  std::vector<Evaluated> out;
  for (const EvaluateWorkload& w : workloads) {
    if (options.isStopped && options.isStopped()) break;
    if (options.progress) options.progress(out.size(), workloads.size());
    LOCUTION_RETURN_IF_ERROR(evaluator.row(w, target, &out.emplace_back()));
  }
  return out;
}

EvaluateSummary summarise(const std::vector<Evaluated>& rows, const std::vector<Contender>& contenders,
                          int64_t leastTrials, double gap, const std::string& group) {
  EvaluateSummary out;
  Mean analytic;
  double gaps = 0;
  for (const Evaluated& r : rows) {
    if (!counts(r, leastTrials, group)) continue;
    ++out.workloads;
    analytic.add(r.best);
    if (!hasGap(r, gap)) continue;
    ++out.gaps;
    gaps -= std::log(r.best);
  }
  out.analytic = analytic.geometric();
  out.analyticWorst = analytic.least();
  for (size_t c = 0; c < contenders.size(); ++c) {
    EvaluateSummary::Of of;
    of.name = contenders[c].name;
    Mean share, over;
    double closed = 0;
    for (const Evaluated& r : rows) {
      if (!counts(r, leastTrials, group)) continue;
      if (r.ratios[c] <= 0) {
        ++of.failed;
        continue;
      }
      share.add(r.best / r.ratios[c]);
      over.add(1 / r.ratios[c]);
      if (hasGap(r, gap)) closed -= std::log(r.ratios[c]);
    }
    of.mean = share.geometric();
    of.worst = share.least();
    of.overAnalytic = over.geometric();
    of.least = over.least();
    of.closed = gaps > 0 ? closed / gaps : 1;
    out.contenders.push_back(std::move(of));
  }
  return out;
}

std::string print(const std::vector<Evaluated>& rows, const std::vector<Contender>& contenders, int64_t leastTrials,
                  double gap) {
  char text[256];
  std::string out = "speed over that of the analytic plan\n";
  std::snprintf(text, sizeof text, "%-16s  %-14s %6s %12s %7s %8s", "workload", "kind", "times", "analytic, us",
                "plans", "best");
  out += text;
  for (const Contender& c : contenders) {
    std::snprintf(text, sizeof text, " %16s", c.name.c_str());
    out += text;
  }
  out += "\n";
  std::vector<const Evaluated*> sorted;
  for (const Evaluated& r : rows) sorted.push_back(&r);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->best < b->best; });
  for (const Evaluated* r : sorted) {
    std::snprintf(text, sizeof text, "%-16s  %-14s %6.0f", r->id.c_str(), r->kind.c_str(), r->count);
    out += text;
    if (!r->problem.empty()) {
      out += " not measured: " + r->problem + "\n";
      continue;
    }
    std::snprintf(text, sizeof text, " %12.2f %7lld %8.3f", r->seconds * 1e6, static_cast<long long>(r->trials),
                  1 / r->best);
    out += text;
    for (double ratio : r->ratios) {
      std::snprintf(text, sizeof text, " %16.3f", ratio > 0 ? 1 / ratio : 0.0);
      out += ratio > 0 ? text : "           failed";
    }
    out += "\n";
  }
  out += printed(summarise(rows, contenders, leastTrials, gap), "", leastTrials, gap);
  for (const std::string& group : groupsOf(rows))
    out += printed(summarise(rows, contenders, leastTrials, gap, group), group, leastTrials, gap);
  return out;
}

}  // namespace locution::tune

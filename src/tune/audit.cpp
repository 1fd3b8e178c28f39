#include "tune/audit.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "generator/random.h"
#include "generator/rules.h"
#include "language/grammar.h"
#include "language/sentence.h"
#include "loop/passes.h"
#include "schedule/apply.h"
#include "space/census.h"
#include "space/kernel_kind.h"
#include "support/hash.h"
#include "tune/measure.h"

namespace locution::tune {

namespace {

constexpr size_t kMostFailures = 20;
/// Seconds for a run that is only compared: a plan may be a thousand times slower than another, and right.
constexpr double kPatience = 60;

uint64_t mix(uint64_t seed, int64_t i) { return hashBytes(&i, sizeof i, seed); }

class Auditor {
 public:
  Auditor(const std::vector<space::Workload>& workloads, const std::vector<AuditTarget>& targets,
          const AuditOptions& options)
      : workloads_(workloads), targets_(targets), options_(options) {}

  AuditReport run() {
    for (const space::Workload& w : workloads_) {
      AuditedWorkload a;
      a.id = w.id();
      a.kind = space::kindText(space::kindOf(w.kernel));
      a.multiplyAdds = space::multiplyAdds(w.kernel);
      a.plans = space::takeCensus(space::Space(w.kernel, targets_[0].spec), options_.walks, options_.seed).plans;
      report_.workloads.push_back(std::move(a));
    }
    if (options_.sentences > 0) readAll();
    if (options_.compiled > 0) compareAll();
    if (options_.measured > 0) measureAll();
    return std::move(report_);
  }

 private:
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }
  void fail(const std::string& what, size_t workload, const TargetSpec& target, const std::string& plan) {
    if (report_.failures.size() < kMostFailures)
      report_.failures.push_back(what + ": workload " + report_.workloads[workload].id + ", " + target.cpu + ", " +
                                 std::to_string(target.threads) + " threads: " + plan);
  }

  void readAll() {
    std::vector<const AuditTarget*> all;
    for (const AuditTarget& t : targets_) all.push_back(&t);
    share(options_.sentences, all, [&](size_t w, const AuditTarget& target, int64_t count, int64_t from) {
      say("sentences of " + report_.workloads[w].id);
      const space::Space space(workloads_[w].kernel, target.spec);
      for (int64_t i = 0; i < count; ++i) sentence(space, w, from + i);
    });
  }

  // One sentence: word by word as the grammar allows, then read back, then applied.
  void sentence(const space::Space& space, size_t w, int64_t i) {
    const space::Walk walk = generator::randomWalk(space, mix(options_.seed, i));
    ++report_.sentences;
    const std::string text = language::planText(walk.choices());
    auto read = language::choicesOf(space, language::sentenceTokens(space, walk.choices()));
    if (!read.isOk() || *read != walk.choices()) {
      fail("not read back", w, space.target(), text);
      return;
    }
    ++report_.legal;
    auto lowered = schedule::apply(workloads_[w].kernel, walk.plan());
    if (const auto* error = std::get_if<schedule::ApplyError>(&lowered)) {
      fail("not applied (" + std::string(schedule::reasonText(error->reason)) + ")", w, space.target(), text);
      return;
    }
    Status valid = loop::verify(std::get<schedule::Lowered>(lowered).function);
    if (!valid.isOk()) {
      fail("loops are wrong (" + valid.message() + ")", w, space.target(), text);
      return;
    }
    ++report_.applied;
  }

  std::vector<const AuditTarget*> runnable() const {
    std::vector<const AuditTarget*> out;
    for (const AuditTarget& t : targets_)
      if (t.compiler) out.push_back(&t);
    return out;
  }

  struct Draws {
    std::vector<space::Choices> choices;
    std::vector<schedule::Plan> plans;
  };
  Draws draw(const space::Space& space, int64_t count, int64_t from) const {
    Draws d;
    for (int64_t k = 0; k < count; ++k) {
      const space::Walk walk = generator::randomWalk(space, mix(options_.seed + 1, from + k));
      d.choices.push_back(walk.choices());
      d.plans.push_back(walk.plan());
    }
    return d;
  }

  // For each workload and target its share of `total`, at least one until all are given.
  template <typename Visit>
  void share(int64_t total, const std::vector<const AuditTarget*>& targets, const Visit& visit) {
    const auto places = static_cast<int64_t>(workloads_.size() * targets.size());
    int64_t given = 0;
    for (int64_t p = 0; p < places && given < total; ++p) {
      const int64_t count = std::max<int64_t>(1, (total - given) / (places - p));
      visit(static_cast<size_t>(p) % workloads_.size(), *targets[static_cast<size_t>(p) / workloads_.size()],
            std::min(count, total - given), given);
      given += count;
    }
  }

  void compareAll() {
    share(options_.compiled, runnable(), [&](size_t w, const AuditTarget& target, int64_t count, int64_t from) {
      say("comparing " + report_.workloads[w].id);
      const space::Space space(workloads_[w].kernel, target.spec);
      const Draws drawn = draw(space, count, from);
      MeasureOptions patient;
      patient.watchdogSeconds = patient.compileSeconds = kPatience;
      const Measurer measurer(*target.compiler, patient);
      auto bench = measurer.open(workloads_[w].kernel, generator::analyticWalk(space).plan());
      auto results = bench.isOk() ? (*bench)->check(drawn.plans) : bench.status();
      if (!results.isOk()) {
        report_.refused += count;
        return;
      }
      for (size_t k = 0; k < results->size(); ++k) {
        const Measurement& m = (*results)[k];
        ++report_.compiled;
        if (m.outcome == Outcome::Ok) {
          ++report_.equal;
        } else {
          fail(std::string(outcomeName(m.outcome)) + " (" + m.reason + ")", w, target.spec,
               language::planText(drawn.choices[k]));
        }
      }
    });
  }

  void measureAll() {
    std::vector<const AuditTarget*> targets = runnable();
    if (targets.empty()) return;
    share(options_.measured, {targets.back()}, [&](size_t w, const AuditTarget& target, int64_t count, int64_t from) {
      say("measuring " + report_.workloads[w].id);
      const space::Space space(workloads_[w].kernel, target.spec);
      const Draws drawn = draw(space, count, from + options_.compiled);
      const space::Walk rules = generator::analyticWalk(space);
      const Measurer measurer(*target.compiler, {});
      auto bench = measurer.open(workloads_[w].kernel, rules.plan());
      auto results = bench.isOk() ? (*bench)->measure(drawn.plans) : bench.status();
      if (!results.isOk()) {
        report_.refused += count;
        return;
      }
      AuditedWorkload& a = report_.workloads[w];
      for (size_t k = 0; k < results->size(); ++k) {
        const Measurement& m = (*results)[k];
        if (m.outcome != Outcome::Ok) {
          fail(std::string(outcomeName(m.outcome)) + " (" + m.reason + ")", w, target.spec,
               language::planText(drawn.choices[k]));
          continue;
        }
        ++a.measured;
        if (m.ratio <= 0 || 1 / m.ratio <= a.bestRatio) continue;
        a.bestRatio = 1 / m.ratio;
        a.bestPlan = language::planText(drawn.choices[k]);
        a.fromRules = difference(drawn.choices[k], rules.choices());
      }
    });
  }

  static std::string difference(const space::Choices& plan, const space::Choices& rules) {
    std::map<std::pair<int32_t, space::Decision>, int64_t> known;
    for (const space::Choice& c : rules)
      if (c.decision != space::Decision::Next) known[{c.stage, c.decision}] = c.value;
    std::string out;
    for (const space::Choice& c : plan) {
      auto rule = known.find({c.stage, c.decision});
      if (c.decision == space::Decision::Next || (rule != known.end() && rule->second == c.value)) continue;
      out += (out.empty() ? "" : " ") + space::choiceText(c.decision, c.value);
      if (rule != known.end()) {
        const std::string text = space::choiceText(c.decision, rule->second);
        out += " (" + text.substr(text.find('=') + 1) + ")";
      }
    }
    return out;
  }

  const std::vector<space::Workload>& workloads_;
  const std::vector<AuditTarget>& targets_;
  const AuditOptions& options_;
  AuditReport report_;
};

}  // namespace

Result<AuditReport> audit(const std::vector<space::Workload>& workloads, const std::vector<AuditTarget>& targets,
                          const AuditOptions& options) {
  if (workloads.empty()) return Status::error("there is no kernel to audit");
  if (targets.empty()) return Status::error("there is no target to audit for");
  return Auditor(workloads, targets, options).run();
}

std::string print(const AuditReport& r) {
  char line[256];
  auto percent = [](int64_t part, int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
  };
  std::string out;
  std::snprintf(line, sizeof line, "sentences %lld: legal %.4g %%, applied %.4g %%\n",
                static_cast<long long>(r.sentences), percent(r.legal, r.sentences), percent(r.applied, r.sentences));
  out += line;
  std::snprintf(
      line, sizeof line, "compiled %lld: equal to the interpreter %.4g %%%s\n", static_cast<long long>(r.compiled),
      percent(r.equal, r.compiled),
      r.refused > 0 ? (" (" + std::to_string(r.refused) + " not tried: operands can't be made up)").c_str() : "");
  out += line;
  out += "workload          kind            multiply-adds      plans  measured  best\n";
  for (const AuditedWorkload& w : r.workloads) {
    std::snprintf(line, sizeof line, "%s  %-14s %14.4g %10.2g %9lld", w.id.c_str(), w.kind.c_str(), w.multiplyAdds,
                  w.plans, static_cast<long long>(w.measured));
    out += line;
    if (w.bestRatio > 0) {
      std::snprintf(line, sizeof line, "  %.2f of the rules' speed: ", w.bestRatio);
      out += line + w.fromRules;
    }
    out += "\n";
  }
  for (const std::string& f : r.failures) out += "FAILED " + f + "\n";
  return out;
}

}  // namespace locution::tune
